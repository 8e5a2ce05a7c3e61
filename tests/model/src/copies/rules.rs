//! The rules of announced appends, and their surroundings.

use Actor::{Checks, Crosses, Levels, Repairs, Writes};

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
    /// If a check has an earlier send without an answer, it believes only the judgement of a send, and not what it
    /// reads in the fence.
    pub settles: bool,
    /// If a copy refuses a check, the next request has the same `appendId` and slot.
    pub same_append: bool,
    /// Who announces an append checks other fences themselves. Otherwise it checks copies, and waits for announcements.
    pub waits_never: bool,
    /// A repair examines the copies after it has mended the fence, also if its put had no answer.
    pub mend_examines: bool,
    /// A repair levels the copies behind an open announcement, although they are right now.
    pub mend_levels: bool,
    /// If a copy has a later number, the next announcement has a number that is later still.
    pub steps_over: bool,
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
        settles: true,
        same_append: true,
        waits_never: true,
        mend_examines: true,
        mend_levels: true,
        steps_over: true,
    };
}

const RIGHT: Rules = Rules::COPIES;

/// Rules that are wrong in one place, each with a name and the property that it breaks.
pub const MUTANTS: [(&str, Property, Rules); 17] = [
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
    (
        "a conflict read in the fence, and believed beside a send without an answer",
        Property::NoDoubleEffect,
        Rules { settles: false, ..RIGHT },
    ),
    (
        "a new append after a copy refused a send, beside one without an answer",
        Property::NoDoubleEffect,
        Rules { same_append: false, ..RIGHT },
    ),
    (
        "two announced appends that wait at copies for each other",
        Property::NoPermanentConflict,
        Rules { waits_never: false, ..RIGHT },
    ),
    (
        "a repair that ends when it finds its own put of the mended fence",
        Property::NoPermanentConflict,
        Rules { mend_examines: false, ..RIGHT },
    ),
    (
        "a repair that finds right copies, and lets an announcement end that counts too few",
        Property::NoPermanentConflict,
        Rules { mend_levels: false, ..RIGHT },
    ),
    (
        "announcements that never reach the number of a copy",
        Property::NoPermanentConflict,
        Rules { steps_over: false, ..RIGHT },
    ),
];

/// Somebody at the fences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// Appends to the first fence, in a build that declares so many copies.
    Writes(u8),
    /// Appends to the fence of this number, has read the other one, and requires that it is unchanged.
    Crosses(usize),
    /// Reads the first fence's events, and appends elsewhere if there are no others.
    Checks,
    /// Sets every copy to the fence's count, and how many copies there are.
    Levels(Option<u8>),
    /// Mends a fence that counts one event too few, and levels its copies.
    Repairs,
}

/// What is wrong at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The fence and its copies lack an event.
    Count,
    /// The fence lacks an event that its copies count.
    Fence,
    /// The copies are of later announcements than the fence, as in a torn restore.
    Numbers,
}

/// Who is at the fences, and what else may happen.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// They begin at any time. A check begins when the damage is repaired.
    pub actors: &'static [Actor],
    /// Whether the fences have copies at the start.
    pub has_copies: bool,
    /// How many requests stay without an answer.
    pub losses: usize,
    /// What is wrong at the start.
    pub damage: Option<Damage>,
}

impl Scenario {
    const fn new(actors: &'static [Actor], has_copies: bool, losses: usize) -> Self {
        Self { actors, has_copies, losses, damage: None }
    }

    /// Whether it matters that somebody crashes: then the damage stays, and others wait for ever.
    pub(super) fn waits_for_all(&self) -> bool {
        self.damage.is_some() || matches!(self.actors, [Crosses(_), ..])
    }

    const fn damaged(actors: &'static [Actor], damage: Damage, losses: usize) -> Self {
        Self { actors, has_copies: true, losses, damage: Some(damage) }
    }

    /// Scenarios in which every mutant is caught.
    pub const SMALL: [Self; 12] = [
        Self::new(&[Checks, Writes(2)], true, 1),
        Self::new(&[Checks, Writes(2), Writes(0)], false, 0),
        Self::new(&[Checks, Writes(2), Levels(None)], true, 1),
        Self::new(&[Checks, Levels(Some(1)), Writes(2)], true, 0),
        Self::new(&[Writes(2), Writes(2)], true, 1),
        Self::new(&[Levels(Some(1)), Writes(2)], true, 1),
        Self::new(&[Levels(Some(0)), Writes(0)], true, 1),
        Self::new(&[Levels(None), Writes(0), Writes(2)], false, 0),
        Self::new(&[Crosses(0), Crosses(1)], true, 0),
        Self::damaged(&[Repairs, Writes(2)], Damage::Count, 1),
        Self::damaged(&[Repairs, Levels(None)], Damage::Fence, 1),
        Self::damaged(&[Levels(None), Writes(2)], Damage::Numbers, 0),
    ];

    /// Larger scenarios.
    pub const MORE: [Self; 8] = [
        Self::new(&[Checks, Writes(2), Writes(0)], false, 1),
        Self::new(&[Checks, Writes(2), Writes(2)], true, 1),
        Self::new(&[Checks, Levels(Some(1)), Writes(2)], true, 1),
        Self::new(&[Writes(2), Writes(2), Levels(None)], true, 1),
        Self::new(&[Levels(Some(1)), Levels(Some(2)), Writes(2)], true, 1),
        Self::new(&[Crosses(0), Crosses(1)], true, 2),
        Self::damaged(&[Checks, Repairs, Writes(2)], Damage::Count, 1),
        Self::damaged(&[Repairs, Levels(None), Writes(2)], Damage::Fence, 1),
    ];
}
