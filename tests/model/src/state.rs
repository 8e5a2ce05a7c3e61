//! The state of the model. Fences are not a part of it: the transaction that puts an event updates its fences, so a
//! fence's content is a function of the log.

use std::hash::{Hash, Hasher};

use crate::world::{CLAUSES_MAX, PARTITIONS, Partition, SHAPES, Shape};

/// A log has at most this many events.
const LOG_MAX: usize = 12;
/// A scenario has at most this many writers.
pub(crate) const WRITERS_MAX: usize = 5;
/// At most this many requests have lost answers and are not settled.
const IN_FLIGHT_MAX: usize = 2;

/// A set of events, one bit for each index of the log.
pub(crate) type Events = u16;

/// A slot for each partition.
pub(crate) type Slots = [u8; PARTITIONS];

/// A committed event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub shape: u8,
    pub slot: u8,
    pub at: u8,
    /// Its writer, and the number of the writer's append.
    pub append: (u8, u8),
    /// The index in its append.
    pub index: u8,
    pub in_table: bool,
    pub in_index: bool,
    /// Whether no fence counts it.
    pub unfiled: bool,
}

impl Event {
    pub(crate) fn shape(&self) -> &'static Shape {
        &SHAPES[usize::from(self.shape)]
    }

    pub(crate) fn is_in(&self, partition: Partition) -> bool {
        self.shape().partition == partition
    }

    /// Its place in a fold.
    pub(crate) fn order(&self) -> (u8, u8, u8) {
        (self.at, self.shape().partition as u8, self.slot)
    }
}

/// All committed events in commit order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Log {
    events: [Event; LOG_MAX],
    len: u8,
}

impl Log {
    pub(crate) fn push(&mut self, event: Event) {
        self.events[usize::from(self.len)] = event;
        self.len += 1;
    }

    pub(crate) fn len(&self) -> u8 {
        self.len
    }

    pub(crate) fn events(&self) -> &[Event] {
        &self.events[..usize::from(self.len)]
    }

    pub(crate) fn events_mut(&mut self) -> &mut [Event] {
        &mut self.events[..usize::from(self.len)]
    }

    /// The events of `events`, in commit order.
    pub(crate) fn pick(&self, events: Events) -> impl Iterator<Item = &Event> {
        self.events().iter().enumerate().filter(move |(n, _)| events & 1 << n != 0).map(|(_, e)| e)
    }

    /// The events that are `wanted`.
    pub(crate) fn select(&self, wanted: impl Fn(&Event) -> bool) -> Events {
        let events = self.events().iter().enumerate();
        events.fold(0, |set, (n, event)| set | Events::from(wanted(event)) << n)
    }

    pub(crate) fn newest(&self, events: Events) -> Option<u8> {
        self.pick(events).map(|event| event.at).max()
    }

    /// The event in a slot.
    pub(crate) fn at_slot(&self, partition: Partition, slot: u8) -> Option<&Event> {
        self.events().iter().find(|event| event.slot == slot && event.is_in(partition))
    }

    /// The last slot of a partition.
    pub(crate) fn last_slot(&self, partition: Partition) -> u8 {
        let slots = self.events().iter().filter(|event| event.is_in(partition)).map(|e| e.slot);
        slots.max().unwrap_or(0)
    }
}

impl Hash for Log {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        for event in self.events() {
            let flags = u8::from(event.in_table) | u8::from(event.in_index) << 1;
            let append = event.append.0 << 4 | event.append.1;
            let word = [event.shape << 4 | event.slot, event.at, append, event.index << 2 | flags];
            hasher.write_u32(u32::from_le_bytes(word));
        }
    }
}

/// The next action of a writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// Choose a snapshot.
    Start,
    /// Read a clause.
    Read { clause: u8 },
    /// Find the last slots of partitions that were not read, and mint; or answer a rejection.
    Ready,
    /// Mint: the last slots are known.
    Again,
    /// Send the minted append.
    Minted { at: u8 },
    /// Read the tails of these partitions.
    Tail { partitions: u8 },
    /// Nothing: all commands are settled, or there is none.
    #[default]
    Done,
    /// Nothing: too many conflicts.
    GaveUp,
}

impl Place {
    pub(crate) const READ: Self = Self::Read { clause: 0 };

    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::GaveUp)
    }

    /// Whether an attempt ends here.
    pub(crate) fn ends_attempt(self) -> bool {
        self.is_over() || self == Self::READ || matches!(self, Self::Tail { .. })
    }
}

/// The knowledge of a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Seen {
    /// The events that each clause returned.
    pub by_clause: [Events; CLAUSES_MAX],
    /// Those of them that the decision did not fold although it read them.
    pub passed_over: Events,
    /// For a partition that is read: slot m. For one that is only written: the last slot.
    pub slots: Slots,
}

impl Seen {
    /// Everything that was returned, each event once.
    pub(crate) fn known(&self) -> Events {
        self.by_clause.iter().fold(0, |all, events| all | events)
    }

    pub(crate) fn slot(&self, partition: Partition) -> u8 {
        self.slots[partition as usize]
    }

    pub(crate) fn slot_mut(&mut self, partition: Partition) -> &mut u8 {
        &mut self.slots[partition as usize]
    }
}

/// A writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Writer {
    pub place: Place,
    /// The index of its command.
    pub command: u8,
    pub seen: Seen,
    /// While it reads: the events in its snapshot.
    pub recalled: Events,
    /// Known events that it does not search for those of an earlier run.
    pub unsearched: Events,
    /// Clauses of a rejection that were validated one by one, one bit each.
    pub validated: u8,
    /// The lower bound of the next mint: after its own last, and after what refused it.
    pub floor: u8,
    pub conflicts: u8,
    /// Commands begun, also after a crash: part of the `appendId`.
    pub round: u8,
    pub answers_lost: u8,
    /// The length of the log when a rejection began.
    pub since: u8,
}

/// An append as sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Transaction {
    pub writer: u8,
    pub command: u8,
    pub round: u8,
    /// The `at` of the first event.
    pub at: u8,
    pub seen: Seen,
}

impl Transaction {
    /// Writer 0 has committed the events at the start.
    pub(crate) fn append(&self) -> (u8, u8) {
        (self.writer + 1, self.round)
    }
}

/// A state of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub log: Log,
    pub writers: [Writer; WRITERS_MAX],
    pub in_flight: [Option<Transaction>; IN_FLIGHT_MAX],
    /// Commands with an effect, one bit each.
    pub effects: u16,
    /// The reading of the one clock.
    pub now: u8,
}

impl State {
    pub(crate) fn effect(transaction: &Transaction) -> u16 {
        1 << (transaction.writer * 2 + transaction.command)
    }
}
