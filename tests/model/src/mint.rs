//! Times: the time of the next mint, and the times that it follows.

use crate::{
    environment::FOLLOWED,
    judge::Model,
    protocol::Follow,
    state::{Events, State},
    world::{Command, Partition},
};

impl Model<'_> {
    /// The `at` of the event that caused `command`, once it is committed.
    pub(crate) fn cause(&self, state: &State, command: &Command) -> Option<u8> {
        let writer = command.cause? + 1;
        let mut events = state.log.events().iter();
        events.rfind(|event| event.append.0 == writer).map(|event| event.at)
    }

    /// The `at` of the next mint at this reading of the clock.
    pub(crate) fn mint(&self, state: &State, writer: usize, reading: u8) -> u8 {
        let it = &state.writers[writer];
        if !self.protocol.hybrid_clock {
            // Only the time that the guard returned raises the clock.
            return reading.max(it.floor);
        }
        let command = self.command(writer, it.command);
        let unread = self.own(command) & !command.read_partitions();
        let predecessors = Partition::ALL.into_iter().filter(|p| unread & p.bit() != 0);
        let predecessors = predecessors.filter_map(|p| state.log.at_slot(p, it.seen.slot(p)));
        let predecessor = predecessors.map(|event| event.at).max();
        let beside = self.beside(state, command);
        let followed = state.log.select(|event| event.at <= reading + FOLLOWED);
        let followed = match self.protocol.follow {
            Follow::Written => followed | beside,
            Follow::All => Events::MAX,
            Follow::Near => followed,
        };
        let newest = state
            .log
            .newest(it.seen.known() & followed)
            .max(self.cause(state, command))
            .max(predecessor.filter(|_| self.protocol.predecessor));
        reading.max(it.floor).max(newest.map_or(0, |at| at + 1))
    }

    /// The events of the boundaries that `command` writes to.
    pub(crate) fn beside(&self, state: &State, command: &Command) -> Events {
        let (own, files) = (self.own(command), self.files(command));
        state.log.select(|event| {
            own & event.shape().partition.bit() != 0
                || self.filed[usize::from(event.shape)] & files != 0
        })
    }
}
