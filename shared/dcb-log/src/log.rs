//! The log itself: what its operations share.

use std::sync::atomic::{AtomicU64, Ordering};

use aws_sdk_dynamodb::Client;
use ringfence_aws::{Clock, Meter, Retry, Table};
use ringfence_core::{Catalog, Envelope, own_ms};

/// An event log in one DynamoDB table.
pub struct DcbLog {
    pub(crate) table: Table,
    pub(crate) catalog: Catalog,
    pub(crate) clock: Clock,
    /// The time of this writer's last event, in milliseconds since 1970.
    last_ms: AtomicU64,
}

impl DcbLog {
    /// The log in `table`, whose events `catalog` declares. The client's own retries must be off
    /// ([`ringfence_aws::client_from_env`]), so that every attempt is counted once.
    #[must_use]
    pub fn new(client: Client, table: impl Into<String>, catalog: Catalog, clock: Clock) -> Self {
        Self { table: Table::new(client, table), catalog, clock, last_ms: AtomicU64::new(0) }
    }

    /// What this log's requests cost so far.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        self.table.meter()
    }

    /// Where this log has the time and its ids from.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// How long and how often to try on behalf of a command.
    pub(crate) fn retry(&self, envelope: &Envelope) -> Retry {
        Retry::of(envelope, &self.clock)
    }

    /// The time of this writer's last event, in milliseconds since 1970; 0 before the first.
    pub(crate) fn last_ms(&self) -> u64 {
        self.last_ms.load(Ordering::Acquire)
    }

    /// Notes the time of an event that is in the log (rule 4). What was refused leaves no time.
    pub(crate) fn note(&self, at_ms: u64) {
        let last_ms = own_ms(0, at_ms, self.clock.now_ms());
        self.last_ms.fetch_max(last_ms, Ordering::AcqRel);
    }
}
