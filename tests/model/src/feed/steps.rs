//! The next steps of an indexer, and the checks after them.

use std::cmp::Reverse;

use super::{
    indexer::{Indexer, MARK, Turn},
    pages::{Lease, Page, Progress, Request, Sets, is_prefix, parts, size, until},
    rules::{PARTITIONS, Rules, Scenario},
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
    Take(usize, bool),
    Check(usize, Lease),
    Find(usize),
    Follow(usize),
    Look(usize),
    Progress(usize, usize),
    Read(usize),
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
        let (rules, it) = (self.rules, state.indexers[i]);
        let with = |act: &dyn Fn(&mut Indexer)| {
            let mut after = state.clone();
            act(&mut after.indexers[i]);
            after
        };
        match it.turn {
            Turn::Take => {
                let fits = |images: &Sets| (1..=BATCH_MAX).contains(&size(*images));
                let mut batches: Vec<_> = parts(state.images).filter(fits).collect();
                batches.sort_by_key(|images| Reverse(size(*images)));
                let take = |(leased, images)| {
                    let mut after = with(&|it| it.take(images, leased, rules));
                    for (due, taken) in after.images.iter_mut().zip(images) {
                        *due &= !if rules.waits { 0 } else { taken };
                    }
                    (Step::Take(i, leased), after)
                };
                let alone = batches.iter().map(|images| (false, *images));
                let leased = batches.iter().map(|images| (true, *images));
                alone.chain(leased.filter(|_| self.scenario.leased)).map(take).collect()
            }
            Turn::Check { left } => {
                let check = |lease: Lease| {
                    let (end, p) = lease;
                    let found = (state.progress[p], state.ends[p]);
                    (Step::Check(i, lease), with(&|it| it.check(end, found, left, rules)))
                };
                let early = |p: &usize| !rules.lease_first && left & 1 << p != 0;
                let read = |p: usize| {
                    let after = with(&|it| it.read_progress(p, state.progress[p], left, rules));
                    (Step::Progress(i, p), after)
                };
                let reads = (0..PARTITIONS).filter(early).map(read);
                self.leases().map(check).chain(reads).collect()
            }
            Turn::Find => {
                let last = state.pages.last().copied();
                vec![(Step::Find(i), with(&|it| it.find(last, rules)))]
            }
            Turn::Follow => {
                let pages: Vec<_> =
                    state.pages.iter().copied().filter(|page| Some(page.place) >= it.end).collect();
                let last = state.pages.last().copied();
                let find = || (Step::Find(i), with(&|it| it.find(last, rules)));
                let find = self.scenario.far.then(find);
                let follow = (Step::Follow(i), with(&|it| it.follow(&pages, rules)));
                [follow].into_iter().chain(find).collect()
            }
            Turn::Progress { left } => {
                let look = || (Step::Look(i), with(&|it| it.look(&state.progress, left, rules)));
                let look = (left & MARK != 0).then(look);
                let read = |p: usize| {
                    let found = state.progress[p];
                    let after = with(&|it| it.read_progress(p, found, left, rules));
                    (Step::Progress(i, p), after)
                };
                let reads = (0..PARTITIONS).filter(|p| left & 1 << p != 0).map(read);
                look.into_iter().chain(reads).collect()
            }
            Turn::Settle => {
                let settle = |p: usize| {
                    let request = Request::Move(p, it.moves[p], it.mark() == Some(p));
                    let mut after = with(&|it| it.moved(p, rules));
                    after.apply(request, rules);
                    (Step::Send(i, request, true), after)
                };
                let due = |p: &usize| it.moves[*p] != Progress::default();
                let others = |p: &usize| !rules.mark_last || Some(*p) != it.mark();
                let mut moves: Vec<_> = (0..PARTITIONS).filter(due).filter(others).collect();
                if moves.is_empty() {
                    moves.extend(it.mark());
                }
                moves.into_iter().map(settle).collect()
            }
            Turn::Read => {
                let seen = std::array::from_fn(|p| state.visible[p]);
                vec![(Step::Read(i), with(&|it| it.read(seen, rules)))]
            }
            Turn::Put => {
                let fresh: Sets = std::array::from_fn(|p| it.fresh(p, rules));
                let place = it.end.unwrap_or(0);
                let put = |events| {
                    let page = Page { place, events };
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
                pages.into_iter().map(put).collect()
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

    /// What the lease may say: anything, because a lease may be lost, taken over, late, old or wrong.
    fn leases(&self) -> impl Iterator<Item = Lease> {
        let events = self.scenario.appends.iter().flatten().sum::<u8>();
        (1..=events).flat_map(|end| (0..PARTITIONS).map(move |p| (end, p)))
    }

    /// Whether the index lacks an event, has one twice or out of order, or lacks an acknowledged image.
    pub(super) fn is_wrong(state: &State) -> bool {
        let fine = state.indexed().is_some_and(|slots| {
            let missing =
                |p: usize| until(state.committed[p]) & !state.images[p] & !until(slots[p]);
            (0..PARTITIONS).all(|p| missing(p) == 0)
        });
        !fine
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
