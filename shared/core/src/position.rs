//! Where an event stands in the order of the log.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// `<13-digit ms since 1970>-<uuid>`, and `-001`, `-002`, … behind it for the further events of one
/// append. Compared as text, which is the order of time. A position is the event's id.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Position(Arc<str>);

/// Why a text is no position, or none can be minted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PositionError {
    /// The text is not a position.
    #[error("position {0:?} does not start with 13 digits and a hyphen")]
    Malformed(String),
    /// The time has more than 13 digits.
    #[error("a position's time has 13 digits of milliseconds, {0} has more")]
    Overflow(u64),
}

/// Longest position, in bytes: time, UUID and index, and room for the counter that Reventless puts
/// between them.
const POSITION_BYTES_MAX: usize = 64;

/// Largest time a position can carry, in milliseconds since 1970 (the year 2286).
const MS_MAX: u64 = 9_999_999_999_999;

impl Position {
    /// The position of event `index` (from 0) of the append minted as (`ms`, `uuid`).
    pub fn mint(ms: u64, uuid: &Uuid, index: usize) -> Result<Self, PositionError> {
        if ms > MS_MAX {
            return Err(PositionError::Overflow(ms));
        }
        Ok(Self(match index {
            0 => format!("{ms:013}-{uuid}").into(),
            _ => format!("{ms:013}-{uuid}-{index:03}").into(),
        }))
    }

    /// Milliseconds since 1970, as minted: not below any event of the same fence.
    pub fn ms(&self) -> u64 {
        self.0[..13].parse().expect("13 digits, checked when the position was made")
    }

    /// The position as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Position {
    type Error = PositionError;

    fn try_from(text: String) -> Result<Self, PositionError> {
        let bytes = text.as_bytes();
        let bounded = bytes.len() <= POSITION_BYTES_MAX && text.is_ascii();
        let timed = bytes.len() > 13 && bytes[..13].iter().all(u8::is_ascii_digit);
        if bounded && timed && bytes[13] == b'-' {
            Ok(Self(text.into()))
        } else {
            Err(PositionError::Malformed(text))
        }
    }
}

impl From<Position> for String {
    fn from(position: Position) -> Self {
        position.as_str().to_owned()
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_time_then_index() {
        let low = Uuid::from_u128(1);
        let high = Uuid::from_u128(2);
        let mint = |ms, uuid, index| Position::mint(ms, uuid, index).unwrap();
        let ordered = [
            mint(5, &high, 0),
            mint(5, &high, 1),
            mint(5, &high, 99),
            mint(6, &low, 0),
            mint(1_719_100_800_000, &low, 0),
        ];
        assert!(ordered.is_sorted(), "{ordered:?}");
        assert_eq!(ordered[4].ms(), 1_719_100_800_000);
    }

    #[test]
    fn what_is_no_position_is_refused() {
        assert_eq!(
            Position::mint(MS_MAX + 1, &Uuid::nil(), 0),
            Err(PositionError::Overflow(MS_MAX + 1))
        );
        let long = format!("1719100800000-{}", "x".repeat(51));
        for text in ["", "FENCE", &long, "1719100800000", "171910080000x-", "👍👍👍👍-"] {
            assert!(Position::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
