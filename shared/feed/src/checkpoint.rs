//! Places of readers in the index.

use std::{fmt, num::ParseIntError, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most entries of an epoch. A checkpoint is an epoch times this number, plus an offset.
pub const EPOCH_ENTRIES_MAX: u64 = 1_000_000;

/// Entries of an epoch: 1 to [`EPOCH_ENTRIES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochEntries(u64);

/// A number that is too small or too large, or a string that is not a number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an epoch has 1 to {EPOCH_ENTRIES_MAX} entries")]
pub struct EpochEntriesError;

impl EpochEntries {
    /// The most that an epoch may have.
    pub const MAX: Self = Self(EPOCH_ENTRIES_MAX);

    /// The number.
    pub(crate) fn get(self) -> u64 {
        self.0
    }
}

impl TryFrom<u64> for EpochEntries {
    type Error = EpochEntriesError;

    fn try_from(entries: u64) -> Result<Self, EpochEntriesError> {
        match entries {
            1..=EPOCH_ENTRIES_MAX => Ok(Self(entries)),
            _ => Err(EpochEntriesError),
        }
    }
}

impl FromStr for EpochEntries {
    type Err = EpochEntriesError;

    fn from_str(text: &str) -> Result<Self, EpochEntriesError> {
        text.parse::<u64>().map_err(|_| EpochEntriesError)?.try_into()
    }
}

/// A place between two entries of the index: everything before it is read. It grows with every
/// entry, by one within an epoch.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(try_from = "i64", into = "i64")]
#[schemars(extend("minimum" = 0))]
pub struct Checkpoint(i64);

/// A number or a string that is not a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// Below zero.
    #[error("a checkpoint can't be negative, but {0} is")]
    Negative(i64),
    /// Not a number of 64 bits.
    #[error("a checkpoint must be an integer")]
    Malformed(#[from] ParseIntError),
}

impl Checkpoint {
    /// Before the first event.
    pub const START: Self = Self(0);

    /// After the first `offset` entries of an epoch; `None` after 9,223,372,036,854 epochs.
    pub(crate) fn new(epoch: u64, offset: u64) -> Option<Self> {
        let entries = epoch.checked_mul(EPOCH_ENTRIES_MAX)?.checked_add(offset)?;
        i64::try_from(entries).ok().map(Self)
    }

    /// The checkpoint before the entry that lies before this one; `None` at the start.
    #[must_use]
    pub fn previous(self) -> Option<Self> {
        // The offset does not tell: it is 0 after the last entry of a full epoch too.
        (self.0 > 0).then(|| Self(self.0 - 1))
    }

    /// The epoch, and how many of its entries are before the checkpoint.
    pub(crate) fn place(self) -> (u64, u64) {
        let entries = self.0.unsigned_abs();
        (entries / EPOCH_ENTRIES_MAX, entries % EPOCH_ENTRIES_MAX)
    }
}

impl TryFrom<i64> for Checkpoint {
    type Error = CheckpointError;

    fn try_from(number: i64) -> Result<Self, CheckpointError> {
        if number < 0 { Err(CheckpointError::Negative(number)) } else { Ok(Self(number)) }
    }
}

impl From<Checkpoint> for i64 {
    fn from(checkpoint: Checkpoint) -> Self {
        checkpoint.0
    }
}

impl FromStr for Checkpoint {
    type Err = CheckpointError;

    fn from_str(text: &str) -> Result<Self, CheckpointError> {
        text.parse::<i64>()?.try_into()
    }
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_epoch_ends_where_the_next_begins() {
        let end = Checkpoint::new(3, EPOCH_ENTRIES_MAX);
        assert_eq!(end, Checkpoint::new(4, 0));
        assert_eq!(end.map(Checkpoint::place), Some((4, 0)));
        let before = end.and_then(Checkpoint::previous);
        assert_eq!(before, Checkpoint::new(3, EPOCH_ENTRIES_MAX - 1));
        assert_eq!(Checkpoint::START.previous(), None);
        assert_eq!(Checkpoint::new(u64::MAX, 0), None);
    }

    #[test]
    fn an_epoch_has_an_entry_and_a_million_at_most() {
        for text in ["0", "1000001", "-1", "many"] {
            assert_eq!(text.parse::<EpochEntries>(), Err(EpochEntriesError), "{text}");
        }
        assert_eq!("1".parse(), Ok(EpochEntries(1)));
        assert_eq!("1000000".parse(), Ok(EpochEntries::MAX));
    }

    #[test]
    fn a_checkpoint_is_a_number_that_is_not_negative() {
        assert_eq!("1000007".parse::<Checkpoint>().map(Checkpoint::place), Ok((1, 7)));
        assert_eq!("-1".parse::<Checkpoint>(), Err(CheckpointError::Negative(-1)));
        assert!(matches!("x".parse::<Checkpoint>(), Err(CheckpointError::Malformed(_))));
        assert_eq!(Checkpoint::new(0, 12).map(|at| at.to_string()), Some("12".to_owned()));
    }
}
