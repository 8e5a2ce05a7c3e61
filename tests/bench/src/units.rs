//! Capacity units of an event on its way into the index and out of it.

use catalog::ProductNameChanged;
use futures::StreamExt;
use ringfence::NewEvent;
use ringfence::kit::id;
use ringfence_feed::{Checkpoint, Index, Indexer, Until};

use crate::measure::runtime;
use crate::reactions::{append_all, index, log, order};
use crate::store::{INDEX, Store};

/// Events that are new when the indexer is called.
const BATCHES: [usize; 3] = [1, 10, 100];

/// A batch of events, and what each of them costs.
pub(crate) struct Row {
    pub(crate) batch: usize,
    /// Whether they are of one partition, or each of its own.
    pub(crate) alone: bool,
    /// Read units to index one: what is indexed, and what is new unless the stream shows it.
    pub(crate) index_read: f64,
    /// Write units to index one: page and progress.
    pub(crate) index_write: f64,
    /// Read units to replay one, with its share of the two empty reads that find the end.
    pub(crate) replay_read: f64,
}

pub(crate) fn rows() -> Vec<Row> {
    let batches = BATCHES.into_iter().flat_map(|batch| [(batch, true), (batch, false)]);
    let batches = batches.filter(|batch| *batch != (1, true));
    batches.map(|(batch, alone)| row(batch, alone)).collect()
}

fn renamed(number: usize) -> NewEvent {
    ProductNameChanged { product_id: id("product-0001"), name: format!("Lamp {number}") }.into()
}

fn row(batch: usize, alone: bool) -> Row {
    let event = if alone { renamed } else { order };
    let store = Store::new();
    let (read, write, replayed) = runtime().block_on(async {
        let writer = log(&store);
        // If all events are of one partition, so is this one, so that its progress is not new.
        let before = append_all(&writer, vec![event(0)]).await;
        let indexer = Indexer::new(log(&store), store.client(), INDEX);
        index(&indexer, &before).await;
        let first = (indexer.meter().snapshot(), indexer.logs().dcb.meter().snapshot());
        let mut partitions = append_all(&writer, (1..=batch).map(event).collect()).await;
        partitions.dedup();
        index(&indexer, &partitions).await;
        let of_index = indexer.meter().snapshot().since(&first.0).total();
        let of_log = indexer.logs().dcb.meter().snapshot().since(&first.1).total();
        let reader = Index::new(store.client(), INDEX);
        let read = reader.read(Checkpoint::START, Until::Present).count().await;
        assert_eq!(read, batch + 1, "events in the index");
        let replayed = reader.meter().snapshot().total().read;
        (of_index.read + of_log.read, of_index.write, replayed)
    });
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let (new, all) = (batch as f64, (batch + 1) as f64);
    let (index_read, index_write, replay_read) = (read / new, write / new, replayed / all);
    Row { batch, alone, index_read, index_write, replay_read }
}
