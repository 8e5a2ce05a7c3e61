//! Commands with keys: the place of their records, and the answer to a repeat. Each writer has one command then.

use crate::{
    environment::Answers,
    explore::Next,
    judge::{Failed, Model, low},
    property::Property,
    protocol::InEvents,
    state::{Events, State},
    step::{Step, Steps},
    world::{Clause, Command, F, SHAPES, Shape},
};

impl Model<'_> {
    fn has_keys(&self) -> bool {
        self.environment.answers == Answers::LostOrCrashed
    }

    /// Whether the events of `command` are its record.
    fn in_events(&self, command: &Command) -> bool {
        let shows = |clause: &Clause, shape: &Shape| {
            let reads = clause.partition() == Some(shape.partition);
            let by_fence = clause.types & !F == 0 && shape.partition.fence().is_some();
            match self.protocol.in_events {
                InEvents::Written => true,
                InEvents::Read => reads,
                InEvents::Shown => reads && (!by_fence || clause.types & shape.event_type != 0),
            }
        };
        let mut shapes = command.writes.iter().map(|&shape| &SHAPES[usize::from(shape)]);
        shapes.all(|shape| command.reads.iter().any(|clause| shows(clause, shape)))
    }

    /// Whether a command item is the record of `command`.
    pub(crate) fn has_item(&self, command: &Command) -> bool {
        self.has_keys() && self.protocol.command_item && !self.in_events(command)
    }

    /// The committed events of the writer's command.
    fn own_events(state: &State, writer: usize) -> Events {
        state.log.select(|event| event.append.0 == low(writer) + 1)
    }

    /// The writer's known events, if they are a record.
    pub(crate) fn found(&self, state: &State, writer: usize) -> Events {
        let it = &state.writers[writer];
        let command = self.command(writer, it.command);
        if !self.has_keys() || !self.in_events(command) {
            return 0;
        }
        let read = state.log.select(|e| command.read_partitions() & e.shape().partition.bit() != 0);
        Self::own_events(state, writer) & read & it.seen.known() & !it.unsearched
    }

    /// The command took effect before. Its events are the answer, if all of them were seen.
    pub(crate) fn repeat(&self, state: &State, writer: usize, next: &mut Steps) {
        let it = &state.writers[writer];
        let command = self.command(writer, it.command);
        let failed = match self.protocol.validates_repeats {
            true => self.validate(state, command, &it.seen),
            false => Failed::default(),
        };
        let stands = failed == Failed::default();
        let partial = Self::own_events(state, writer) & !self.found(state, writer) != 0;
        let wrong = !stands && self.knows_all(state, command, &it.seen);
        let step = Step::Repeat { writer: low(writer), failed };
        let mut after = *state;
        if stands {
            self.settle(&mut after, writer);
        } else {
            self.conflict(&mut after, writer, failed);
        }
        let broken =
            Property::OneAnswer.when(stands && partial) | Property::NoFalseConflict.when(wrong);
        next.push(Next { step, state: after, broken });
    }

    /// After a crash the facts may differ, so the command appends nothing now.
    pub(crate) fn decline(&self, state: &State, writer: usize, next: &mut Steps) {
        let it = &state.writers[writer];
        let command = self.command(writer, it.command);
        if !self.has_keys() || it.answers_lost == 0 || !command.is_conditional() {
            return;
        }
        let failed = self.validate(state, command, &it.seen);
        let mut after = *state;
        let mut broken = 0;
        let mut recorded = false;
        if failed == Failed::default() {
            let effect = Self::own_events(state, writer) != 0;
            recorded = effect && self.has_item(command) && self.protocol.item_before_rejection;
            broken = Property::OneAnswer.when(effect && !recorded);
            self.settle(&mut after, writer);
        } else {
            self.conflict(&mut after, writer, failed);
        }
        let step = Step::Decline { writer: low(writer), failed, recorded };
        next.push(Next { step, state: after, broken });
    }
}
