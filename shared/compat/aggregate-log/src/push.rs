//! Turns a push into items, and finds its outcome in an answer.

use std::collections::BTreeSet;

use ringfence_aws::{Failure, Item, Reason, item_bytes};
use ringfence_core::rfc3339;

use crate::error::VersionConflict;
use crate::item::{conflict, decode_named, encode, is_of_push};
use crate::{
    AggregateError, AggregateEvent, AggregateKey, AggregateTable, NewAggregateEvent, Push,
    PushPlace, Version, limits,
};

/// One version that has to be free.
pub(crate) struct Entry<'a> {
    pub(crate) table: &'a AggregateTable,
    pub(crate) key: AggregateKey,
    pub(crate) version: u64,
    /// Replaces whatever is there.
    pub(crate) forced: bool,
    /// The event to put, in the current layout; `None` only checks.
    pub(crate) item: Option<Item>,
}

/// An aggregate, and the table that has it.
type Home<'a> = (&'a AggregateTable, AggregateKey);

/// A group with its versions. It is sent unchanged until its outcome is known.
pub(crate) struct Prepared<'a> {
    /// Names this push in its items.
    pub(crate) push_id: String,
    pub(crate) entries: Vec<Entry<'a>>,
}

/// The outcome of a push.
pub(crate) enum Verdict {
    /// It is in the log.
    Committed,
    /// Other events have its versions: the first conflict of each aggregate.
    Conflicts(Vec<VersionConflict>),
}

impl<'a> Prepared<'a> {
    /// A push without events.
    pub(crate) fn begin(push_id: String) -> Self {
        Self { push_id, entries: Vec::new() }
    }

    /// Adds an event at `at_ms`, in milliseconds since 1970. After it, `rest` events of the same aggregate follow.
    pub(crate) fn add(
        &mut self,
        (table, key): Home<'a>,
        version: u64,
        forced: bool,
        rest: u64,
        event: &NewAggregateEvent,
        at_ms: u64,
    ) -> Result<(), AggregateError> {
        table.stores.check(key.store())?;
        limits::version(&key.to_string(), version)?;
        let item = encode(&key, version, event, &rfc3339(at_ms), &self.push_id, rest)?;
        ringfence_core::limits::event(&event.event_type, item_bytes(&item))?;
        self.entries.push(Entry { table, key, version, forced, item: Some(item) });
        Ok(())
    }

    /// Requires that a version is free.
    pub(crate) fn check(&mut self, (table, key): Home<'a>, version: u64) {
        self.entries.push(Entry { table, key, version, forced: false, item: None });
    }

    /// Fails if the push is too large for a transaction.
    pub(crate) fn limited(&self) -> Result<(), AggregateError> {
        let items = self.entries.iter().filter_map(|entry| entry.item.as_ref());
        Ok(limits::group(self.entries.len(), items.map(item_bytes).sum())?)
    }

    /// The events as the log has them after the push.
    pub(crate) fn events(self) -> Result<Vec<AggregateEvent>, AggregateError> {
        self.entries.into_iter().filter_map(|entry| entry.item).map(decode_named).collect()
    }

