//! Reads every item of one kind, for tools and exports. Decisions can't rest on it.

use aws_sdk_dynamodb::operation::scan::builders::ScanInputBuilder;
use futures::stream::{BoxStream, Stream, StreamExt, TryStreamExt, iter, try_unfold};
use ringfence_aws::{Item, Retry};
use ringfence_core::{LogError, SequencedEvent};

use crate::fence::FENCE_ID;
use crate::item::{EVENT, ID, text};
use crate::log::DcbLog;
use crate::read::decode_named;

/// Which items a scan returns. Every kind reads, and pays for, the whole table.
#[derive(Clone, Copy)]
pub(crate) enum Of {
    /// Events, from a replica.
    Events,
    /// Every event committed before the scan began, and some committed since.
    EventsStrong,
    /// Fences, from a replica.
    Fences,
}

impl DcbLog {
    /// Every event, page by page, in no order. It may show a part of a concurrent append. Reads, and pays for, the
    /// whole table.
    ///
    /// # Errors
    /// A page can't be read, or an item has an event type and can't be decoded.
    pub fn scan(&self) -> BoxStream<'_, Result<SequencedEvent, LogError>> {
        let event = |item| decode_named(&self.catalog, item);
        self.scan_items(Of::Events).map(move |item| item.and_then(event)).boxed()
    }

    /// The items of every event that was committed before the scan began, and of some committed since. Costs twice as
    /// much as [`DcbLog::scan`].
    ///
    /// # Errors
    /// A page can't be read.
    pub fn items_strong(&self) -> BoxStream<'_, Result<Item, LogError>> {
        self.scan_items(Of::EventsStrong).boxed()
    }

    pub(crate) fn scan_items(&self, of: Of) -> impl Stream<Item = Result<Item, LogError>> {
        try_unfold(Some(None), move |start: Option<Option<Item>>| async move {
            let Some(start) = start else { return Ok(None) };
            let scan = || {
                let start = start.clone();
                self.table.scan(move |scan| of.filter(scan).set_exclusive_start_key(start))
            };
            let page = Retry::default().run(scan).await;
            let page = page.map_err(|gave_up| gave_up.during("scanning the table"))?;
            let next = page.last_evaluated_key.map(Some);
            Ok::<_, LogError>(Some((page.items.unwrap_or_default(), next)))
        })
        .map_ok(|items| iter(items).map(Ok))
        .try_flatten()
    }
}

impl Of {
    fn filter(self, scan: ScanInputBuilder) -> ScanInputBuilder {
        match self {
            Self::Events | Self::EventsStrong => scan
                .filter_expression("attribute_exists(#event)")
                .expression_attribute_names("#event", EVENT)
                .consistent_read(matches!(self, Self::EventsStrong)),
            Self::Fences => scan
                .filter_expression("begins_with(#id, :id)")
                .expression_attribute_names("#id", ID)
                .expression_attribute_values(":id", text(FENCE_ID)),
        }
    }
}
