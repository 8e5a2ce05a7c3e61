//! The next steps of an indexer, and the checks after them.

use std::cmp::Reverse;

use super::{
    indexer::{End, Indexer, Turn},
    pages::{Page, Progress, Request, Sets, between, is_prefix, parts, size, until},
    rules::{PARTITIONS, Rules, Scenario, UNSETTLED_MAX},
    state::State,
};

/// Most images of a batch.
const BATCH_MAX: usize = 2;
/// More steps than a single indexer needs.
const LONE_STEPS: u32 = 64;

/// One event of the system.
pub(super) enum Step {
    Append,
    Show(usize, u8),
    Arrive(Request),
    Crash(usize),
    GiveUp(usize),
    Take(usize, bool, Option<u8>),
    Find(usize),
    Follow(usize),
    Progress(usize, usize),
    Read(usize),
    /// The oldest page that may not be settled is settled by this indexer, whoever has put it.
    Settle(usize, Page),
    /// A request is sent, and there is an answer or not.
    Send(usize, Request, bool),
    Acknowledge(usize),
}

pub(super) struct Model {
    pub(super) scenario: Scenario,
    pub(super) rules: Rules,
}

impl Model {
    /// Everything that the indexer can do next. Requests arrive at once. The largest choice comes first.
    pub(super) fn acts(&self, state: &State, i: usize) -> Vec<(Step, State)> {
        let it = state.indexers[i];
        let mut moves = it.moves;
        if it.turn == Turn::Acknowledge {
            moves = std::array::from_fn(|p| moves[p].max(it.lagging()[p]));
        }
        let mut acts: Vec<_> = (0..PARTITIONS)
            .filter(|p| moves[*p] != Progress::default())
            .map(|p| {
                let request = Request::Move(p, moves[p]);
                let mut after = state.clone();
                after.indexers[i].moves[p] = moves[p];
                after.indexers[i].moved(p);
                after.apply(request, self.rules);
                (Step::Send(i, request, true), after)
            })
            .collect();
        if it.turn != Turn::Acknowledge || acts.is_empty() || !self.rules.waits_for_progress {
            acts.extend(self.turn(state, i, acts.is_empty()));
        }
        acts
    }

