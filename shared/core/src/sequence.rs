//! Where an event stands among those of its partition, whichever log it is in.

use std::{fmt, num::ParseIntError, str::FromStr, time::UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::{Position, PositionError};

/// A position of the DCB log, or a version of a log of single streams. One partition has one kind,
/// and orders its events by it. In JSON a text or a number.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Sequence {
    /// In the DCB log.
    Position(Position),
    /// In a stream, as its log counts: the aggregate log from 1, the document log from 0.
    Version(u64),
}

/// A text that names no place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SequenceError {
    /// It has digits only, and too many.
    #[error("a version is a whole number of 64 bits")]
    Version(#[source] ParseIntError),
    /// It is no position either.
    #[error(transparent)]
    Position(#[from] PositionError),
}

impl Sequence {
    /// The position of an event of the DCB log.
    #[must_use]
    pub fn position(&self) -> Option<&Position> {
        match self {
            Self::Position(position) => Some(position),
            Self::Version(_) => None,
        }
    }
}

/// What places an event among those of its partition.
pub trait Place {
    /// When the event was recorded, in milliseconds since 1970, if it can be read.
    fn ms(&self, recorded_at: &str) -> Option<u64>;

    /// The version of a stream's event.
    fn version(&self) -> Option<u64>;
}

impl Place for Position {
    fn ms(&self, _: &str) -> Option<u64> {
        Some(Self::ms(self))
    }

    fn version(&self) -> Option<u64> {
        None
    }
}

impl Place for Sequence {
    fn ms(&self, recorded_at: &str) -> Option<u64> {
        match self {
            Self::Position(position) => Some(position.ms()),
            Self::Version(_) => {
                let time = humantime::parse_rfc3339(recorded_at).ok()?;
                u64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
            }
        }
    }

    fn version(&self) -> Option<u64> {
        match self {
            Self::Position(_) => None,
            Self::Version(version) => Some(*version),
        }
    }
}

impl From<Position> for Sequence {
    fn from(position: Position) -> Self {
        Self::Position(position)
    }
}

impl FromStr for Sequence {
    type Err = SequenceError;

    fn from_str(text: &str) -> Result<Self, SequenceError> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            text.parse().map(Self::Version).map_err(SequenceError::Version)
        } else {
            Ok(Self::Position(text.to_owned().try_into()?))
        }
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Position(position) => position.fmt(f),
            Self::Version(version) => version.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_a_text_and_a_version_a_number() {
        for (text, json) in [("1719100800000-x", "\"1719100800000-x\""), ("3", "3"), ("0", "0")] {
            let sequence: Sequence = text.parse().unwrap();
            assert_eq!(sequence.to_string(), text);
            assert_eq!(serde_json::to_string(&sequence).unwrap(), json);
            assert_eq!(serde_json::from_str::<Sequence>(json).unwrap(), sequence);
        }
        assert!(Sequence::Version(9) < Sequence::Version(10));
        for text in ["", "-1", "x", "18446744073709551616"] {
            assert!(text.parse::<Sequence>().is_err(), "{text}");
        }
        assert!(serde_json::from_str::<Sequence>("-1").is_err());
    }

    #[test]
    fn the_time_is_in_the_position_or_beside_the_version() {
        let ms = |text: &str, at| text.parse::<Sequence>().unwrap().ms(at);
        assert_eq!(ms("1719100800000-x", ""), Some(1_719_100_800_000));
        assert_eq!(ms("3", "2024-06-23T00:00:00.120Z"), Some(1_719_100_800_120));
        assert_eq!(ms("3", "yesterday"), None);
    }
}
