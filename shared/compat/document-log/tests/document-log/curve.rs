//! The cost of an append by the size at which the Tip calves: the table in `docs/document-log.md`.

use std::fmt::Write as _;
use std::sync::Mutex;
use std::{env, fs};

use futures::future::BoxFuture;
use ringfence_aws::{Failure, Item, item_bytes, transact_write_units, write_units};
use ringfence_core::{Consistency, Envelope};
use ringfence_document_log::{
    Batch, Encoding, ItemPage, ItemQuery, MemoryStore, Payload, Store, StreamAppend,
    StreamAppended, StreamName, Streams, TipLimits, Write,
};
use ringfence_harness::bound;
use serde_json::json;

use crate::stack::{log, name};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/document-log.md");
const BEGIN: &str = "<!-- curve -->\n";
const END: &str = "<!-- end of curve -->";
const APPENDS: u64 = 1_000;
/// Sizes at which a Tip calves, in bytes of events.
const TIPS: [usize; 7] = [512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768];

/// A store of one stream that sums up the cost of writes by the documented rules.
#[derive(Default)]
struct Priced {
    store: MemoryStore,
    cost: Mutex<Cost>,
}

#[derive(Clone, Copy, Default)]
struct Cost {
    units: f64,
    tip_bytes: usize,
}

impl Store for Priced {
    fn tip<'a>(
        &'a self,
        stream: &'a StreamName,
        consistency: Consistency,
    ) -> BoxFuture<'a, Result<Option<Batch>, Failure>> {
        self.store.tip(stream, consistency)
    }

    fn query<'a>(&'a self, query: ItemQuery<'a>) -> BoxFuture<'a, Result<ItemPage, Failure>> {
        self.store.query(query)
    }

    fn write<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            self.store.write(write).await?;
            let bytes = |batch: &Batch| item_bytes(&batch.to_item());
            let mut cost = self.cost.lock().expect("no panic");
            let before = std::mem::replace(&mut cost.tip_bytes, bytes(&write.tip));
            let tip = cost.tip_bytes.max(before);
            cost.units += match &write.calf {
                Some(calf) => transact_write_units(bytes(calf)) + transact_write_units(tip),
                None => write_units(tip),
            };
            Ok(())
        })
    }

    fn delete<'a>(
        &'a self,
        stream: &'a StreamName,
        key: i64,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        self.store.delete(stream, key)
    }

    fn streams(&self, after: Option<Item>) -> BoxFuture<'_, Result<Streams, Failure>> {
        self.store.streams(after)
    }
}

/// Write units of an append: the average of a thousand.
async fn units(tip_bytes: usize, event_bytes: usize, unfold_bytes: usize) -> f64 {
    let limits = match tip_bytes {
        32_768 => TipLimits::EQUINOX,
        _ => TipLimits { event_bytes_max: tip_bytes, ..TipLimits::default() },
    };
    let log = log(Priced::default()).with_limits(limits).with_encoding(Encoding::Raw);
    let body = |bytes: usize| Some(json!("x".repeat(bytes - 2)));
    let (stream, envelope) = (name("a"), Envelope::default());
    let mut tip: Option<Batch> = None;
    for _ in 0..APPENDS {
        let unfolds: Vec<Payload> = match unfold_bytes {
            0 => vec![],
            bytes => vec![Payload::new("Snapshot", body(bytes))],
        };
        let append = StreamAppend {
            stream: &stream,
            known: tip.as_ref(),
            by_etag: false,
            events: vec![Payload::new("ItemAdded", body(event_bytes))],
            unfolds,
            envelope: &envelope,
        };
        tip = match log.append(append).await.expect("it is settled") {
            StreamAppended::Written(tip) => Some(tip),
            StreamAppended::Conflict(found) => panic!("nobody else writes: {found:?}"),
        };
    }
    let Cost { units, .. } = *log.store().cost.lock().expect("no panic");
    units / 1_000.0
}

/// The head of the table, and every `step`th row. With small snapshots, the default costs less than half of Equinox's
/// Tip.
async fn table(step: usize) -> (String, Vec<String>) {
    let shapes = [(200, 0), (340, 0), (1_000, 0), (200, 500), (200, 3_000)];
    let default = TIPS.iter().position(|tip| *tip == TipLimits::default().event_bytes_max);
    let default = default.expect("the default is one of the sizes");
    let mut table = "| payload | snapshot |".to_owned();
    for tip in TIPS {
        let _ = match tip {
            512 => write!(table, " 512 B |"),
            32_768 => write!(table, " 32 KB (Equinox) |"),
            _ => write!(table, " {} KB |", tip / 1_024),
        };
    }
    let _ = write!(table, "\n|---|---|{}\n", "---|".repeat(TIPS.len()));
    let mut rows = Vec::new();
    for (event, unfold) in shapes.into_iter().step_by(step) {
        let unfold_text = if unfold == 0 { "none".to_owned() } else { format!("{unfold} B") };
        let mut text = format!("| {event} B | {unfold_text} |");
        let mut row = Vec::new();
        for tip in TIPS {
            row.push(units(tip, event, unfold).await);
        }
        let (ours, equinoxs) = (row[default], row[TIPS.len() - 1]);
        let is_small = unfold < 3_000;
        assert!(!is_small || 2.0 * ours < equinoxs, "{event} B: {ours} against {equinoxs}");
        for units in row {
            let _ = write!(text, " {units:.1} |");
        }
        rows.push(text + "\n");
    }
    (table, rows)
}

#[tokio::test]
async fn the_page_has_the_curve() {
    let page = fs::read_to_string(PAGE).expect("the page");
    let begin = page.find(BEGIN).expect("a place for the table") + BEGIN.len();
    let end = page.find(END).expect("the table ends");
    if env::var_os("UPDATE").is_some() {
        let (head, rows) = table(1).await;
        let page = format!("{}{head}{}{}", &page[..begin], rows.concat(), &page[end..]);
        fs::write(PAGE, page).expect("the page can be written");
        return;
    }
    let step = bound(5, 1);
    let (head, expected) = table(step).await;
    let found = page[begin..end].strip_prefix(&*head).unwrap_or_default();
    let found: Vec<_> = found.split_inclusive('\n').step_by(step).collect();
    assert_eq!(
        found, expected,
        "write it with `UPDATE=1 cargo test --test document-log the_page_has`"
    );
}
