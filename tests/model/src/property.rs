//! What must never happen.

/// A property, and with it the violation that a step can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    /// A decision commits although a committed event that its query matches was not folded.
    NoLostUpdate,
    /// A refusal is answered from a state that the log had at no moment since the command began.
    NoStaleRefusal,
    /// One command id has two effects.
    NoDoubleEffect,
    /// A reader's accepted cursor has passed an event that the reader did not get.
    NoSkippedEvent,
    /// In each boundary commit order is position order.
    Order,
    /// An effect's position exceeds those of all events that it was decided from, and of its cause.
    CauseFirst,
    /// Who folded every matching event is not refused for a conflict.
    NoFalseConflict,
    /// A lone writer with fresh reads commits.
    NoPermanentConflict,
}

/// A set of properties, one bit each.
pub type Broken = u8;

impl Property {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::NoLostUpdate,
        Self::NoStaleRefusal,
        Self::NoDoubleEffect,
        Self::NoSkippedEvent,
        Self::Order,
        Self::CauseFirst,
        Self::NoFalseConflict,
        Self::NoPermanentConflict,
    ];

    /// The set of this one, if `broken`.
    pub(crate) fn when(self, broken: bool) -> Broken {
        u8::from(broken) << self as u8
    }

    /// Whether it is about decisions on facts that have changed, and not about order or progress.
    pub fn is_safety(self) -> bool {
        self.name().ends_with("(safety)")
    }

    /// What it is called, and its kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoLostUpdate => "no lost update (safety)",
            Self::NoStaleRefusal => "no stale refusal (safety)",
            Self::NoDoubleEffect => "no double effect (safety)",
            Self::NoSkippedEvent => "a cursor skips nothing (order)",
            Self::Order => "commit order is position order (order)",
            Self::CauseFirst => "effect after cause (order)",
            Self::NoFalseConflict => "no false conflict (progress)",
            Self::NoPermanentConflict => "no permanent conflict (progress)",
        }
    }
}
