//! A dry run: carries out a command on a stream, but does not send the write.

use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use ringfence_aws::{Action, Failure, Intent, Item, Usage, item_bytes};
use ringfence_core::Consistency;

use crate::{
    Batch, DynamoStore, Expect, ItemPage, ItemQuery, Store, StoredEvent, StreamName, Streams,
    Write, table_layout,
};

/// A store that reads and does not write. It compares a write with the stream at that moment: the write conflicts if
/// the real write would, and otherwise counts as done. It holds the notes of one command.
pub struct DocumentDryRun {
    store: DynamoStore,
    notes: Mutex<Notes>,
}

/// The notes of a command on a [`DocumentDryRun`].
#[derive(Clone, Debug, Default)]
pub struct DocumentDryRunNotes {
    /// The version of the stream that its last read found; `None` if the stream has no Tip.
    pub version: Option<u64>,
    /// The events that it would append, and the index of the first.
    pub appends: Option<(u64, Vec<StoredEvent>)>,
    /// The request that would write them; `None` if nothing is written.
    pub intent: Option<Intent>,
    /// The versions that the stream had, once for each attempt that would have failed.
    pub conflicts: Vec<u64>,
    /// The cost of the looks that only the dry run needs, for all attempts.
    pub looks: Usage,
}

#[derive(Debug, Default)]
struct Notes {
    dry_run: DocumentDryRunNotes,
    /// The size of the Tip that was read last, in bytes.
    tip_bytes: usize,
}

impl DocumentDryRun {
    /// A dry run on the streams in `store`.
    #[must_use]
    pub fn of(store: DynamoStore) -> Self {
        Self { store, notes: Mutex::default() }
    }

    /// The notes so far.
    #[must_use]
    pub fn dry_run(&self) -> DocumentDryRunNotes {
        self.notes().dry_run.clone()
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn found(&self, tip: &Batch) {
        let mut notes = self.notes();
        notes.dry_run.version = Some(tip.version);
        notes.tip_bytes = item_bytes(&tip.to_item());
    }

    async fn judge(&self, write: &Write) -> Result<(), Failure> {
        let before = self.store.meter().snapshot();
        let found = self.store.tip(&write.tip.stream, Consistency::Strong).await?;
        // A refused write returns the Tip, and the next attempt uses it.
        let refused = found.as_ref().filter(|tip| !write.fits(Some(tip)));
        refused.iter().for_each(|tip| self.found(tip));
        let mut notes = self.notes();
        let looks = self.store.meter().snapshot().since(&before);
        notes.dry_run.looks = std::mem::take(&mut notes.dry_run.looks).and(&looks);
        if !write.fits(found.as_ref()) {
            notes.dry_run.conflicts.extend(found.as_ref().map(|tip| tip.version));
            return Err(Failure::Condition(found.map(|tip| tip.to_item())));
        }
        let tip_bytes = notes.tip_bytes;
        let dry_run = &mut notes.dry_run;
        dry_run.intent = Some(intent(write, tip_bytes));
        let events = &write.tip.events;
        let new = usize::try_from(write.tip.appended).unwrap_or(usize::MAX).min(events.len());
        let new = events[events.len() - new..].to_vec();
        dry_run.appends = Some((write.tip.version - write.tip.appended, new));
        Ok(())
    }
}

impl Store for DocumentDryRun {
    fn tip<'a>(
        &'a self,
        stream: &'a StreamName,
        consistency: Consistency,
    ) -> BoxFuture<'a, Result<Option<Batch>, Failure>> {
        let tip = async move {
            let tip = self.store.tip(stream, consistency).await?;
            tip.iter().for_each(|tip| self.found(tip));
            Ok(tip)
        };
        tip.boxed()
    }

    fn query<'a>(&'a self, query: ItemQuery<'a>) -> BoxFuture<'a, Result<ItemPage, Failure>> {
        let page = async move {
            let page = self.store.query(query).await?;
            page.batches.iter().filter(|batch| batch.is_tip()).for_each(|tip| self.found(tip));
            Ok(page)
        };
        page.boxed()
    }

    fn write<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Result<(), Failure>> {
        self.judge(write).boxed()
    }

    fn delete<'a>(&'a self, stream: &'a StreamName, _: i64) -> BoxFuture<'a, Result<(), Failure>> {
        let source = format!("a dry run deletes nothing of {stream}").into();
        async move { Err(Failure::Permanent { source }) }.boxed()
    }

    fn streams(&self, after: Option<Item>) -> BoxFuture<'_, Result<Streams, Failure>> {
        self.store.streams(after)
    }
}

/// The request of a write. The cost of an update depends on the larger Tip, before or after it.
fn intent(write: &Write, tip_bytes: usize) -> Intent {
    let mut intent = Intent::default();
    if let Some(calf) = &write.calf {
        let action = Action {
            item: format!("{} {}", calf.stream, calf.key),
            does: Some("moves the Tip's events to a calf".to_owned()),
            requires: Some("the calf is not there".to_owned()),
            bytes: 0,
        };
        intent.put(&table_layout(), &calf.to_item(), action);
    }
    let appended = write.tip.appended;
    let does = format!("appends {appended} event{}", if appended == 1 { "" } else { "s" });
    let requires = match &write.expect {
        Expect::Absent => "there is no Tip".to_owned(),
        Expect::Version { version, .. } => format!("the stream is at version {version}"),
        Expect::Etag(_) => "nothing was written since it was read".to_owned(),
    };
    intent.actions.push(Action {
        item: format!("{} Tip", write.tip.stream),
        does: Some(does),
        requires: Some(requires),
        bytes: item_bytes(&write.tip.to_item()).max(tip_bytes),
    });
    intent
}
