//! What the clocks, the table, its indexes and the network may do.

/// How positions get their milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// One clock for all; position and commit are one step.
    Perfect,
    /// One clock for all; a position can be minted long before its commit.
    Late,
    /// Any reading from 1 to this, at each mint: any skew, and any late commit.
    Skewed(u8),
}

/// What a Query returns of the committed events that it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// All of them.
    Fresh,
    /// Those that became visible: item by item, in any order, arbitrarily late.
    PerItem,
    /// Any subset, another one at every read.
    Subset,
}

/// What can happen to an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// It arrives.
    Arrive,
    /// It is lost once per writer, and the request is committed at any later time or never; the
    /// writer sends the same transaction again.
    LostThenResent,
    /// As before, or the writer crashes and its command is decided anew under the same id.
    LostThenRestarted,
}

/// One environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Environment {
    /// What it is called in reports.
    pub name: &'static str,
    /// How positions get their milliseconds.
    pub clocks: Clocks,
    /// Queries of partitions.
    pub table: View,
    /// Queries by cross-partition and composite tags.
    pub index: View,
    /// Queries return one item a page, and anything can happen between pages.
    pub pages: bool,
    /// What can happen to answers of appends.
    pub answers: Answers,
    /// Conflicts after which a command gives up.
    pub conflicts_max: u8,
    /// A command's reads and its append are one step. With [`View::Subset`] nothing is lost by it: a
    /// subset of what was committed at the read is a subset of what is committed at the append.
    pub fused: bool,
}

const PERFECT: Environment = Environment {
    name: "perfect clock, fresh reads",
    clocks: Clocks::Perfect,
    table: View::Fresh,
    index: View::Fresh,
    pages: false,
    answers: Answers::Arrive,
    conflicts_max: 1,
    fused: false,
};

const SKEWED: Environment = Environment { clocks: Clocks::Skewed(3), ..PERFECT };

/// Any subset at every read: everything that any other environment can show.
pub const SUBSETS: Environment = Environment {
    name: "skewed clocks, every read any subset",
    table: View::Subset,
    index: View::Subset,
    ..SKEWED
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

/// From the most benign to the most hostile.
pub const ENVIRONMENTS: [Environment; 9] = [
    PERFECT,
    Environment { name: "perfect clock, late commits", clocks: Clocks::Late, ..PERFECT },
    Environment { name: "skewed clocks", ..SKEWED },
    Environment { name: "skewed clocks, index item by item", index: View::PerItem, ..SKEWED },
    Environment { name: "skewed clocks, one item a page", pages: true, ..SKEWED },
    Environment {
        name: "skewed clocks, transactions visible item by item",
        table: View::PerItem,
        index: View::PerItem,
        ..SKEWED
    },
    SUBSETS,
    Environment {
        name: "late commits, answers lost, sent again",
        clocks: Clocks::Late,
        answers: Answers::LostThenResent,
        ..PERFECT
    },
    Environment {
        name: "late commits, answers lost, decided again",
        clocks: Clocks::Late,
        answers: Answers::LostThenRestarted,
        ..PERFECT
    },
];
