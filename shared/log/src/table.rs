//! The place of a log.

use std::error::Error;
use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use ringfence_aws::{Clock, MeteredVault};

/// The reason why a slice can't be on a log, or a table can't be checked.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The table of a log.
#[derive(Clone)]
pub struct InTable {
    /// Sends the requests. Turn its own retries off.
    pub client: Client,
    /// The table's name.
    pub name: String,
    /// The clock of the log's writers.
    pub clock: Clock,
    /// The limits of a Tip in the document log, in place of the document's own limits.
    pub tips: Option<TipLimits>,
    /// Seals and opens the personal data of the log's events. A context without personal data needs none.
    pub vault: Option<Arc<dyn MeteredVault>>,
}

impl InTable {
    /// The table of this name.
    #[must_use]
    pub fn new(client: Client, name: impl Into<String>, clock: Clock) -> Self {
        Self { client, name: name.into(), clock, tips: None, vault: None }
    }
}

/// How large a Tip may grow before its events move to a calf. Writers of one table may use different limits, because
/// readers do not depend on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TipLimits {
    /// Events in the Tip.
    pub events_max: Option<usize>,
    /// Events in the Tip, in estimated bytes.
    pub event_bytes_max: usize,
    /// Events and unfolds in the Tip, in estimated bytes. An append rewrites the unfolds in any case, so this limit
    /// is not about cost.
    pub bytes_max: usize,
}

impl Default for TipLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl TipLimits {
    /// An append rewrites the whole Tip, so a small one is cheap. `docs/document-log.md` has the curve.
    pub const DEFAULT: Self =
        Self { events_max: None, event_bytes_max: 2 * 1_024, bytes_max: 256 * 1_024 };
    /// Equinox's defaults: 32 KB for both.
    pub const EQUINOX: Self =
        Self { events_max: None, event_bytes_max: 32 * 1_024, bytes_max: 32 * 1_024 };
}
