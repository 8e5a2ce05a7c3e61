//! A generation of a view's rows.

use std::fmt;
use std::num::{NonZeroU32, ParseIntError};
use std::str::FromStr;

/// The rows of a view, folded from the first event on. It is printed as `3`, or as `3x16` if it has 16 shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Generation {
    /// Counts the times the view was built; the first is 1.
    pub number: u64,
    /// How many keys its rows are spread over: as the view said when the generation was begun.
    pub shards: u32,
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shards {
            1 => write!(f, "{}", self.number),
            shards => write!(f, "{}x{shards}", self.number),
        }
    }
}

impl FromStr for Generation {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, shards) = text.split_once('x').unwrap_or((text, "1"));
        Ok(Self { number: number.parse()?, shards: shards.parse::<NonZeroU32>()?.get() })
    }
}
