//! Compares a fence with its events, and mends it if they differ. Pure; `verify` explains why it is right.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ringfence_aws::Item;
use ringfence_core::{BoundaryId, rfc3339};

use crate::item::{COUNT, HEAD, REPAIRED, count_name, number};

/// A fence, as stored or as computed from the events.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fence {
    /// The number of events of each type.
    pub(crate) counts: BTreeMap<String, u64>,
    /// The time of the newest event, in milliseconds since 1970.
    pub(crate) head: Option<u64>,
    /// Names the last repair.
    pub(crate) repaired: Option<String>,
}

impl Fence {
    /// Decodes a fence's item. A missing item gives an empty fence. An unreadable count or head becomes 0, which
    /// differs from any real value.
    pub(crate) fn of(item: Option<&Item>) -> Self {
        let mut fence = Self::default();
        for (name, value) in item.into_iter().flatten() {
            let number = || value.as_n().ok().and_then(|number| number.parse().ok()).unwrap_or(0);
            if let Some(event_type) = name.strip_prefix(COUNT) {
                fence.counts.insert(event_type.to_owned(), number());
            } else if name == HEAD {
                fence.head = Some(number());
            } else if name == REPAIRED {
                fence.repaired = value.as_s().ok().cloned();
            }
        }
        fence
    }

    /// Replaces the counts and the head in `item`.
    pub(crate) fn write(&self, item: &mut Item) {
        item.retain(|name, _| !name.starts_with(COUNT) && name != HEAD);
        let counts = self.counts.iter();
        item.extend(counts.map(|(event_type, count)| (count_name(event_type), number(*count))));
        item.extend(self.head.map(|head| (HEAD.to_owned(), number(head))));
    }

    fn add(&mut self, event_type: &str, at: u64) {
        match self.counts.get_mut(event_type) {
            Some(count) => *count += 1,
            None => drop(self.counts.insert(event_type.to_owned(), 1)),
        }
        self.head = self.head.max(Some(at));
    }

    fn count(&self, event_type: &str) -> u64 {
        self.counts.get(event_type).copied().unwrap_or(0)
    }
}

/// The events of one boundary that a scan found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// All events that the scan found.
    pub(crate) all: Fence,
    /// The number of events of each type that are not later than the fence's head before the scan.
    until_head: BTreeMap<String, u64>,
}

impl Found {
    pub(crate) fn add(&mut self, event_type: &str, at: u64, before: &Fence) {
        self.all.add(event_type, at);
        if before.head >= Some(at) {
            *self.until_head.entry(event_type.to_owned()).or_default() += 1;
        }
    }

    /// The fence's count of a type before the scan, and the number of events at that time.
    fn cut(&self, before: &Fence, event_type: &str) -> (u64, u64) {
        let found = self.until_head.get(event_type).copied().unwrap_or(0);
        (before.count(event_type), found)
    }

    /// The fence's count of a type after the scan, and the minimum number of events. Every event that the scan found
    /// was committed before the fence was read again.
    fn least(&self, after: &Fence, event_type: &str) -> (u64, u64) {
        let counted = after.count(event_type);
        (counted, self.all.count(event_type).max(counted))
    }
}

/// The types of events whose boundaries are not known. `None` is an event whose type can't be read; it may be of any
/// type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unfiled(BTreeSet<Option<String>>);

impl Unfiled {
    pub(crate) fn add(&mut self, event_type: Option<&str>) {
        self.0.insert(event_type.map(str::to_owned));
    }

    /// Whether a fence may count events of this type that no scan can assign to it.
    fn holds(&self, event_type: &str) -> bool {
        self.0.contains(&None) || self.0.contains(&Some(event_type.to_owned()))
    }
}

/// One error in a fence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FenceDefect {
    /// There are events and no fence.
    NoFence,
    /// There is a fence and no event.
    NoEvents,
    /// The count of a type is wrong.
    Count {
        /// The event type.
        event_type: String,
        /// The count in the fence.
        counted: u64,
        /// The number of events.
        found: u64,
    },
    /// The time of the newest event is wrong. Both are in milliseconds since 1970.
    Head {
        /// The time in the fence.
        says: Option<u64>,
        /// The time of the newest event.
        found: Option<u64>,
    },
    /// These copies, numbered from 1, count something else than the fence.
    Copies {
        /// Their numbers.
        copies: Vec<u64>,
    },
    /// The fence changed, or writers held it, at every examination. So its counts could not be checked.
    Undecided,
}

/// A fence that does not agree with its events.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The boundary.
    pub boundary: BoundaryId,
    /// The errors, at least one.
    pub wrong: Vec<FenceDefect>,
    /// Corrections to add to the counts, if the examination is exact. They stay right whatever is appended meanwhile.
    add: BTreeMap<String, i64>,
    /// The fence as computed from the events.
    found: Fence,
    /// The fence, if nothing was appended from before the scan until after it and every event could be filed. Then
    /// the right fence is exactly `found`.
    at_rest: Option<Fence>,
    /// The last repair of the fence at the time of the comparison. Another repair makes `add` void.
    pub(crate) repaired: Option<String>,
}

