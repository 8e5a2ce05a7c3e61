//! The rules of announced appends, and their surroundings.

use crate::property::Property;

/// The most copies.
pub(super) const COPIES: usize = 2;

/// The condition of an append without an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alone {
    /// Nobody has ever announced. A request that this refuses is refused for ever.
    Never,
    /// The fence names no copies now.
    WithoutCopies,
    /// Nothing.
    Always,
}

/// The rules of announced appends and of checks.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// An announced append comes after its copies.
    pub puts_copies: bool,
    /// An announced append, and the end of a levelling, require that no later announcement was made.
    pub requires_number: bool,
    /// An announcement that takes over another one has a number of its own.
    pub own_number: bool,
    /// A copy replaces only the copy of an earlier announcement.
    pub replaces_earlier: bool,
    /// A copy that goes leaves a closed one. Otherwise it is deleted.
    pub closes: bool,
    /// The fence names copies before they are put.
    pub names_first: bool,
    /// The fence names copies until they are closed.
    pub names_closing: bool,
    /// The condition of an append without an announcement.
    pub alone: Alone,
    /// A check of a copy requires that the copy is there, and open.
    pub requires_copy: bool,
    /// A check requires as many events as it has folded. Otherwise it requires the count of some copy that it has read.
    pub requires_folded: bool,
}

impl Rules {
    /// All of them.
    pub const COPIES: Self = Self {
        puts_copies: true,
        requires_number: true,
        own_number: true,
        replaces_earlier: true,
        closes: true,
        names_first: true,
        names_closing: true,
        alone: Alone::Never,
        requires_copy: true,
        requires_folded: true,
    };
}

const RIGHT: Rules = Rules::COPIES;

/// Rules that are wrong in one place, each with a name and the property that it breaks.
pub const MUTANTS: [(&str, Property, Rules); 11] = [
    (
        "an append that announces itself and puts no copies",
        Property::NoLostUpdate,
        Rules { puts_copies: false, ..RIGHT },
    ),
    (
        "an announced append that does not look whether somebody has taken over",
        Property::NoLostUpdate,
        Rules { requires_number: false, ..RIGHT },
    ),
    (
        "an announcement taken over without a new number",
        Property::NoLostUpdate,
        Rules { own_number: false, ..RIGHT },
    ),
    (
        "a late copy put over a later one",
        Property::NoLostUpdate,
        Rules { replaces_earlier: false, ..RIGHT },
    ),
    (
        "copies deleted in place of closed",
        Property::NoPermanentConflict,
        Rules { closes: false, ..RIGHT },
    ),
    (
        "copies put before the fence names them",
        Property::NoPermanentConflict,
        Rules { names_first: false, ..RIGHT },
    ),
    (
        "copies closed after the fence names fewer",
        Property::NoLostUpdate,
        Rules { names_closing: false, ..RIGHT },
    ),
    (
        "a build without copies that appends beside them",
        Property::NoLostUpdate,
        Rules { alone: Alone::Always, ..RIGHT },
    ),
    (
        "an append without an announcement wherever there are no copies now",
        Property::NoDoubleEffect,
        Rules { alone: Alone::WithoutCopies, ..RIGHT },
    ),
    (
        "a check of a copy that need not be there",
        Property::NoLostUpdate,
        Rules { requires_copy: false, ..RIGHT },
    ),
    (
        "the count of one copy read, and required of another",
        Property::NoLostUpdate,
        Rules { requires_folded: false, ..RIGHT },
    ),
];

/// Somebody who changes the fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// Appends, in a build that declares so many copies.
    Writes(u8),
    /// Sets every copy to the fence's count, and how many copies there are.
    Levels(Option<u8>),
}

/// Who changes the fence, and what else may happen.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// They begin at any time.
    pub actors: &'static [Actor],
    /// Whether the fence has copies at the start.
    pub has_copies: bool,
    /// How many requests stay without an answer.
    pub losses: usize,
}

impl Scenario {
    const fn new(actors: &'static [Actor], has_copies: bool, losses: usize) -> Self {
        Self { actors, has_copies, losses }
    }

    /// Scenarios in which every mutant is caught.
    pub const SMALL: [Self; 6] = [
        Self::new(&[Actor::Writes(2), Actor::Writes(0)], false, 1),
        Self::new(&[Actor::Writes(2), Actor::Writes(2)], true, 1),
        Self::new(&[Actor::Writes(2), Actor::Levels(None)], true, 1),
        Self::new(&[Actor::Levels(Some(1)), Actor::Writes(2)], true, 1),
        Self::new(&[Actor::Levels(Some(0)), Actor::Writes(0)], true, 1),
        Self::new(&[Actor::Levels(None), Actor::Writes(0), Actor::Writes(2)], false, 0),
    ];

    /// Larger scenarios.
    pub const MORE: [Self; 4] = [
        Self::new(&[Actor::Writes(2), Actor::Writes(0), Actor::Levels(None)], false, 1),
        Self::new(&[Actor::Writes(2), Actor::Writes(2), Actor::Levels(None)], true, 1),
        Self::new(&[Actor::Levels(Some(1)), Actor::Levels(Some(2)), Actor::Writes(2)], true, 1),
        Self::new(&[Actor::Levels(Some(0)), Actor::Writes(0), Actor::Writes(1)], true, 1),
    ];
}
