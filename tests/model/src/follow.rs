//! Readers that follow a partition from a cursor.

use crate::{
    environment::View,
    judge::{Model, low},
    property::{Broken, Property},
    protocol::PageCheck,
    state::{Events, Fence, Place, Position, State},
    step::{Next, Step, results},
};

impl Model<'_> {
    /// A follower: rule 5. Its page is everything after its cursor.
    pub(crate) fn follow(&self, state: &State, writer: usize, next: &mut Vec<Next>) {
        match (state.writers[writer].place, self.protocol.page_check) {
            (Place::Read { .. }, PageCheck::FenceBefore) => {
                self.read_fence(state, writer, next, |fence| Place::Counted { fence });
            }
            (Place::Page { fence: None }, PageCheck::None) => {
                self.accept(state, writer, None, next);
            }
            (Place::Page { fence: None }, _) => {
                self.read_fence(state, writer, next, |fence| Place::Page { fence: Some(fence) });
            }
            (Place::Page { fence }, _) => self.accept(state, writer, fence, next),
            (Place::Counted { fence }, _) => self.read_page(state, writer, Some(fence), next),
            _ => self.read_page(state, writer, None, next),
        }
    }

    fn read_fence(
        &self,
        state: &State,
        writer: usize,
        next: &mut Vec<Next>,
        then: impl Fn(Fence) -> Place,
    ) {
        let clause = &self.command(writer, state.writers[writer].command).reads[0];
        let now = state.log.len();
        let as_of_now = self.protocol.fence_in_transaction || self.environment.table == View::Fresh;
        let oldest = if as_of_now { now } else { 0 };
        for commits in oldest..=now {
            // Between two transactions.
            let event = state.log.events().get(usize::from(commits));
            if event.is_some_and(|event| !event.position.is_first()) {
                continue;
            }
            let fence = self.fence(state, clause, commits);
            let mut after = *state;
            after.writers[writer].place = then(fence);
            let step = Step::Fence { writer: low(writer), fence };
            next.push(Next { step, state: after, broken: 0 });
        }
    }

    fn read_page(&self, state: &State, writer: usize, fence: Option<Fence>, next: &mut Vec<Next>) {
        let it = &state.writers[writer];
        let clause = &self.command(writer, it.command).reads[0];
        let cursor = state.log.newest(it.seen[0]);
        let passed = until(state, cursor);
        let newer = self.visible_in_table(state, clause) & !passed;
        for page in results(self.environment.table, newer) {
            let mut after = *state;
            after.writers[writer].place = Place::Page { fence };
            after.writers[writer].seen[1] = page;
            let step = Step::Read { writer: low(writer), clause: 0, got: page };
            next.push(Next { step, state: after, broken: 0 });
        }
    }

    /// Accepts what `fence` says is all, or reads again.
    fn accept(&self, state: &State, writer: usize, fence: Option<Fence>, next: &mut Vec<Next>) {
        let [accepted, page] = state.writers[writer].seen;
        let check = self.protocol.page_check;
        let cut = match fence {
            Some(fence) if check == PageCheck::Cut => page & until(state, fence.head),
            _ => page,
        };
        let counted = (accepted | cut).count_ones();
        let accepts = fence.is_none_or(|fence| u32::from(fence.count) == counted);
        let mut after = *state;
        if accepts {
            after.writers[writer].seen[0] |= cut;
        }
        self.begin(&mut after, writer);
        let reads_on = matches!(check, PageCheck::Cut | PageCheck::Whole);
        if let (false, true, Some(fence)) = (accepts, reads_on, fence) {
            after.writers[writer].place = Place::Counted { fence };
        }
        let step = Step::Accept { writer: low(writer), accepted: accepts.then_some(cut) };
        next.push(Next { step, state: after, broken: self.skipped(&after) });
    }

    /// Whether a follower's cursor has passed an event that it did not get.
    pub(crate) fn skipped(&self, state: &State) -> Broken {
        let followers = self.scenario.writers.iter().zip(&state.writers);
        let skipped =
            followers.filter(|(commands, _)| commands[0].follows).any(|(commands, it)| {
                let cursor = state.log.newest(it.seen[0]);
                let missed = self.matching(state, &commands[0].reads[0]) & !it.seen[0];
                state.log.pick(missed).any(|event| Some(event.position) <= cursor)
            });
        Property::NoSkippedEvent.when(skipped)
    }
}

/// The committed events that are not after `position`.
fn until(state: &State, position: Option<Position>) -> Events {
    let events = state.log.events().iter().enumerate();
    let until = events.filter(|(_, event)| Some(event.position) <= position);
    until.fold(0, |set, (n, _)| set | 1 << n)
}