impl Difference {
    /// Compares the fence, as it was `before` the scan and is `after` it, with the events that the scan `found`.
    /// `ordered` means that the head before the scan is not below any event committed until then. `None` means that
    /// the fence is right; an inexact examination never returns it.
    pub(crate) fn judge(
        boundary: &BoundaryId,
        before: &Fence,
        after: &Fence,
        found: &Found,
        ordered: bool,
        unfiled: &Unfiled,
    ) -> Option<Self> {
        let rest = before == after;
        let exact = rest || (ordered && before.repaired == after.repaired);
        // A count or head that is too high shows only if every event could be filed.
        let whole = rest && unfiled.0.is_empty();
        let mut wrong = Vec::new();
        let mut add = BTreeMap::new();
        if after.head.is_none() && after.counts.is_empty() && found.all.head.is_some() {
            wrong.push(FenceDefect::NoFence);
        }
        let empty = found.all.head.is_none();
        if whole && empty && (after.head.is_some() || !after.counts.is_empty()) {
            wrong.push(FenceDefect::NoEvents);
        }
        let types = [before, after, &found.all].into_iter().flat_map(|fence| fence.counts.keys());
        let types: BTreeSet<_> = types.filter(|event_type| !unfiled.holds(event_type)).collect();
        for event_type in types {
            let (counted, count) = match (rest, exact) {
                (true, _) => (before.count(event_type), found.all.count(event_type)),
                (false, true) => found.cut(before, event_type),
                (false, false) => found.least(after, event_type),
            };
            // A writer that has seen no events requires that the count is missing, so a stored 0 is wrong.
            let zero = after.counts.get(event_type) == Some(&0);
            if counted != count || zero {
                let event_type = event_type.clone();
                let difference = count.cast_signed() - counted.cast_signed();
                if exact {
                    add.insert(event_type.clone(), difference);
                }
                wrong.push(FenceDefect::Count { event_type, counted, found: count });
            }
        }
        if found.all.head > after.head || (whole && found.all.head != after.head) {
            let (says, found) = (after.head, found.all.head);
            wrong.push(FenceDefect::Head { says, found });
        }
        if wrong.is_empty() && !exact {
            wrong.push(FenceDefect::Undecided);
        }
        (!wrong.is_empty()).then(|| Self {
            boundary: boundary.clone(),
            wrong,
            add,
            found: found.all.clone(),
            at_rest: whole.then(|| before.clone()),
            repaired: after.repaired.clone(),
        })
    }

    /// A fence that could not be read, with the events that a scan `found`.
    pub(crate) fn undecided(boundary: &BoundaryId, found: &Found) -> Self {
        let of = Self::of_copies(boundary, FenceDefect::Undecided);
        Self { found: found.all.clone(), ..of }
    }

    /// A fence whose copies are wrong.
    pub(crate) fn of_copies(boundary: &BoundaryId, wrong: FenceDefect) -> Self {
        Self {
            boundary: boundary.clone(),
            wrong: vec![wrong],
            add: BTreeMap::new(),
            found: Fence::default(),
            at_rest: None,
            repaired: None,
        }
    }

    /// The mended fence, given the fence as it is `now`.
    pub(crate) fn mended(&self, now: &Fence) -> Fence {
        let repaired = now.repaired.clone();
        if self.at_rest.as_ref() == Some(now) {
            return Fence { repaired, ..self.found.clone() };
        }
        let mut next = now.clone();
        for (event_type, add) in &self.add {
            let count = next.counts.entry(event_type.clone()).or_default();
            *count = count.saturating_add_signed(*add);
        }
        next.counts.retain(|_, count| *count > 0);
        next.head = next.head.max(self.found.head);
        next
    }

    /// Whether the fence may be right or wrong.
    pub(crate) fn is_undecided(&self) -> bool {
        self.wrong == [FenceDefect::Undecided]
    }

    /// The time of the newest event that was found.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.found.head
    }
}

impl fmt::Display for FenceDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |head: &Option<u64>, or: &str| head.map_or_else(|| or.to_owned(), rfc3339);
        match self {
            Self::NoFence => write!(f, "no fence"),
            Self::NoEvents => write!(f, "no events, or no longer declared"),
            Self::Count { event_type, counted, found } => {
                write!(f, "counts {counted} {event_type}, found {found}")
            }
            Self::Head { says, found } => {
                write!(f, "head is {}, found {}", at(says, "missing"), at(found, "no event"))
            }
            Self::Copies { copies } => {
                let copies: Vec<_> = copies.iter().map(u64::to_string).collect();
                write!(f, "another count in its copies {}", copies.join(", "))
            }
            Self::Undecided => write!(f, "changed each time that it was examined"),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.boundary)?;
        for (n, wrong) in self.wrong.iter().enumerate() {
            write!(f, "{}{wrong}", if n > 0 { "; " } else { "" })?;
        }
        Ok(())
    }
}
