//! The cost of a read of many events.

use anyhow::Result;
use aws_sdk_dynamodb::Client;

use crate::layout::described;

/// A read unit of an eventually consistent read, in bytes.
const UNIT_BYTES: u64 = 8_192;

/// The size of a table, as DynamoDB reports it.
pub(super) struct Whole {
    items: u64,
    bytes: u64,
}

impl Whole {
    pub(super) async fn of(client: &Client, table: &str) -> Result<Self> {
        let described = described(client, table).await?;
        let number = |number: Option<i64>| u64::try_from(number.unwrap_or(0)).unwrap_or(0);
        Ok(Self { items: number(described.item_count), bytes: number(described.table_size_bytes) })
    }

    /// The cost of reading the events of some types, if the log counts these; otherwise of reading the whole table.
    /// `spent` read units already went into the counts.
    pub(super) fn cost(&self, events: Option<u64>, limit: Option<usize>, spent: f64) -> String {
        let Self { items, bytes } = self;
        // A request takes at least half a unit.
        let halves = |bytes: u64| bytes.div_ceil(UNIT_BYTES / 2).max(1);
        let units = |bytes| spent + u32::try_from(halves(bytes)).map_or(f64::MAX, f64::from) / 2.0;
        let Some(events) = events else {
            return format!(
                "no decision reads these types alone, so the whole table is read: about {} read units, for {items} items \
                 of {bytes} bytes, as DynamoDB counted them within the last six hours",
                units(*bytes)
            );
        };
        // The read finds its end by one event more.
        let read = limit.map_or(events, |limit| events.min(limit as u64 + 1));
        let each = bytes.checked_div(*items).unwrap_or(0);
        format!(
            "{events} events have these types, and {read} are read: about {} read units",
            units(read * each)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_by_types_says_what_it_costs() {
        let whole = Whole { items: 1_000, bytes: 8_192_000 };
        let all = "no decision reads these types alone, so the whole table is read: about 1000 read units, for 1000 items \
                   of 8192000 bytes, as DynamoDB counted them within the last six hours";
        assert_eq!(whole.cost(None, Some(3), 0.0), all);
        let of = |read, units| {
            format!("50 events have these types, and {read} are read: about {units} read units")
        };
        assert_eq!(whole.cost(Some(50), None, 3.0), of(50, "53"));
        assert_eq!(whole.cost(Some(50), Some(3), 3.5), of(4, "7.5"));
        let new = Whole { items: 0, bytes: 0 };
        assert!(new.cost(Some(50), None, 3.0).ends_with("about 3.5 read units"));
    }
}
