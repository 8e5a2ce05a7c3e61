//! The possible behaviour of the clocks, the table, its indexes and the network.

/// A writer follows a time without need if it is at most this far ahead of its clock. Clocks differ by less.
pub const FOLLOWED: u8 = 50;
/// In [`Environment::ahead`], events are this far ahead of all clocks.
pub const AHEAD: u8 = 100;

/// The source of the events' `at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// One clock for all; mint and commit are one step.
    Perfect,
    /// One clock for all. An `at` can be minted long before its commit.
    Late,
    /// Any reading from 1 to this, at each mint: any skew, and any late commit.
    Skewed(u8),
}

/// The part of the committed events that a Query returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// All of them.
    Fresh,
    /// The visible ones: items become visible one by one, in any order, arbitrarily late.
    PerItem,
    /// Any subset, another one at every read.
    Subset,
}

/// The fate of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// It arrives.
    Arrive,
    /// It is lost once per writer, and the request is committed at any later time or never. No command has a key.
    Lost,
    /// As before, or the writer crashes and its command is decided again. Each command has a key.
    LostOrCrashed,
}

/// One environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Environment {
    /// Its name in reports.
    pub name: &'static str,
    /// The source of the events' `at`.
    pub clocks: Clocks,
    /// Queries of partitions.
    pub table: View,
    /// Queries by cross-partition and composite tags.
    pub index: View,
    /// The fate of answers of appends.
    pub answers: Answers,
    /// A command can begin with a snapshot: the events at an earlier moment, or its own.
    pub snapshots: bool,
    /// A command gives up after this many conflicts.
    pub conflicts_max: u8,
    /// The first events are [`AHEAD`] of all clocks.
    pub ahead: bool,
    /// A command's reads and its append are one step. With [`View::Subset`] nothing is lost by it: a subset of what was
    /// committed at the read is a subset of what is committed at the append.
    pub fused: bool,
}

const PERFECT: Environment = Environment {
    name: "perfect clock, fresh reads",
    clocks: Clocks::Perfect,
    table: View::Fresh,
    index: View::Fresh,
    answers: Answers::Arrive,
    snapshots: false,
    conflicts_max: 1,
    ahead: false,
    fused: false,
};

/// One clock for all, and appends that are committed late.
pub const LATE: Environment =
    Environment { name: "perfect clock, late commits", clocks: Clocks::Late, ..PERFECT };

/// Any clocks, and reads that show everything.
pub const SKEWED: Environment =
    Environment { name: "skewed clocks", clocks: Clocks::Skewed(3), ..PERFECT };

/// The items of a transaction become visible one by one.
pub const PER_ITEM: Environment = Environment {
    name: "skewed clocks, transactions visible item by item",
    table: View::PerItem,
    index: View::PerItem,
    ..SKEWED
};

/// Any subset at every read: everything that any other environment can show.
pub const SUBSETS: Environment = Environment {
    name: "skewed clocks, every read any subset",
    table: View::Subset,
    index: View::Subset,
    ..SKEWED
};

/// [`SUBSETS`] with snapshots.
pub const SNAPSHOTS: Environment = Environment {
    name: "clocks of 2 readings, every read any subset, snapshots",
    clocks: Clocks::Skewed(2),
    snapshots: true,
    ..SUBSETS
};

/// [`SUBSETS`] with the reads and the append of a command in one step.
pub const FUSED: Environment = Environment {
    name: "skewed clocks, every read any subset, read and append one step",
    fused: true,
    ..SUBSETS
};

/// [`FUSED`] with fewer readings, for many writers.
pub const WIDE: Environment = Environment {
    name: "clocks of 2 readings, every read any subset, read and append one step",
    clocks: Clocks::Skewed(2),
    ..FUSED
};

/// Answers get lost.
pub const LOST: Environment =
    Environment { name: "late commits, answers lost", answers: Answers::Lost, ..LATE };

/// Answers get lost, writers crash, and commands have keys.
pub const CRASHED: Environment = Environment {
    name: "late commits, answers lost, writers crash, commands with keys",
    answers: Answers::LostOrCrashed,
    ..LATE
};

/// [`LOST`], and every read returns any subset.
pub const LOST_SUBSETS: Environment = Environment {
    name: "late commits, every read any subset, answers lost",
    table: View::Subset,
    index: View::Subset,
    ..LOST
};

/// [`CRASHED`] with snapshots: a warm handler gets the repeat.
pub const CRASHED_SNAPSHOTS: Environment = Environment {
    name: "late commits, answers lost, writers crash, commands with keys, snapshots",
    snapshots: true,
    ..CRASHED
};

/// [`CRASHED`], and every read returns any subset.
pub const CRASHED_SUBSETS: Environment = Environment {
    name: "late commits, every read any subset, answers lost, writers crash, commands with keys",
    answers: Answers::LostOrCrashed,
    ..LOST_SUBSETS
};

/// [`SUBSETS`] beside events of a clock that was far ahead.
pub const WRONG: Environment = Environment {
    name: "skewed clocks, every read any subset, events far ahead",
    ahead: true,
    ..SUBSETS
};

/// From the most benign to the most hostile.
pub const ENVIRONMENTS: [Environment; 10] = [
    PERFECT,
    LATE,
    SKEWED,
    Environment { name: "skewed clocks, index item by item", index: View::PerItem, ..SKEWED },
    PER_ITEM,
    Environment { name: "perfect clock, fresh reads, snapshots", snapshots: true, ..PERFECT },
    SUBSETS,
    SNAPSHOTS,
    LOST,
    CRASHED,
];
