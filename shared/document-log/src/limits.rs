//! The sizes at which a Tip calves, and DynamoDB's limits, checked before the call.
//!
//! Source: "Quotas in Amazon DynamoDB", Amazon DynamoDB Developer Guide.

/// One item, in bytes: names and values.
pub const ITEM_BYTES_MAX: usize = 400 * 1_024;
/// The events of one append, in bytes as [`crate::StoredEvent::bytes`] estimates them, so that they
/// fit a page of the feed, where an entry also has the stream's name and its own attributes' names.
pub const APPEND_BYTES_MAX: usize = 346 * 1_024;

/// How large a Tip may grow before its events move to a calf. Each writer of a table may have its
/// own: readers do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TipLimits {
    /// Events in the Tip.
    pub events_max: Option<usize>,
    /// Events in the Tip, in estimated bytes.
    pub event_bytes_max: usize,
    /// Events and unfolds in the Tip, in estimated bytes. An append rewrites the unfolds wherever the
    /// events are, so this limit is not about cost.
    pub bytes_max: usize,
}

impl Default for TipLimits {
    /// An append rewrites the whole Tip, so a small one is cheap; `docs/document-log.md` has the
    /// curve.
    fn default() -> Self {
        Self { events_max: None, event_bytes_max: 2 * 1_024, bytes_max: 256 * 1_024 }
    }
}

impl TipLimits {
    /// Equinox's defaults: 32 KB for both.
    pub const EQUINOX: Self =
        Self { events_max: None, event_bytes_max: 32 * 1_024, bytes_max: 32 * 1_024 };
}
