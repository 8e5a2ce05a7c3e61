//! Where a log is.

use aws_sdk_dynamodb::Client;
use ringfence_aws::Clock;
use ringfence_document_log::TipLimits;

/// The table of a log.
#[derive(Clone)]
pub struct InTable {
    /// Sends the requests. Its own retries must be off.
    pub client: Client,
    /// The table's name.
    pub name: String,
    /// The clock of the log's writers.
    pub clock: Clock,
    /// How large a Tip may grow, on the document log, in place of what the document says.
    pub tips: Option<TipLimits>,
}

impl InTable {
    /// The table of this name.
    #[must_use]
    pub fn new(client: Client, name: impl Into<String>, clock: Clock) -> Self {
        Self { client, name: name.into(), clock, tips: None }
    }
}
