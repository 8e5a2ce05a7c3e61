//! The place of an event: in its partition, and among the events of all partitions.

use std::{fmt, num::ParseIntError, str::FromStr, time::Duration, time::UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::BoundaryId;

/// An event's place in fold order: by time, then by partition and slot. Within a partition this is the order of the
/// slots, because a writer's time is later than the time of the event before. Between partitions it is the order of
/// the writers' clocks, and not the order of the commits. As text `<at>/<partition>/<slot>`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Place {
    /// When the event was recorded, in milliseconds since 1970.
    pub at: u64,
    /// The partition that stores it.
    pub partition: BoundaryId,
    /// Its number in the partition.
    pub slot: u64,
}

/// A text that is not a place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// It does not have three parts.
    #[error("{0:?} is not a place: write <milliseconds>/<partition>/<slot>")]
    Parts(String),
    /// Its time or its slot is not a number.
    #[error("{text:?} is not a place: {part} is an integer of 64 bits")]
    Number {
        /// The text.
        text: String,
        /// The wrong part: its time or its slot.
        part: &'static str,
        /// The cause.
        source: ParseIntError,
    },
}

/// Milliseconds since 1970 as RFC 3339 in UTC. It always has three digits of milliseconds, so the texts sort by time.
#[must_use]
pub fn rfc3339(ms: u64) -> String {
    let time = UNIX_EPOCH + Duration::from_millis(ms.min(RFC3339_MS_MAX));
    humantime::format_rfc3339_millis(time).to_string()
}

/// The last millisecond of the year 9999. RFC 3339 can't express later times.
const RFC3339_MS_MAX: u64 = 253_402_300_799_999;

impl Place {
    /// The sort key of the index items that repeat the event, as the digits of a number: its time, and after the
    /// point a hash that distinguishes it from other events of the same millisecond. The guard of a fence keeps the
    /// times of its events apart, except for events that were recorded before the boundary was declared.
    #[must_use]
    pub fn index_position(&self) -> String {
        let bytes = self.partition.as_str().bytes().chain([b'/']).chain(self.slot.to_be_bytes());
        // It does not end with a zero, because DynamoDB would drop that.
        format!("{}.{:020}1", self.at, hash(bytes))
    }
}

/// FNV-1a. Every version of every program must compute the same.
pub(crate) fn hash(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.at, self.partition, self.slot)
    }
}

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        // The partition of several tags may contain the separator.
        let parts = text.split_once('/').and_then(|(at, rest)| Some((at, rest.rsplit_once('/')?)));
        let (at, (partition, slot)) = parts.ok_or_else(|| PlaceError::Parts(text.to_owned()))?;
        let number = |part, number: &str| {
            number.parse().map_err(|source| {
                let text = text.to_owned();
                PlaceError::Number { text, part, source }
            })
        };
        let (at, slot) = (number("the time", at)?, number("the slot", slot)?);
        Ok(Self { at, partition: BoundaryId::stored(partition), slot })
    }
}

impl TryFrom<String> for Place {
    type Error = PlaceError;

    fn try_from(text: String) -> Result<Self, PlaceError> {
        text.parse()
    }
}

impl From<Place> for String {
    fn from(place: Place) -> Self {
        place.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(at: u64, partition: &str, slot: u64) -> Place {
        Place { at, partition: BoundaryId::stored(partition), slot }
    }

    #[test]
    fn places_are_ordered_by_time_then_partition_then_slot() {
        let ordered = [
            place(5, "a:1", 9),
            place(5, "b:1", 1),
            place(5, "b:1", 2),
            place(5, "b:1", 10),
            place(10, "a:1", 1),
        ];
        assert!(ordered.is_sorted(), "{ordered:?}");
    }

    #[test]
    fn events_of_one_millisecond_have_different_index_positions() {
        let at = 1_719_100_800_000;
        let places = [place(at, "a:1", 1), place(at, "a:1", 2), place(at, "a:2", 1)];
        let positions = places.map(|place| place.index_position());
        // Stored values never change.
        let expected = [
            "1719100800000.108132426035399897331",
            "1719100800000.108132393050051051001",
            "1719100800000.095251987437097729861",
        ];
        assert_eq!(positions, expected);
    }

    #[test]
    fn a_place_is_read_back_from_its_text() {
        for place in [place(1, "orderId:o", 2), place(u64::MAX, "orderId+line:o/3", u64::MAX)] {
            assert_eq!(place.to_string().parse(), Ok(place.clone()));
            let json = serde_json::to_string(&place).unwrap();
            assert_eq!(serde_json::from_str::<Place>(&json).unwrap(), place);
        }
        for text in ["", "1", "1/a:1", "x/a:1/1", "1/a:1/-1"] {
            assert!(text.parse::<Place>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_time_has_three_digits_of_milliseconds() {
        assert_eq!(rfc3339(1_719_100_800_120), "2024-06-23T00:00:00.120Z");
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(u64::MAX), "9999-12-31T23:59:59.999Z");
    }
}
