//! A table in Castore's single-table layout, and what all requests to it share.

use aws_sdk_dynamodb::Client;
use ringfence_dynamo::{Clock, Meter, Retry};

use crate::gaps::Gaps;

/// Event stores in one DynamoDB table. Clones share one meter and the known gaps.
#[derive(Clone, Debug)]
pub struct AggregateTable {
    pub(crate) dynamo: ringfence_dynamo::Table,
    pub(crate) clock: Clock,
    pub(crate) retry: Retry,
    pub(crate) gaps: Gaps,
}

impl AggregateTable {
    /// The stores in the table `name`. The client's own retries must be off
    /// ([`ringfence_dynamo::client_from_env`]), so that every attempt is counted once.
    #[must_use]
    pub fn new(client: Client, name: impl Into<String>, clock: Clock) -> Self {
        let dynamo = ringfence_dynamo::Table::new(client, name);
        Self { dynamo, clock, retry: Retry::default(), gaps: Gaps::new() }
    }

    /// The same, but it tries as often and as long as `retry` says. A deadline is set here.
    #[must_use]
    pub fn retrying(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    /// What the requests cost so far.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        self.dynamo.meter()
    }
}
