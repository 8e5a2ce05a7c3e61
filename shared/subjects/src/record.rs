//! What the table knows about a subject, and how it changes. Pure, so that the tests try all orders of its changes.

use std::collections::BTreeMap;

use crate::crypto::fingerprint;

/// A subject: it has keys, or a fence, or keys above a fence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Record {
    pub(crate) keys: Option<Keys>,
    pub(crate) fence: Option<Fence>,
}

/// The keys of a subject, wrapped.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Keys {
    /// The number of the key that seals. The others only open.
    pub(crate) newest: u32,
    pub(crate) wrapped: BTreeMap<u32, Vec<u8>>,
    /// When the newest key was made, in milliseconds since 1970.
    pub(crate) made_at_ms: u64,
}

/// The fence of a forgotten subject. Its keys up to a number are destroyed for good.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fence {
    /// The time of the event `SubjectForgotten`, in milliseconds since 1970.
    pub forgotten_at_ms: u64,
    /// The number of the last destroyed key.
    pub through: u32,
    /// Why the subject was forgotten.
    pub why: String,
    /// The SHA-256 of each destroyed key, as it was wrapped in the table. They tell whether a copy of the table has one.
    pub fingerprints: Vec<String>,
    /// Whether a writer may make a new key, above the fence.
    pub again: bool,
}

/// How a value of a subject is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sealing {
    /// With the key of this number.
    With(u32),
    /// With a new key of this number.
    WithNew(u32),
    /// Not at all: the subject is forgotten.
    Never,
}

/// What is known about a key that has sealed a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    Known,
    Forgotten,
    /// Neither the key nor its loss is known.
    Missing,
}

impl Record {
    pub(crate) fn sealing(found: Option<&Self>) -> Sealing {
        match found {
            None => Sealing::WithNew(1),
            Some(Self { keys: Some(keys), .. }) => Sealing::With(keys.newest),
            Some(Self { fence: Some(Fence { again: true, through, .. }), .. }) => {
                Sealing::WithNew(through.saturating_add(1))
            }
            Some(_) => Sealing::Never,
        }
    }

    pub(crate) fn opening(found: Option<&Self>, number: u32) -> Opening {
        let Some(Self { keys, fence }) = found else { return Opening::Missing };
        let is_below = fence.as_ref().is_some_and(|fence| number <= fence.through);
        match keys {
            _ if is_below => Opening::Forgotten,
            Some(keys) if keys.wrapped.contains_key(&number) => Opening::Known,
            Some(_) => Opening::Missing,
            // A table that was restored can have lost the newest keys before its fences were put again.
            None => Opening::Forgotten,
        }
    }

    /// With a first key, or with the first one above the fence.
    pub(crate) fn with_key(
        found: Option<&Self>,
        number: u32,
        wrapped: Vec<u8>,
        made_at_ms: u64,
    ) -> Self {
        let fence = found.and_then(|found| found.fence.clone());
        let fence = fence.map(|fence| Fence { again: false, ..fence });
        let wrapped = BTreeMap::from([(number, wrapped)]);
        Self { keys: Some(Keys { newest: number, wrapped, made_at_ms }), fence }
    }

    /// With a fence in place of the keys; `None` if it was put already, for this time or a later one. A subject without
    /// a key is forgotten too: a restored table may have lost it.
    pub(crate) fn forgotten(found: Option<&Self>, at_ms: u64, why: &str) -> Option<Self> {
        let (keys, fence) = found.map_or((None, None), |it| (it.keys.as_ref(), it.fence.as_ref()));
        if fence.is_some_and(|fence| fence.forgotten_at_ms >= at_ms) {
            return None;
        }
        let newest = keys.map_or(1, |keys| keys.newest);
        let wrapped = keys.into_iter().flat_map(|keys| keys.wrapped.values());
        let fence = Fence {
            forgotten_at_ms: at_ms,
            through: newest.max(fence.map_or(1, |fence| fence.through)),
            why: why.to_owned(),
            fingerprints: wrapped.map(|key| fingerprint(key)).collect(),
            again: false,
        };
        Some(Self { keys: None, fence: Some(fence) })
    }

    /// With leave for a new key; `None` if nothing forbids one.
    pub(crate) fn again(found: Option<&Self>) -> Option<Self> {
        match found {
            Some(Self { keys: None, fence: Some(fence) }) if !fence.again => {
                Some(Self { keys: None, fence: Some(Fence { again: true, ..fence.clone() }) })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
