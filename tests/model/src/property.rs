//! The properties.

/// A property. A step can violate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    /// A decision commits although it did not fold a committed event that its query matches.
    NoLostUpdate,
    /// A rejection is answered from a state that the log had at no moment since the command began.
    NoStaleRejection,
    /// One command has two effects.
    NoDoubleEffect,
    /// A command that took effect is answered without events, or with a part of its events.
    OneAnswer,
    /// The slots of a partition are 1, 2, 3, … in commit order.
    Dense,
    /// In each partition and under each fence, commit order is the order of `at`.
    Order,
    /// An event that a decision did not see, because it was later, has no earlier `at`. This is not promised.
    OrderAcross,
    /// An effect's `at` is larger than the `at` of its cause and of all events that it was decided from, except for
    /// events of other boundaries that are far ahead.
    CauseFirst,
    /// An event far ahead of all clocks is in a boundary that was far ahead before.
    NotCarried,
    /// A decision folds by `at`, partition, slot.
    FoldOrder,
    /// A writer that knows everything in the boundaries that it read has no conflict.
    NoFalseConflict,
    /// A lone writer with fresh reads commits.
    NoPermanentConflict,
    /// The index has each event once, in slot order, and in the end all of them.
    Indexed,
    /// A repair that ends in order leaves a right fence, and `verify` doubts no right one.
    RightFence,
}

/// A set of properties, one bit each.
pub type Broken = u16;

impl Property {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::NoLostUpdate,
        Self::NoStaleRejection,
        Self::NoDoubleEffect,
        Self::OneAnswer,
        Self::Dense,
        Self::Order,
        Self::OrderAcross,
        Self::CauseFirst,
        Self::NotCarried,
        Self::FoldOrder,
        Self::NoFalseConflict,
        Self::NoPermanentConflict,
        Self::Indexed,
        Self::RightFence,
    ];

    /// The set of this one, if `broken`.
    pub(crate) fn when(self, broken: bool) -> Broken {
        u16::from(broken) << self as u16
    }

    /// Whether it concerns decisions on changed facts, and not order or progress.
    pub fn is_safety(self) -> bool {
        self.name().ends_with("(safety)")
    }

    /// Its name and its kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoLostUpdate => "no lost update (safety)",
            Self::NoStaleRejection => "no stale rejection (safety)",
            Self::NoDoubleEffect => "no double effect (safety)",
            Self::OneAnswer => "a repeat gets the events of the first run (safety)",
            Self::Dense => "slots without gaps (safety)",
            Self::Order => "commit order is the order of `at` (order)",
            Self::OrderAcross => "what comes later folds later (not promised)",
            Self::CauseFirst => "effect after cause (order)",
            Self::NotCarried => "no boundary is carried far ahead by another (order)",
            Self::FoldOrder => "events are folded in order (order)",
            Self::NoFalseConflict => "no false conflict (progress)",
            Self::NoPermanentConflict => "no permanent conflict (progress)",
            Self::Indexed => "the index has each event once, in slot order (feed)",
            Self::RightFence => "a repaired fence is right (repair)",
        }
    }
}
