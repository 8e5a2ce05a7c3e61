//! The small world of the commands: partitions, fences, events, queries.

use std::fmt;

/// A partition: its events have slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partition {
    /// `courseId:c1`.
    C1,
    /// `courseId:c2`, whose events of type F are fenced.
    C2,
    /// `productId:p1`.
    P1,
    /// `studentId:s1`, which stores events of type F, all fenced. For other events s1 is a tag.
    S1,
}

/// A boundary that has a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// The cross-partition tag s1, and the fenced events in the partition s1: both have one name.
    S1,
    /// The cross-partition tag s2.
    S2,
    /// The composite of o1 and p1.
    O1P1,
    /// The composite of o2 and p1.
    O2P1,
    /// The fenced events in the partition c2.
    C2,
}

/// The number of partitions.
pub const PARTITIONS: usize = 4;

/// A set of partitions, one bit each.
pub type Partitions = u8;

/// A set of fences, one bit each.
pub type Fences = u8;

impl Partition {
    /// All of them.
    pub const ALL: [Self; PARTITIONS] = [Self::C1, Self::C2, Self::P1, Self::S1];

    /// The set of this one.
    pub const fn bit(self) -> Partitions {
        1 << self as u8
    }

    /// The fence that counts its fenced events.
    pub const fn fence(self) -> Option<Fence> {
        match self {
            Self::C1 | Self::P1 => None,
            Self::C2 => Some(Fence::C2),
            Self::S1 => Some(Fence::S1),
        }
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(["c1", "c2", "p1", "s1"][*self as usize])
    }
}

impl Fence {
    /// The set of this one.
    pub const fn bit(self) -> Fences {
        1 << self as u8
    }

    /// Both composites.
    pub const COMPOSITES: Fences = Self::O1P1.bit() | Self::O2P1.bit();
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(["s1", "s2", "o1#p1", "o2#p1", "c2"][*self as usize])
    }
}

/// A set of event types, one bit each.
pub type Types = u8;
/// The event type A.
pub const A: Types = 1;
/// The event type B.
pub const B: Types = 2;
/// The event type F, which is declared `fenced`.
pub const F: Types = 4;
/// Every event type.
pub const TYPES: Types = A | B | F;

/// An event of a command: its type and its tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Its one type.
    pub event_type: Types,
    /// The partition that stores it.
    pub partition: Partition,
    /// Its cross-partition tags and its composite; also the fence of its partition if the type is fenced.
    pub fences: Fences,
    /// Its tags besides the partition, as in the trace.
    pub tags: &'static str,
}

impl Shape {
    /// Whether it is read through an index that lags behind the table.
    pub const fn is_indexed(&self) -> bool {
        self.event_type != F && self.fences != 0
    }

    /// Its type and its tags.
    pub fn name(&self) -> String {
        format!("{}{}", type_names(self.event_type), self.tags)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}{}", type_names(self.event_type), self.partition, self.tags)
    }
}

const fn shape(event_type: u8, partition: Partition, fences: u8, tags: &'static str) -> Shape {
    Shape { event_type, partition, fences, tags }
}

const BOTH: u8 = Fence::S1.bit() | Fence::S2.bit();

/// The events that commands write.
pub const SHAPES: [Shape; 12] = [
    shape(A, Partition::C1, 0, ""),
    shape(B, Partition::C1, 0, ""),
    shape(A, Partition::C2, 0, ""),
    shape(A, Partition::C1, Fence::S1.bit(), "+s1"),
    shape(B, Partition::C2, Fence::S1.bit(), "+s1"),
    shape(F, Partition::C2, Fence::C2.bit(), ""),
    shape(A, Partition::C1, BOTH, "+s1+s2"),
    shape(A, Partition::P1, Fence::O1P1.bit(), "+o1"),
    shape(A, Partition::P1, Fence::O2P1.bit(), "+o2"),
    shape(B, Partition::P1, 0, ""),
    shape(F, Partition::S1, Fence::S1.bit(), ""),
    shape(A, Partition::C2, Fence::S1.bit(), "+s1"),
];

/// The source of a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A partition of the table.
    Partition(Partition),
    /// An index, whose boundary has a fence.
    Fence(Fence),
}

/// One clause of a query: the events of these types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clause {
    /// The source.
    pub source: Source,
    /// The types.
    pub types: Types,
}

impl Clause {
    /// Whether the query asks for events like `shape` by this clause.
    pub fn matches(&self, shape: &Shape) -> bool {
        self.types & shape.event_type != 0
            && match self.source {
                Source::Partition(partition) => shape.partition == partition,
                Source::Fence(fence) => shape.fences & fence.bit() != 0,
            }
    }

    /// The partition, if it reads one.
    pub fn partition(&self) -> Option<Partition> {
        match self.source {
            Source::Partition(partition) => Some(partition),
            Source::Fence(_) => None,
        }
    }
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source {
            Source::Partition(partition) => write!(f, "{partition}[{}]", type_names(self.types)),
            Source::Fence(fence) => write!(f, "{fence}[{}]", type_names(self.types)),
        }
    }
}

/// The command of a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The query, at most [`CLAUSES_MAX`] clauses. Without clauses, the append is unconditional: an import.
    pub reads: &'static [Clause],
    /// Indexes into [`SHAPES`]. Without any, the command is a rejection.
    pub writes: &'static [u8],
    /// The writer whose event caused it. It starts after that event is committed.
    pub cause: Option<u8>,
}

/// Most clauses of a query.
pub const CLAUSES_MAX: usize = 2;

impl Command {
    /// Whether the append depends on what was read.
    pub fn is_conditional(&self) -> bool {
        !self.reads.is_empty()
    }

    /// Whether it answers without an append.
    pub fn is_rejection(&self) -> bool {
        self.writes.is_empty()
    }

    /// The partitions that are read as such.
    pub fn read_partitions(&self) -> Partitions {
        let partitions = self.reads.iter().filter_map(Clause::partition);
        partitions.fold(0, |set, partition| set | partition.bit())
    }
}

/// The names of a set of types.
fn type_names(types: Types) -> &'static str {
    ["", "A", "B", "AB", "F", "AF", "BF", "ABF"][usize::from(types)]
}

pub(crate) fn join<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    between: &str,
    parts: impl Iterator<Item = T>,
) -> fmt::Result {
    for (n, part) in parts.enumerate() {
        write!(f, "{}{part}", if n > 0 { between } else { "" })?;
    }
    Ok(())
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let events =
            |f: &mut _| join(f, "; ", self.writes.iter().map(|&n| &SHAPES[usize::from(n)]));
        if let Some(cause) = self.cause {
            write!(f, "because of W{}, ", cause + 1)?;
        }
        match (self.reads, self.writes) {
            (reads, []) => {
                f.write_str("rejects by ")?;
                join(f, " and ", reads.iter())
            }
            ([], _) => {
                f.write_str("imports ")?;
                events(f)
            }
            (reads, _) => {
                f.write_str("reads ")?;
                join(f, " and ", reads.iter())?;
                f.write_str(", writes ")?;
                events(f)
            }
        }
    }
}
