//! The state of the model. Fences are no part of it: the transaction that puts an event updates its
//! fences, so what a fence holds is a function of the log.

use std::hash::{Hash, Hasher};

use crate::world::CLAUSES_MAX;

/// Most events of a log.
pub const LOG_MAX: usize = 12;
/// Most writers and readers of a scenario.
pub const WRITERS_MAX: usize = 5;
/// Most requests whose answers are lost and that are not settled.
pub const IN_FLIGHT_MAX: usize = 2;

/// A set of events, one bit for each place in the log.
pub type Events = u16;

/// A position: milliseconds, then who minted it, then the place in its transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(u16);

impl Position {
    pub(crate) fn new(ms: u8, writer: u8, round: u8, index: u8) -> Self {
        debug_assert!(writer < 8 && round < 8 && index < 4, "a position has room for these");
        Self(u16::from(ms) << 8 | u16::from(writer) << 5 | u16::from(round) << 2 | u16::from(index))
    }

    pub(crate) fn ms(self) -> u8 {
        self.0.to_be_bytes()[0]
    }

    pub(crate) fn writer(self) -> u8 {
        self.0.to_be_bytes()[1] >> 5
    }

    pub(crate) fn is_first(self) -> bool {
        self.0 & 3 == 0
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let minter = match self.writer() {
            0 => "0".to_owned(),
            writer => format!("w{writer}"),
        };
        write!(f, "{}-{minter}", self.ms())?;
        if self.is_first() { Ok(()) } else { write!(f, "-{}", self.0 & 3) }
    }
}

/// A committed event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Event {
    pub position: Position,
    pub shape: u8,
    pub in_table: bool,
    pub in_index: bool,
    pub unfiled: bool,
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

    /// Those of `events`, in commit order.
    pub(crate) fn pick(&self, events: Events) -> impl Iterator<Item = &Event> {
        self.events().iter().enumerate().filter(move |(n, _)| events & 1 << n != 0).map(|(_, e)| e)
    }

    pub(crate) fn newest(&self, events: Events) -> Option<Position> {
        self.pick(events).map(|event| event.position).max()
    }
}

impl Hash for Log {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        for event in self.events() {
            let flags = u8::from(event.in_table) | u8::from(event.in_index) << 1;
            let word = u32::from(event.position.0) << 16 | u32::from(event.shape) << 8;
            hasher.write_u32(word | u32::from(flags));
        }
    }
}

/// What a follower reads of a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Fence {
    pub count: u8,
    /// The newest position of any type.
    pub head: Option<Position>,
}

/// What a writer does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// Read clause `clause`, the events after `after`.
    Read { clause: u8, after: Position },
    /// Mint, or answer a refusal.
    Ready,
    /// Send what was minted.
    Minted { ms: u8 },
    /// A follower has a page and, once it was read, what the fence said.
    Page { fence: Option<Fence> },
    /// A follower knows what the fence said and has no page yet, or none with these counts.
    Counted { fence: Fence },
    /// Nothing: all commands are settled, or there is none.
    #[default]
    Done,
    /// Nothing: too many conflicts.
    GaveUp,
}

impl Place {
    pub(crate) const START: Self = Self::Read { clause: 0, after: Position(0) };

    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::GaveUp)
    }
}

/// A writer, or a reader that follows a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Writer {
    pub place: Place,
    /// Which of its commands.
    pub command: u8,
    /// What each clause returned. Of a follower: accepted, and the page.
    pub seen: [Events; CLAUSES_MAX],
    /// Milliseconds that the next mint exceeds: its own last, and fences that refused it.
    pub floor: u8,
    pub conflicts: u8,
    /// Commands begun, those begun again after a crash included: part of the position.
    pub round: u8,
    pub answers_lost: u8,
    /// Length of the log when a refusal began.
    pub since: u8,
}

/// An append as sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Transaction {
    pub writer: u8,
    pub command: u8,
    pub round: u8,
    pub ms: u8,
    pub seen: [Events; CLAUSES_MAX],
}

impl Transaction {
    pub(crate) fn position(&self, index: u8) -> Position {
        // Writer 0 is who committed what was there before.
        Position::new(self.ms, self.writer + 1, self.round, index)
    }

    /// All events that its decision folded.
    pub(crate) fn folded(&self) -> Events {
        self.seen.iter().fold(0, |all, seen| all | seen)
    }
}

/// A state of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub log: Log,
    pub writers: [Writer; WRITERS_MAX],
    pub in_flight: [Option<Transaction>; IN_FLIGHT_MAX],
    /// Commands with an effect, a bit each.
    pub effects: u16,
    /// Reading of the one clock.
    pub now: u8,
}

impl State {
    pub(crate) fn effect(transaction: &Transaction) -> u16 {
        1 << (transaction.writer * 2 + transaction.command)
    }
}
