//! What a fence says, what its events say, and what follows when the two differ. Pure; the argument
//! is in `verify`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ringfence::{BoundaryId, Position};
use ringfence_dynamo::Item;

use crate::item::{COUNT, HEAD, REPAIRED, count_name, number, position_name, text};

/// How many events of one type, and the newest.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counted {
    pub(crate) count: u64,
    pub(crate) newest: Option<Position>,
}

/// A fence, as it is stored or as the events say that it should be.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) types: BTreeMap<String, Counted>,
    pub(crate) head: Option<Position>,
    /// Names the last repair.
    pub(crate) repaired: Option<String>,
}

impl Counts {
    /// What a fence's item says; a fence that is not there says nothing. A count or a position
    /// that can't be read counts as none, which no event agrees with.
    pub(crate) fn of(item: Option<&Item>) -> Self {
        let mut counts = Self::default();
        for (name, value) in item.into_iter().flatten() {
            if let Some(event_type) = name.strip_prefix(COUNT) {
                let count = value.as_n().ok().and_then(|count| count.parse().ok());
                counts.types.entry(event_type.to_owned()).or_default().count = count.unwrap_or(0);
            } else if let Some(event_type) = name.strip_prefix("pos#") {
                let newest = value.as_s().ok().cloned().map(Position::try_from);
                counts.types.entry(event_type.to_owned()).or_default().newest =
                    newest.and_then(Result::ok);
            } else if name == HEAD {
                let head = value.as_s().ok().cloned().map(Position::try_from);
                counts.head = head.and_then(Result::ok);
            } else if name == REPAIRED {
                counts.repaired = value.as_s().ok().cloned();
            }
        }
        counts
    }

    /// Writes the counts and positions into `item`, in place of those that it has.
    pub(crate) fn write(&self, item: &mut Item) {
        item.retain(|name, _| {
            !name.starts_with(COUNT) && !name.starts_with("pos#") && name != HEAD
        });
        for (event_type, Counted { count, newest }) in &self.types {
            item.insert(count_name(event_type), number(*count));
            let newest = newest.iter().map(|at| (position_name(event_type), text(at.as_str())));
            item.extend(newest);
        }
        item.extend(self.head.iter().map(|head| (HEAD.to_owned(), text(head.as_str()))));
    }

    fn add(&mut self, event_type: &str, position: &Position) {
        if !self.types.contains_key(event_type) {
            self.types.insert(event_type.to_owned(), Counted::default());
        }
        if let Some(counted) = self.types.get_mut(event_type) {
            counted.count += 1;
            raise(&mut counted.newest, Some(position));
        }
        raise(&mut self.head, Some(position));
    }

    fn count(&self, event_type: &str) -> u64 {
        self.types.get(event_type).map_or(0, |counted| counted.count)
    }

    fn newest(&self, event_type: &str) -> Option<&Position> {
        self.types.get(event_type)?.newest.as_ref()
    }
}

fn raise(position: &mut Option<Position>, to: Option<&Position>) {
    if position.as_ref() < to {
        *position = to.cloned();
    }
}

/// The events of one boundary that a scan found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// All of them.
    pub(crate) all: Counts,
    /// By type, those not after the head that the fence had before the scan.
    until_head: BTreeMap<String, u64>,
}

impl Found {
    pub(crate) fn add(&mut self, event_type: &str, position: &Position, before: &Counts) {
        self.all.add(event_type, position);
        if before.head.as_ref() >= Some(position) {
            *self.until_head.entry(event_type.to_owned()).or_default() += 1;
        }
    }

    /// What the fence counted of a type before the scan, and how many events there were then.
    fn cut(&self, before: &Counts, event_type: &str) -> (u64, u64) {
        let found = self.until_head.get(event_type).copied().unwrap_or(0);
        (before.count(event_type), found)
    }

    /// What the fence counts of a type after the scan, and how many events there are at least:
    /// every event that the scan found was committed before the fence was read again.
    fn least(&self, after: &Counts, event_type: &str) -> (u64, u64) {
        let counted = after.count(event_type);
        (counted, self.all.count(event_type).max(counted))
    }
}

/// The types of events whose boundaries can't be told. `None` stands for an event whose type can't be
/// read, which may be of any type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unfiled(BTreeSet<Option<String>>);

impl Unfiled {
    pub(crate) fn add(&mut self, event_type: Option<&str>) {
        self.0.insert(event_type.map(str::to_owned));
    }

    /// Whether a fence may count events of the type that no scan can assign to it.
    fn holds(&self, event_type: &str) -> bool {
        self.0.contains(&None) || self.0.contains(&Some(event_type.to_owned()))
    }
}

/// One thing that a fence says wrongly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// There are events and no fence.
    NoFence,
    /// There is a fence and no event.
    NoEvents,
    /// The count of a type.
    Count {
        /// The event type.
        event_type: String,
        /// What the fence counts.
        counted: u64,
        /// How many events there are.
        found: u64,
    },
    /// The newest position of a type.
    Newest {
        /// The event type.
        event_type: String,
        /// What the fence says.
        says: Option<Position>,
        /// The newest event.
        found: Option<Position>,
    },
    /// The newest position of any type.
    Head {
        /// What the fence says.
        says: Option<Position>,
        /// The newest event.
        found: Option<Position>,
    },
    /// The fence changed, or was held by writers, each time that it was examined, so nothing is
    /// known of its counts.
    Undecided,
}

