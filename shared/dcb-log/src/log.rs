//! The log itself, shared by its operations.

use aws_sdk_dynamodb::Client;
use ringfence_aws::{Clock, Meter, Retry, Table};
use ringfence_core::{Catalog, Envelope, OwnTime};

/// An event log in one DynamoDB table.
pub struct DcbLog {
    pub(crate) table: Table,
    pub(crate) catalog: Catalog,
    pub(crate) clock: Clock,
    pub(crate) own: OwnTime,
}

impl DcbLog {
    /// The log in `table`, with the events that `catalog` declares. Turn the client's own retries off
    /// ([`ringfence_aws::client_from_env`]), so that every attempt is counted once.
    #[must_use]
    pub fn new(client: Client, table: impl Into<String>, catalog: Catalog, clock: Clock) -> Self {
        let table = Table::new(client, table, &clock);
        Self { table, catalog, clock, own: OwnTime::default() }
    }

    /// The cost of this log's requests so far.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        self.table.meter()
    }

    /// The clock that gives this log its times and ids.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// How long and how often to try on behalf of a command.
    pub(crate) fn retry(&self, envelope: &Envelope) -> Retry {
        Retry::of(envelope, &self.clock)
    }
}
