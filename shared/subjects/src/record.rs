//! What the table knows about a subject, and how it changes. Pure, so that the tests try all orders of its changes.

use crate::crypto::fingerprint;

/// A subject: it has a key, or a fence, or a key above a fence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Record {
    pub(crate) key: Option<WrappedKey>,
    pub(crate) fence: Option<Fence>,
}

/// The key of a subject, wrapped.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WrappedKey {
    /// The time when it was made, by the table's clock, which the clock of each writer follows. A table is restored
    /// later than all that it loses was made. So a key that is made then has a greater number than each lost key.
    pub(crate) number: u64,
    pub(crate) wrapped: Vec<u8>,
    /// In milliseconds since 1970.
    pub(crate) made_at_ms: u64,
}

/// The fence of a forgotten subject. Its keys up to a number are destroyed for good.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fence {
    /// The time of the event `SubjectForgotten`, in milliseconds since 1970.
    pub forgotten_at_ms: u64,
    /// When the fence was put, in milliseconds since 1970.
    pub put_at_ms: u64,
    /// The number of the last destroyed key.
    pub through: u64,
    /// Why the subject was forgotten.
    pub why: String,
    /// The SHA-256 of each destroyed key as it was wrapped in the table. A copy of the table that has one is known by it.
    pub fingerprints: Vec<String>,
    /// Whether a writer may make a new key, above the fence.
    pub again: bool,
}

impl Record {
    /// The number of the key that a writer may make now; `None` if the subject has a key or is forgotten. The time of a
    /// fence comes from another machine, so it can be a moment ahead of this one. Until then the subject stays forgotten:
    /// a number after the fence that is no time could be used twice, before and after a restore.
    pub(crate) fn next_key(found: Option<&Self>, now_ms: u64) -> Option<u64> {
        match found {
            None => Some(now_ms),
            Some(Self { key: None, fence: Some(Fence { again: true, through, .. }) }) => {
                (now_ms > *through).then_some(now_ms)
            }
            Some(_) => None,
        }
    }

    /// With a first key, or with the first one above the fence.
    pub(crate) fn with_key(found: Option<&Self>, key: WrappedKey) -> Self {
        let fence = found.and_then(|found| found.fence.clone());
        Self { key: Some(key), fence: fence.map(|fence| Fence { again: false, ..fence }) }
    }

    /// Whether the key with this number is destroyed for good. A later record says the same.
    pub(crate) fn is_forgotten(&self, number: u64) -> bool {
        self.fence.as_ref().is_some_and(|fence| number <= fence.through)
    }

    /// Whether the values of the key with this number open.
    pub(crate) fn opens(&self, number: u64) -> bool {
        !self.is_forgotten(number) && self.key.as_ref().is_some_and(|key| key.number == number)
    }

    /// With a fence in place of the key; `None` if it was put already, for this time or a later one. A subject without
    /// a key is forgotten too: a restored table may have lost it.
    pub(crate) fn forgotten(
        found: Option<&Self>,
        at_ms: u64,
        put_at_ms: u64,
        why: &str,
    ) -> Option<Self> {
        let (key, fence) = found.map_or((None, None), |it| (it.key.as_ref(), it.fence.as_ref()));
        if fence.is_some_and(|fence| fence.forgotten_at_ms >= at_ms) {
            return None;
        }
        let (newest, through) = (key.map_or(0, |key| key.number), fence.map_or(0, |it| it.through));
        let before = fence.into_iter().flat_map(|fence| fence.fingerprints.iter().cloned());
        let fence = Fence {
            forgotten_at_ms: at_ms,
            put_at_ms,
            through: newest.max(through).max(at_ms),
            why: why.to_owned(),
            fingerprints: before.chain(key.map(|key| fingerprint(&key.wrapped))).collect(),
            again: false,
        };
        Some(Self { key: None, fence: Some(fence) })
    }

    /// With leave for a new key; `None` if nothing forbids one.
    pub(crate) fn again(found: Option<&Self>) -> Option<Self> {
        match found {
            Some(Self { key: None, fence: Some(fence) }) if !fence.again => {
                Some(Self { key: None, fence: Some(Fence { again: true, ..fence.clone() }) })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