/// A fence that does not agree with its events.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The boundary.
    pub boundary: BoundaryId,
    /// What is wrong, at least one thing.
    pub wrong: Vec<Wrong>,
    /// What to add to the counts, if the examination is exact; right whatever is appended meanwhile.
    add: BTreeMap<String, i64>,
    /// The newest positions that were found.
    found: Counts,
    /// The fence, if nothing was appended from before the scan until after it and every event could
    /// be filed: `found` is then exactly what it has to say.
    at_rest: Option<Counts>,
    /// The last repair of the fence that was judged; another one makes `add` void.
    pub(crate) repaired: Option<String>,
}

impl Difference {
    /// Compares the fence, as it was `before` the scan and is `after` it, with the events that the
    /// scan `found`. `ordered` says that the head before the scan is known to be no lower than any
    /// event committed until then. `None` says that the fence is right; an examination that is not
    /// exact never says that.
    pub(crate) fn judge(
        boundary: &BoundaryId,
        before: &Counts,
        after: &Counts,
        found: &Found,
        ordered: bool,
        unfiled: &Unfiled,
    ) -> Option<Self> {
        let rest = before == after;
        let exact = rest || (ordered && before.repaired == after.repaired);
        // What a fence says too much is known only if every event could be filed.
        let whole = rest && unfiled.0.is_empty();
        let mut wrong = Vec::new();
        let mut add = BTreeMap::new();
        if after.head.is_none() && after.types.is_empty() && found.all.head.is_some() {
            wrong.push(Wrong::NoFence);
        }
        let empty = found.all.head.is_none();
        if whole && empty && (after.head.is_some() || !after.types.is_empty()) {
            wrong.push(Wrong::NoEvents);
        }
        let types = [before, after, &found.all].into_iter().flat_map(|counts| counts.types.keys());
        let types: BTreeSet<_> = types.filter(|event_type| !unfiled.holds(event_type)).collect();
        for event_type in types {
            let (counted, count) = match (rest, exact) {
                (true, _) => (before.count(event_type), found.all.count(event_type)),
                (false, true) => found.cut(before, event_type),
                (false, false) => found.least(after, event_type),
            };
            // A writer that has seen none requires that the count is not there.
            let zero = after.types.get(event_type).is_some_and(|counted| counted.count == 0);
            if counted != count || zero {
                let event_type = event_type.clone();
                let difference = count.cast_signed() - counted.cast_signed();
                if exact {
                    add.insert(event_type.clone(), difference);
                }
                wrong.push(Wrong::Count { event_type, counted, found: count });
            }
            let (says, newest) = (after.newest(event_type), found.all.newest(event_type));
            if newest > says || (whole && newest != says) {
                let event_type = event_type.clone();
                let (says, found) = (says.cloned(), newest.cloned());
                wrong.push(Wrong::Newest { event_type, says, found });
            }
        }
        if found.all.head > after.head || (whole && found.all.head != after.head) {
            let (says, found) = (after.head.clone(), found.all.head.clone());
            wrong.push(Wrong::Head { says, found });
        }
        if wrong.is_empty() && !exact {
            wrong.push(Wrong::Undecided);
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

    /// Says nothing of a fence that could not be read, but which events a scan `found`.
    pub(crate) fn undecided(boundary: &BoundaryId, found: &Found) -> Self {
        Self {
            boundary: boundary.clone(),
            wrong: vec![Wrong::Undecided],
            add: BTreeMap::new(),
            found: found.all.clone(),
            at_rest: None,
            repaired: None,
        }
    }

    /// What a fence that now says `now` has to say.
    pub(crate) fn mended(&self, now: &Counts) -> Counts {
        let repaired = now.repaired.clone();
        if self.at_rest.as_ref() == Some(now) {
            return Counts { repaired, ..self.found.clone() };
        }
        let mut next = now.clone();
        for (event_type, add) in &self.add {
            let counted = next.types.entry(event_type.clone()).or_default();
            counted.count = counted.count.saturating_add_signed(*add);
        }
        for (event_type, found) in &self.found.types {
            if let Some(counted) = next.types.get_mut(event_type) {
                raise(&mut counted.newest, found.newest.as_ref());
            }
        }
        next.types.retain(|_, counted| counted.count > 0);
        raise(&mut next.head, self.found.head.as_ref());
        next
    }

    /// Whether it is not known if the fence is right or wrong.
    pub(crate) fn is_undecided(&self) -> bool {
        self.wrong == [Wrong::Undecided]
    }

    /// The newest event of the boundary that was found.
    pub(crate) fn newest(&self) -> Option<&Position> {
        self.found.head.as_ref()
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |position: &Option<Position>| match position {
            Some(position) => position.to_string(),
            None => "none".to_owned(),
        };
        match self {
            Self::NoFence => write!(f, "no fence"),
            Self::NoEvents => write!(f, "no events"),
            Self::Count { event_type, counted, found } => {
                write!(f, "counts {counted} {event_type}, found {found}")
            }
            Self::Newest { event_type, says, found } => {
                write!(f, "newest {event_type} is {}, found {}", at(says), at(found))
            }
            Self::Head { says, found } => write!(f, "head is {}, found {}", at(says), at(found)),
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
