//! Answers that append nothing.

use crate::{
    explore::Next,
    judge::{Failed, Model, low},
    property::Property,
    protocol::Validation,
    state::{Seen, State},
    step::{Step, Steps},
    world::Command,
};

impl Model<'_> {
    /// A rejection, or any other answer that appends nothing.
    pub(crate) fn answer(&self, state: &State, writer: usize, next: &mut Steps) {
        let it = &state.writers[writer];
        let command = self.command(writer, it.command);
        let number = low(writer);
        let failed = if self.protocol.validation == Validation::Kept {
            let open = (0..command.reads.len()).filter(|n| it.validated & 1 << n == 0);
            let one = open.clone().next().map(|n| (n, &command.reads[n..=n]));
            let failed = one.map_or(Failed::default(), |(n, reads)| {
                let alone = Seen { by_clause: [it.seen.by_clause[n], 0], ..it.seen };
                self.failed(state, &Command { reads, ..*command }, &alone, 0)
            });
            if failed == Failed::default() && open.count() > 1 {
                let mut after = *state;
                let clause = low(one.map_or(0, |(n, _)| n));
                after.writers[writer].validated |= 1 << clause;
                let step = Step::Validate { writer: number, clause };
                return next.push(Next::fine(step, after));
            }
            failed
        } else {
            self.validate(state, command, &it.seen)
        };
        let stands = failed == Failed::default();
        let folded = self.folded(state, command, &it.seen);
        let required = self.required(state, command);
        let events = state.log.events();
        let held = |length: u8| {
            // The log after each commit since the command began.
            let next = events.get(usize::from(length));
            next.is_none_or(|event| event.index == 0) && required & ((1 << length) - 1) == folded
        };
        let stale = stands && !(it.since..=state.log.len()).any(held);
        let wrong = !stands && self.knows_all(state, command, &it.seen);
        let mut after = *state;
        if stands {
            self.settle(&mut after, writer);
        } else {
            self.conflict(&mut after, writer, failed);
        }
        next.push(Next {
            step: Step::Answer { writer: number, failed },
            state: after,
            broken: Property::NoStaleRejection.when(stale) | Property::NoFalseConflict.when(wrong),
        });
    }

    /// The changes since the decision has `seen` this, if its validation shows them.
    pub(crate) fn validate(&self, state: &State, command: &Command, seen: &Seen) -> Failed {
        let ends_within = |p| {
            let end = state.log.at_slot(p, seen.slot(p));
            let next = state.log.at_slot(p, seen.slot(p) + 1);
            end.zip(next).is_some_and(|(end, next)| end.append == next.append)
        };
        let by_get_item = match (self.protocol.validation, command.reads) {
            (Validation::None, _) => return Failed::default(),
            (Validation::OneGetItem, [clause]) => clause.partition(),
            (_, [clause]) if self.fence_instead(clause).is_none() => {
                clause.partition().filter(|p| !ends_within(*p))
            }
            _ => None,
        };
        match by_get_item {
            Some(p) => {
                let next = state.log.at_slot(p, seen.slot(p) + 1);
                let slots = if next.is_some_and(|next| next.in_table) { p.bit() } else { 0 };
                Failed { slots, fences: false }
            }
            None => self.failed(state, command, seen, 0),
        }
    }
}
