//! The cost of requests: their number and their units, for each table and each index, with separate counts of reads and
//! writes.
//!
//! A failed condition and a cancelled transaction consume units too, and DynamoDB does not report how many. Here they
//! count as if they had been carried out, without the indexes, which they don't reach.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::types::{Capacity, ConsumedCapacity};
use ringfence_core::Vault;

/// Whether a request reads or writes. A replayed transaction is a write that consumes read units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// `Query`, `Scan` and the requests that get items.
    Read,
    /// The requests that put, update or delete items.
    Write,
}

/// Capacity units.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Units {
    /// Read units.
    pub read: f64,
    /// Write units.
    pub write: f64,
}

/// The consumption up to a moment, or between two moments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// Read requests that were sent, with failed ones.
    pub reads: u32,
    /// Write requests that were sent, with failed ones.
    pub writes: u32,
    /// Units of all tables, without their indexes.
    pub tables: Units,
    /// Units of each index by `<table>/<index>`.
    pub indexes: BTreeMap<String, Units>,
}

impl Usage {
    /// Units of the tables and of all indexes.
    #[must_use]
    pub fn total(&self) -> Units {
        self.indexes.values().fold(self.tables, |sum, index| Units {
            read: sum.read + index.read,
            write: sum.write + index.write,
        })
    }

    /// The consumption since `before`, an earlier snapshot of the same meter.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let minus = |now: Units, then: Units| Units {
            read: now.read - then.read,
            write: now.write - then.write,
        };
        let indexes = self.indexes.iter().map(|(name, now)| {
            (name.clone(), minus(*now, before.indexes.get(name).copied().unwrap_or_default()))
        });
        Self {
            reads: self.reads - before.reads,
            writes: self.writes - before.writes,
            tables: minus(self.tables, before.tables),
            indexes: indexes.filter(|(_, units)| *units != Units::default()).collect(),
        }
    }

    /// Read and write units together.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        let plus = |sum: &mut Units, added: Units| {
            sum.read += added.read;
            sum.write += added.write;
        };
        self.reads += other.reads;
        self.writes += other.writes;
        plus(&mut self.tables, other.tables);
        for (name, added) in &other.indexes {
            plus(self.indexes.entry(name.clone()).or_default(), *added);
        }
        self
    }

    fn add(&mut self, kind: Kind, consumed: &ConsumedCapacity) {
        let table = match &consumed.table {
            Some(table) => units(kind, table),
            None => of(kind, consumed.capacity_units.unwrap_or_default()),
        };
        self.tables.read += table.read;
        self.tables.write += table.write;
        let name = consumed.table_name().unwrap_or_default();
        for (index, capacity) in consumed.global_secondary_indexes.iter().flatten() {
            let added = units(kind, capacity);
            let sum = self.indexes.entry(format!("{name}/{index}")).or_default();
            sum.read += added.read;
            sum.write += added.write;
        }
    }
}

fn of(kind: Kind, units: f64) -> Units {
    match kind {
        Kind::Read => Units { read: units, write: 0.0 },
        Kind::Write => Units { read: 0.0, write: units },
    }
}

/// DynamoDB reports read units apart from write units only for transactions.
fn units(kind: Kind, capacity: &Capacity) -> Units {
    match (capacity.read_capacity_units, capacity.write_capacity_units) {
        (None, None) => of(kind, capacity.capacity_units.unwrap_or_default()),
        (read, write) => Units { read: read.unwrap_or_default(), write: write.unwrap_or_default() },
    }
}

/// A vault that can count its requests as the requests of a command.
pub trait MeteredVault: Vault {
    /// The same vault, whose requests count on this meter.
    fn on(&self, meter: &Meter) -> Arc<dyn Vault>;
}

/// A running count. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Meter(Arc<Mutex<Usage>>);

impl Meter {
    /// Counts one request that is about to be sent.
    pub(crate) fn sent(&self, kind: Kind) {
        self.with(|usage| match kind {
            Kind::Read => usage.reads += 1,
            Kind::Write => usage.writes += 1,
        });
    }

    /// Adds the consumption that an answer reports because of `ReturnConsumedCapacity`.
    pub(crate) fn consumed<'a>(
        &self,
        kind: Kind,
        all: impl IntoIterator<Item = &'a ConsumedCapacity>,
    ) {
        self.with(|usage| all.into_iter().for_each(|consumed| usage.add(kind, consumed)));
    }

    /// Adds the consumption of a refused request.
    pub(crate) fn refused(&self, kind: Kind, units: f64) {
        self.with(|usage| {
            let consumed = of(kind, units);
            usage.tables.read += consumed.read;
            usage.tables.write += consumed.write;
        });
    }

    /// Adds a write of so many units, which a dry run does not send.
    pub fn planned(&self, write_units: f64) {
        self.sent(Kind::Write);
        self.refused(Kind::Write, write_units);
    }

    /// The consumption so far.
    #[must_use]
    pub fn snapshot(&self) -> Usage {
        self.with(|usage| usage.clone())
    }

    fn with<T>(&self, act: impl FnOnce(&mut Usage) -> T) -> T {
        // A panic can't break sums.
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capacity(units: f64) -> Capacity {
        Capacity::builder().capacity_units(units).build()
    }

    #[test]
    fn tables_and_indexes_are_counted_apart() {
        let meter = Meter::default();
        meter.sent(Kind::Write);
        let written = ConsumedCapacity::builder()
            .table_name("events")
            .capacity_units(9.0)
            .table(Capacity::builder().capacity_units(8.0).write_capacity_units(8.0).build())
            .global_secondary_indexes("tag_a", capacity(1.0))
            .build();
        meter.consumed(Kind::Write, [&written]);
        let read = ConsumedCapacity::builder().table_name("events").table(capacity(0.5)).build();
        meter.consumed(Kind::Read, [&read]);
        let before = meter.snapshot();
        meter.sent(Kind::Read);
        meter.consumed(Kind::Read, [&read]);

        let all = meter.snapshot();
        assert_eq!((all.reads, all.writes), (1, 1));
        assert_eq!(all.tables, Units { read: 1.0, write: 8.0 });
        assert_eq!(all.indexes["events/tag_a"], Units { read: 0.0, write: 1.0 });
        assert_eq!(all.total(), Units { read: 1.0, write: 9.0 });

        assert_eq!(before.clone().and(&all.since(&before)), all);
        let since = all.since(&before);
        assert_eq!((since.reads, since.writes), (1, 0));
        assert_eq!(since.tables, Units { read: 0.5, write: 0.0 });
        assert!(since.indexes.is_empty());
    }

    #[test]
    fn a_replayed_transaction_consumes_read_units() {
        let meter = Meter::default();
        let table = Capacity::builder().capacity_units(2.0).read_capacity_units(2.0).build();
        let replayed = ConsumedCapacity::builder().table_name("events").table(table).build();
        meter.consumed(Kind::Write, [&replayed]);
        assert_eq!(meter.snapshot().tables, Units { read: 2.0, write: 0.0 });
    }
}