    /// What the indexer can do next besides moving the progress.
    fn turn(&self, state: &State, i: usize, is_done: bool) -> Vec<(Step, State)> {
        let (rules, it) = (self.rules, state.indexers[i]);
        let with = |act: &dyn Fn(&mut Indexer)| {
            let mut after = state.clone();
            act(&mut after.indexers[i]);
            after
        };
        let find = || (Step::Find(i), with(&|it| it.find(&state.pages, rules)));
        match it.turn {
            Turn::Take => {
                let fits = |images: &Sets| (1..=BATCH_MAX).contains(&size(*images));
                let mut batches: Vec<_> = parts(state.images).filter(fits).collect();
                batches.sort_by_key(|images| Reverse(size(*images)));
                let take = |(leased, lease, images)| {
                    let mut after =
                        with(&|it| it.take((images, leased), lease, &state.pages, rules));
                    for (due, taken) in after.images.iter_mut().zip(images) {
                        *due &= !if rules.waits { 0 } else { taken };
                    }
                    (Step::Take(i, leased, lease), after)
                };
                let alone = batches.iter().map(|images| (false, None, *images));
                let leases = self.leases();
                let leased = leases
                    .iter()
                    .flat_map(|lease| batches.iter().map(|images| (true, *lease, *images)));
                alone.chain(leased).map(take).collect()
            }
            Turn::Find => vec![find()],
            Turn::Follow => {
                let end = it.end.unwrap_or_default().at;
                let pages: Vec<_> = between(&state.pages, end, u8::MAX).collect();
                let follow = (Step::Follow(i), with(&|it| it.follow(&pages, rules)));
                let find = self.scenario.far.then(find);
                [follow].into_iter().chain(find).collect()
            }
            Turn::Progress { left } => {
                let read = |p: usize| {
                    let found = state.progress[p];
                    let after = with(&|it| it.read_progress(p, found, left, rules));
                    (Step::Progress(i, p), after)
                };
                (0..PARTITIONS).filter(|p| left & 1 << p != 0).map(read).collect()
            }
            Turn::Read => {
                let seen = std::array::from_fn(|p| state.visible[p]);
                vec![(Step::Read(i), with(&|it| it.read(seen, rules)))]
            }
            Turn::Put => {
                let places = self.settled(state, it.end.unwrap_or_default());
                if places.is_empty() {
                    let oldest =
                        between(&state.pages, it.end.unwrap_or_default().settled, u8::MAX).next();
                    let settle = |page| (Step::Settle(i, page), with(&|it| it.moves(page)));
                    return oldest.filter(|_| is_done).map(settle).into_iter().collect();
                }
                let fresh: Sets = std::array::from_fn(|p| it.fresh(p, rules));
                let place = it.end.unwrap_or_default().at;
                let put = |(events, settled)| {
                    let page = Page { place, events, settled };
                    let mut after = state.clone();
                    match after.apply(Request::Page(page), it.rules(rules)) {
                        true => after.indexers[i].has_put(page, rules),
                        false => after.indexers[i].was_refused(rules),
                    }
                    (Step::Send(i, Request::Page(page), true), after)
                };
                let prefix = |events: &Sets| {
                    size(*events) > 0 && (0..PARTITIONS).all(|p| is_prefix(events[p], fresh[p]))
                };
                let mut pages: Vec<_> = parts(fresh).filter(prefix).collect();
                pages.sort_by_key(|events| Reverse(size(*events)));
                let pages = pages.iter().flat_map(|page| places.iter().map(|at| (*page, *at)));
                pages.map(put).collect()
            }
            Turn::Acknowledge => {
                let mut after = with(&|it| *it = it.idle());
                for (images, done) in after.images.iter_mut().zip(it.done()) {
                    *images &= !done;
                }
                vec![(Step::Acknowledge(i), after)]
            }
        }
    }

    /// What the lease may say: anything, because a lease may be lost, taken over, late, old or wrong. `None`: whatever
    /// it says counts for nothing.
    fn leases(&self) -> Vec<Option<u8>> {
        let events = self.scenario.appends.iter().flatten().sum::<u8>();
        match (self.scenario.leased, self.rules.lease_read) {
            (false, _) => Vec::new(),
            (true, true) => vec![None],
            (true, false) => (1..=events).map(Some).collect(),
        }
    }

    /// The places before which the next page may say that all is settled: what the indexer knows by itself, or from any
    /// others. None if too many pages may not be settled.
    fn settled(&self, state: &State, end: End) -> Vec<u8> {
        let mut places = vec![end.settled, state.settled(end.settled, self.rules).min(end.at)];
        if !self.rules.says_settled {
            places = vec![end.at];
        }
        places.dedup();
        places.retain(|from| {
            !self.rules.few_unsettled
                || between(&state.pages, *from, end.at).count() < UNSETTLED_MAX
        });
        places
    }

    /// Whether the index lacks an event or has one twice or out of order, the progress has not come to an acknowledged
    /// image, or too many pages were not settled.
    pub(super) fn is_wrong(state: &State) -> bool {
        let missing = |p: usize| {
            until(state.committed[p]) & !state.images[p] & !until(state.progress[p].slot)
        };
        let many =
            |page: &Page| between(&state.pages, page.settled, page.place).count() >= UNSETTLED_MAX;
        state.indexed().is_none()
            || (0..PARTITIONS).any(|p| missing(p) != 0)
            || state.pages.iter().any(many)
    }

    /// Whether an indexer that goes on alone comes to an end, right or wrong. It is enough to check this after puts and
    /// acknowledgements, because without them no run is endless. At the end everything is acknowledged.
    pub(super) fn finishes(&self, state: &State, i: usize) -> bool {
        let mut state = State { visible: state.committed.map(until), ..state.clone() };
        for _ in 0..LONE_STEPS {
            match self.acts(&state, i).into_iter().next() {
                Some((_, after)) => state = after,
                None => return true,
            }
        }
        false
    }
}