    /// The items of the group; `firsts` has the version of each push's first event.
    pub(crate) fn new(
        group: &[(&'a AggregateTable, &Push)],
        firsts: &[u64],
        now_ms: u64,
        push_id: String,
    ) -> Result<Self, AggregateError> {
        let at_ms = timestamp_ms(group)?.unwrap_or(now_ms);
        let mut prepared = Self::begin(push_id);
        for ((table, push), first) in group.iter().zip(firsts) {
            let forced = matches!(push.place, PushPlace::Forced(_));
            let rest = (0..push.events.len() as u64).rev();
            for ((event, offset), rest) in push.events.iter().zip(0..).zip(rest) {
                let version = first.saturating_add(offset);
                prepared.add((table, push.key.clone()), version, forced, rest, event, at_ms)?;
            }
        }
        prepared.limited()?;
        Ok(prepared)
    }

    /// The outcome that a failed send shows, if it shows one.
    ///
    /// Events are never deleted. So if another writer's event is there, a copy of this push that is still
    /// under way fails as well: a conflict is certain, even after a lost answer.
    pub(crate) fn verdict(&self, failure: &Failure) -> Option<Verdict> {
        let found: Vec<_> = match failure {
            Failure::Condition(found) => self.entries.iter().zip([found.as_ref()]).collect(),
            Failure::Cancelled(reasons) => {
                let reasons = self.entries.iter().zip(reasons);
                reasons
                    .filter_map(|(entry, reason)| match reason {
                        Reason::Condition(found) => Some((entry, found.as_ref())),
                        _ => None,
                    })
                    .collect()
            }
            _ => return None,
        };
        if found.iter().any(|(_, found)| is_of_push(*found, &self.push_id)) {
            return Some(Verdict::Committed);
        }
        let mut conflicts: Vec<VersionConflict> = Vec::new();
        for (entry, found) in found {
            if conflicts.iter().all(|conflict| conflict.key != entry.key) {
                conflicts.push(conflict(entry.key.clone(), entry.version, found));
            }
        }
        (!conflicts.is_empty()).then_some(Verdict::Conflicts(conflicts))
    }

    /// Whether a failed send also shows the outcome of earlier sends that got no answer. DynamoDB checks no condition
    /// on an item that another request holds, and then perhaps no other condition. But if a put of this push failed on
    /// its condition, DynamoDB checked it.
    pub(crate) fn judges(&self, failure: &Failure) -> bool {
        let Failure::Cancelled(reasons) = failure else { return true };
        let is_held = |reason: &Reason| matches!(reason, Reason::Conflict | Reason::Throttled);
        let mut puts = self.entries.iter().zip(reasons).filter(|(entry, _)| entry.item.is_some());
        !reasons.iter().any(is_held) || puts.any(|(_, it)| matches!(it, Reason::Condition(_)))
    }
}

impl AggregateTable {
    /// Checks everything that [`AggregateTable::push_event`] checks before its first request. Sends no request.
    ///
    /// # Errors
    /// As [`AggregateTable::push_event`], except errors that need a request.
    pub fn pushable(
        &self,
        key: &AggregateKey,
        version: u64,
        event: NewAggregateEvent,
    ) -> Result<(), AggregateError> {
        let push = Push { key: key.clone(), place: PushPlace::At(version), events: vec![event] };
        let group = [(self, &push)];
        check(&group)?;
        Prepared::new(&group, &[version], 0, self.clock.uuid().to_string()).map(drop)
    }
}

/// Checks a group before any request.
pub(crate) fn check(group: &[(&AggregateTable, &Push)]) -> Result<(), AggregateError> {
    let refuse = |why: String| Err(AggregateError::Invalid(why));
    if group.is_empty() || group.iter().any(|(_, push)| push.events.is_empty()) {
        return refuse("a push has at least one event".to_owned());
    }
    let mut keys = BTreeSet::new();
    for (_, Push { key, place, .. }) in group {
        if !keys.insert(key) {
            return refuse(format!("{key} is in the group twice; push its events together"));
        }
        if matches!(place, PushPlace::At(0) | PushPlace::Forced(0)) {
            return refuse(format!("{key}: the first version is 1"));
        }
    }
    limits::group(group.iter().map(|(_, push)| push.events.len()).sum(), 0)?;
    timestamp_ms(group).map(drop)
}

/// The one timestamp of the group's events, if any of them has one.
fn timestamp_ms(group: &[(&AggregateTable, &Push)]) -> Result<Option<u64>, AggregateError> {
    let events = group.iter().flat_map(|(_, push)| &push.events);
    let named: BTreeSet<u64> = events.filter_map(|event| event.timestamp_ms).collect();
    if named.len() > 1 {
        let named: Vec<_> = named.into_iter().map(rfc3339).collect();
        let why = format!("the events of a group have one timestamp, not {}", named.join(", "));
        return Err(AggregateError::Invalid(why));
    }
    Ok(named.first().copied())
}

impl PushPlace {
    /// Whether a read is needed to find or to check its version.
    pub(crate) fn needs_newest(self) -> bool {
        matches!(self, Self::End | Self::At(2..))
    }

    /// The version of the first event; `newest` is the aggregate's newest version, if a read was needed.
    pub(crate) fn first(self, key: &AggregateKey, newest: Version) -> Result<u64, AggregateError> {
        match self {
            Self::After(Version(read)) => Ok(read.saturating_add(1)),
            Self::End => Ok(newest.0.saturating_add(1)),
            Self::Forced(version) | Self::At(version @ ..=1) => Ok(version),
            Self::At(version) if version > newest.0.saturating_add(1) => {
                Err(AggregateError::Gap { key: key.clone(), version, newest })
            }
            Self::At(version) => Ok(version),
        }
    }
}
