//! Readers that follow a partition from a cursor.

use crate::{
    judge::{Model, low},
    property::{Broken, Property},
    protocol::PageCheck,
    state::{Place, State},
    step::{Next, Step},
};

impl Model<'_> {
    /// A follower: rule 5. Its page is everything after its cursor.
    pub(crate) fn follow(&self, state: &State, writer: usize, next: &mut Vec<Next>) {
        let it = &state.writers[writer];
        let asked = self.command(writer, it.command).reads[0];
        let fence = self.count(state, asked.boundary, asked.types);
        let check = self.protocol.page_check;
        let number = low(writer);
        let mut after = *state;
        let place = &mut after.writers[writer].place;
        let step = match it.place {
            Place::Read { .. } if check == PageCheck::FenceBefore => {
                *place = Place::Counted { count: fence };
                Step::Fence { writer: number, count: fence }
            }
            Place::Page { count: None } if check == PageCheck::FenceAfter => {
                *place = Place::Page { count: Some(fence) };
                Step::Fence { writer: number, count: fence }
            }
            Place::Page { count } => {
                let have = low((it.seen[0] | it.seen[1]).count_ones());
                let accepts = count.is_none_or(|count| count == have);
                if accepts {
                    after.writers[writer].seen = [it.seen[0] | it.seen[1], 0];
                }
                self.begin(&mut after, writer);
                Step::Accept { writer: number, accepts }
            }
            at => {
                let count = if let Place::Counted { count } = at { Some(count) } else { None };
                let cursor = state.log.newest(it.seen[0]);
                let behind = state.log.events().iter().enumerate();
                let behind = behind.filter(|(_, event)| Some(event.position) <= cursor);
                let passed = behind.fold(0, |set, (n, _)| set | 1 << n);
                after.writers[writer].place = Place::Page { count };
                let newer = self.visible(state, &asked) & !passed;
                for page in self.results(&asked, newer) {
                    after.writers[writer].seen[1] = page;
                    let step = Step::Read { writer: number, clause: 0, got: page };
                    next.push(Next { step, state: after, broken: self.skipped(&after) });
                }
                return;
            }
        };
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
