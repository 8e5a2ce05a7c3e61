//! The keys of the stack in the table, and which of them is used. Pure, so that the tests try all orders of rotations
//! and writers.

use std::collections::BTreeMap;

/// For what the stack has keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Branch keys wrap the keys of subjects. The newest one wraps the keys that are made from then on.
    Branch,
    /// Blind keys make the values of blind tags.
    ///
    /// Events keep the tags that they have, so a decision asks for the tags under every blind key: each rotation makes
    /// its reads and its append larger for ever, by one boundary for each blind tag. A rotation makes no old tag
    /// useless to somebody who has an old key.
    Blind,
}

impl Purpose {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Branch => "branch",
            Self::Blind => "blind",
        }
    }

    /// A new key is used this long after it was made, in milliseconds.
    fn waits_ms(self) -> u64 {
        match self {
            Self::Branch => 0,
            Self::Blind => KNOWN_MS,
        }
    }

    /// The most keys. A decision has a boundary for each blind tag under each blind key; an item has 400 KB.
    pub(crate) fn keys_max(self) -> usize {
        match self {
            Self::Branch => 1_000,
            Self::Blind => 10,
        }
    }
}

/// A warm function knows the keys of the stack for this long, in milliseconds. So it asks KMS for each of them once in
/// ten minutes, and stops soon after the key of KMS is disabled.
pub(crate) const KEPT_MS: u64 = 600_000;

/// Every command that is carried out so long after a new blind key, in milliseconds, asks for the tags under it: ten
/// minutes for what a function has kept, fifteen for its longest invocation, and fifteen for a clock that is wrong and a
/// put that arrives late.
pub(crate) const KNOWN_MS: u64 = KEPT_MS + 2 * 900_000;

/// The newest key of the stack for a purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// Its number.
    pub number: u32,
    /// From this time on it is used, in milliseconds since 1970. Nobody needs to do anything for that.
    pub used_from_ms: u64,
    /// Whether this call has made it. If not, it is so new that functions may not know it yet.
    pub is_new: bool,
}

/// The keys of the stack for a purpose, by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StackRecord(pub(crate) BTreeMap<u32, StackKey>);

/// A key of the stack, wrapped by KMS or a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StackKey {
    pub(crate) wrapped: Vec<u8>,
    /// In milliseconds since 1970.
    pub(crate) made_at_ms: u64,
}

impl StackRecord {
    /// The number of the newest key; 0 if there is none.
    pub(crate) fn newest(&self) -> u32 {
        self.0.last_key_value().map_or(0, |(number, _)| *number)
    }

    /// The number of the key that is used now: the newest one for which every function was ready before. Nobody needs
    /// to be ready for the first key.
    pub(crate) fn used(&self, purpose: Purpose, now_ms: u64) -> u32 {
        let is_used = |key: &StackKey| now_ms >= key.made_at_ms.saturating_add(purpose.waits_ms());
        let used = self.0.iter().rev().find(|(_, key)| is_used(key));
        used.or(self.0.first_key_value()).map_or(0, |(number, _)| *number)
    }

    /// The newest key, if functions may not know it yet: another rotation must wait.
    pub(crate) fn waits(&self, purpose: Purpose, now_ms: u64) -> Option<Rotation> {
        let (number, key) = self.0.last_key_value()?;
        let is_known = now_ms >= key.made_at_ms.saturating_add(KNOWN_MS);
        (!is_known).then(|| rotation(purpose, *number, key, false))
    }

    /// With one more key.
    pub(crate) fn with(&self, key: StackKey) -> Self {
        let mut keys = self.0.clone();
        keys.insert(self.newest() + 1, key);
        Self(keys)
    }
}

/// The rotation that has made a key. Nobody needs to be ready for the first one.
pub(crate) fn rotation(purpose: Purpose, number: u32, key: &StackKey, is_new: bool) -> Rotation {
    let waits_ms = if number == 1 { 0 } else { purpose.waits_ms() };
    let used_from_ms = key.made_at_ms.saturating_add(waits_ms);
    Rotation { number, used_from_ms, is_new }
}

#[cfg(test)]
mod tests;
