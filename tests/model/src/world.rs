//! The small world that commands act in: boundaries, events, queries.

use std::fmt;

/// What an event can be filed under or carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// Partition `courseId:c1`.
    C1,
    /// Partition `courseId:c2`.
    C2,
    /// Cross-partition tag `studentId:s1`.
    S1,
    /// Cross-partition tag `studentId:s2`.
    S2,
    /// Partition `productId:p1`.
    P1,
    /// Secondary tag `orderId:o1`: nobody can read by it alone.
    O1,
    /// Secondary tag `orderId:o2`.
    O2,
    /// Composite tag of o1 and p1.
    O1P1,
    /// Composite tag of o2 and p1.
    O2P1,
}

/// A set of boundaries, one bit each.
pub type Boundaries = u16;

impl Boundary {
    /// The set of this one.
    pub const fn bit(self) -> Boundaries {
        1 << self as u16
    }

    /// Whether it is read through an index that lags behind the table.
    pub const fn by_index(self) -> bool {
        matches!(self, Self::S1 | Self::S2 | Self::O1P1 | Self::O2P1)
    }

    /// The tags of a composite; itself otherwise.
    pub const fn members(self) -> &'static [Self] {
        match self {
            Self::C1 => &[Self::C1],
            Self::C2 => &[Self::C2],
            Self::S1 => &[Self::S1],
            Self::S2 => &[Self::S2],
            Self::P1 => &[Self::P1],
            Self::O1 => &[Self::O1],
            Self::O2 => &[Self::O2],
            Self::O1P1 => &[Self::O1, Self::P1],
            Self::O2P1 => &[Self::O2, Self::P1],
        }
    }
}

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::C1 => "c1",
            Self::C2 => "c2",
            Self::S1 => "s1",
            Self::S2 => "s2",
            Self::P1 => "p1",
            Self::O1 => "o1",
            Self::O2 => "o2",
            Self::O1P1 => "o1#p1",
            Self::O2P1 => "o2#p1",
        })
    }
}

/// A set of event types, one bit each.
pub type Types = u8;
/// The event type A.
pub const A: Types = 1;
/// The event type B.
pub const B: Types = 2;
/// The event type C, which is stored where others are only filed.
pub const C: Types = 4;
/// Every event type.
pub const TYPES: Types = A | B | C;

/// An event as a command writes it: its type and what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// One type.
    pub event_type: Types,
    /// The partition tag, the further cross-partition tags, and the composite tag if there is one:
    /// every boundary by which a decision can read the event.
    pub read_by: &'static [Boundary],
    /// A tag by which nobody can read the event alone.
    pub secondary: Option<Boundary>,
}

impl Shape {
    /// Rule 1: exactly the boundaries by which it can be read.
    pub fn filing(&self) -> Boundaries {
        self.read_by.iter().fold(0, |set, boundary| set | boundary.bit())
    }

    /// The documented filing: the members of a composite in place of the composite.
    pub fn documented_filing(&self) -> Boundaries {
        let members = self.read_by.iter().flat_map(|boundary| boundary.members());
        members.fold(0, |set, boundary| set | boundary.bit())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@", type_names(self.event_type))?;
        let single = self.read_by.iter().filter(|boundary| boundary.members().len() == 1);
        join(f, "+", single.chain(&self.secondary))
    }
}

/// One clause of a query: the events of these types in this boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clause {
    /// Where.
    pub boundary: Boundary,
    /// Which.
    pub types: Types,
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.boundary, type_names(self.types))
    }
}

/// What a writer does, or a reader that follows a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The query, at most [`CLAUSES_MAX`] clauses. Without any, the append is unconditional: an
    /// import.
    pub reads: &'static [Clause],
    /// Indexes into the catalogue's shapes. Without any, the command is a refusal.
    pub writes: &'static [u8],
    /// Whether it reads its one clause for ever from a cursor and writes nothing.
    pub follows: bool,
    /// The writer whose event caused it: it starts after that is committed.
    pub cause: Option<u8>,
}

/// Most clauses of a query.
pub const CLAUSES_MAX: usize = 2;

impl Command {
    /// Whether the append depends on what was read.
    pub fn is_conditional(&self) -> bool {
        !self.reads.is_empty()
    }
}

/// The names of a set of types.
pub fn type_names(types: Types) -> &'static str {
    match types {
        A => "A",
        B => "B",
        C => "C",
        _ => "AB",
    }
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
