//! A slow store that shows items late or holds them, in this process and with paused time.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use futures::future::join_all;
use ringfence_aws::wire::{Director, Edit, Fault, Wire};
use ringfence_aws::{Clock, Item, Random, seed_thread};
use ringfence_core::events;
use ringfence_dcb_log::{DcbLog, Difference, FenceDefect, VerifyOptions};
use ringfence_harness::bound;
use ringfence_local::engine::Engine;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::reads::{catalog, noted};
use crate::stack::{NOW_MS, TABLE, append, committed, envelope, table};
use crate::verify::fence_key;

fn start(director: Arc<impl Director + 'static>) -> (Client, DcbLog) {
    let catalog = catalog().expect("free of contradictions");
    let engine = Engine::memory().expect("a database in memory");
    let all = json!({ "ProjectionType": "ALL" });
    engine.create_table(&table(&catalog, &all), TABLE).expect("a table");
    let wire = Wire::default();
    wire.direct(director);
    let call = move |operation: &str, body: &[u8]| engine.call(operation, body);
    let client = wire.client_of(Arc::new(call));
    let log = DcbLog::new(client.clone(), TABLE, catalog, Clock::fixed(NOW_MS));
    (client, log)
}

/// Appends a note, and returns its time.
async fn note(log: &DcbLog, book: &str, reader: &str) -> u64 {
    committed(append(log, events![noted(book, reader, "")], &envelope()).await).remove(0).at
}

async fn set_count(client: &Client, boundary: &str, count: u64) {
    let update = client.update_item().table_name(TABLE).set_key(Some(fence_key(boundary)));
    let update = update.update_expression("SET #count = :count");
    let update = update.expression_attribute_names("#count", "cnt#Noted");
    let count = AttributeValue::N(count.to_string());
    update.expression_attribute_values(":count", count).send().await.expect("a fence");
}

async fn fence(client: &Client, boundary: &str) -> Item {
    let get = client.get_item().table_name(TABLE).set_key(Some(fence_key(boundary)));
    get.send().await.expect("an answer").item.expect("a fence")
}

/// Scans show some committed events late.
#[derive(Default)]
struct Late(Mutex<Vec<(u64, Instant)>>);

impl Late {
    fn hide(&self, at: u64, seconds: u64) {
        let until = Instant::now() + Duration::from_secs(seconds);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((at, until));
    }
}

impl Director for Late {
    fn faults(&self, operation: &str, _: &Value) -> Vec<Fault> {
        if operation != "Scan" {
            return Vec::new();
        }
        let mut hidden = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        hidden.retain(|(_, until)| Instant::now() < *until);
        let is_at = |item: &Value, at: u64| item["at"]["N"].as_str() == Some(&at.to_string());
        let shows = move |item: &Value| !hidden.iter().any(|(at, _)| is_at(item, *at));
        vec![Fault::Reply(Edit::new(move |answer| {
            answer["Items"].as_array_mut().expect("items").retain(&shows);
        }))]
    }

    fn carried_out(&self, _: &str, _: &Value, _: u16) {}
}

#[tokio::test(start_paused = true)]
async fn an_event_that_shows_late_is_not_overlooked_by_the_survey() {
    let late = Arc::new(Late::default());
    let (client, log) = start(late.clone());
    let first = note(&log, "b", "r").await;
    note(&log, "b", "r").await;
    set_count(&client, "readerId:r", 1).await;
    // Without the late event, the other events agree with the fence.
    late.hide(first, 4);
    let report = log.verify_fences(&VerifyOptions::default()).await.expect("a report");
    let wrong: Vec<_> = report.differences.iter().flat_map(|differs| &differs.wrong).collect();
    let count = FenceDefect::Count { event_type: "Noted".to_owned(), counted: 1, found: 2 };
    assert_eq!(wrong, [&count]);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_shows_late_is_not_overlooked_by_an_examination() {
    let late = Arc::new(Late::default());
    let (client, log) = start(late.clone());
    note(&log, "b", "r").await;
    note(&log, "b", "r").await;
    set_count(&client, "readerId:r", 1).await;
    let append_during_survey = async {
        sleep(Duration::from_millis(4_900)).await;
        late.hide(note(&log, "b", "r").await, 4);
    };
    let options = VerifyOptions::default();
    let (report, ()) = tokio::join!(log.repair_fences(&options), append_during_survey);
    assert!(report.as_ref().is_ok_and(|report| report.in_order()), "{report:?}");
    assert_eq!(fence(&client, "readerId:r").await["cnt#Noted"], AttributeValue::N("3".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_event_that_shows_late_makes_no_gap() {
    let late = Arc::new(Late::default());
    let (_, log) = start(late.clone());
    let first = note(&log, "b", "r").await;
    note(&log, "b", "r").await;
    // The survey starts after five seconds. It misses the first event and finds the second.
    late.hide(first, 7);
    let report = log.verify_fences(&VerifyOptions::default()).await.expect("a report");
    assert!(report.in_order(), "{report:?}");
}

/// Each item is being written in one of twenty looks. Then the whole look is rejected.
struct Busy(Mutex<Random>);

impl Director for Busy {
    fn faults(&self, operation: &str, request: &Value) -> Vec<Fault> {
        if operation != "TransactGetItems" {
            return Vec::new();
        }
        let mut random = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gets = request["TransactItems"].as_array().expect("gets");
        let code = |_| if random.chance(5) { "TransactionConflict" } else { "None" };
        let codes: Vec<_> = gets.iter().map(code).collect();
        let busy = codes.contains(&"TransactionConflict");
        busy.then(|| Fault::cancelled(&codes)).into_iter().collect()
    }

    fn carried_out(&self, _: &str, _: &Value, _: u16) {}
}

#[tokio::test(start_paused = true)]
async fn fences_that_are_often_written_to_are_verified_and_mended() {
    let (client, log) = start(Arc::new(Busy(Mutex::new(Random::new(&[1])))));
    for book in 0..60 {
        note(&log, &format!("b{book}"), &format!("r{book}")).await;
        set_count(&client, &format!("readerId:r{book}"), 7).await;
        set_count(&client, &format!("bookId:b{book}#readerId:r{book}"), 7).await;
    }
    let report = log.verify_fences(&VerifyOptions::default()).await.expect("a report");
    assert_eq!(report.differences.len(), 120);
    let report = log.repair_fences(&VerifyOptions::default()).await.expect("a report");
    assert_eq!((report.mended.len(), report.in_order()), (120, true));
}

/// A transaction holds the fence of `readerId:r0` during these reads of it.
struct Held(Range<usize>, AtomicUsize);

impl Director for Held {
    fn faults(&self, operation: &str, request: &Value) -> Vec<Fault> {
        let gets = request["TransactItems"].as_array().filter(|_| operation == "TransactGetItems");
        let Some(gets) = gets else { return Vec::new() };
        let held = |get: &Value| get["Get"]["Key"]["id"]["S"] == "fence#readerId:r0";
        let code = |get| if held(get) { "TransactionConflict" } else { "None" };
        let codes: Vec<_> = gets.iter().map(code).collect();
        let reads = codes.contains(&"TransactionConflict");
        let holds = reads && self.0.contains(&self.1.fetch_add(1, Ordering::Relaxed));
        holds.then(|| Fault::cancelled(&codes)).into_iter().collect()
    }

    fn carried_out(&self, _: &str, _: &Value, _: u16) {}
}

/// Three readers. The fences of two count wrong, and the fence of the first is held during these reads.
async fn three_readers(held: Range<usize>) -> DcbLog {
    let (client, log) = start(Arc::new(Held(held, AtomicUsize::new(0))));
    for reader in ["r0", "r1", "r2"] {
        note(&log, "b", reader).await;
    }
    for reader in ["r0", "r1"] {
        set_count(&client, &format!("readerId:{reader}"), 7).await;
    }
    log
}

#[tokio::test(start_paused = true)]
async fn a_fence_that_is_always_being_written_is_undecided_and_stops_no_other() {
    let log = three_readers(0..usize::MAX).await;
    let wrong = |differences: &[Difference]| -> Vec<_> {
        differences.iter().map(|d| (d.boundary.to_string(), d.wrong.clone())).collect()
    };
    let held = ("readerId:r0".to_owned(), vec![FenceDefect::Undecided]);
    let count = FenceDefect::Count { event_type: "Noted".to_owned(), counted: 7, found: 1 };
    let other = ("readerId:r1".to_owned(), vec![count]);
    let report = log.verify_fences(&VerifyOptions::default()).await.expect("a report");
    assert_eq!(wrong(&report.differences), [held.clone(), other.clone()]);
    let report = log.repair_fences(&VerifyOptions::default()).await.expect("a report");
    assert_eq!((wrong(&report.differences), wrong(&report.mended)), (vec![held], vec![other]));
}

#[tokio::test(start_paused = true)]
async fn a_fence_that_a_write_holds_is_mended_after_the_next_examination() {
    // Each examination reads it twice; all attempts of the first mending find it held.
    let log = three_readers(2..10).await;
    let report = log.repair_fences(&VerifyOptions::default()).await.expect("a report");
    assert_eq!((report.mended.len(), report.in_order()), (2, true), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn a_fence_that_is_being_written_after_the_scan_is_examined_again() {
    // The read of all suspects, then the attempts to read only this one.
    let log = three_readers(1..18).await;
    let report = log.verify_fences(&VerifyOptions::default()).await.expect("a report");
    assert_eq!(report.differences.len(), 2, "{report:?}");
    let known = report.differences.iter().all(|differs| differs.wrong != [FenceDefect::Undecided]);
    assert!(known, "{report:?}");
}

/// Each request takes some milliseconds.
pub(crate) struct Slow(Mutex<Random>);

impl Slow {
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Random::new(&[seed]))))
    }
}

impl Director for Slow {
    fn faults(&self, _: &str, _: &Value) -> Vec<Fault> {
        let mut random = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        vec![Fault::Delay(Duration::from_millis(4 + random.below(8)))]
    }

    fn carried_out(&self, _: &str, _: &Value, _: u16) {}
}

#[tokio::test(start_paused = true)]
async fn all_writers_that_only_need_later_times_succeed() {
    let writers = bound(32, 64);
    seed_thread(1);
    let (client, _) = start(Slow::new(1));
    // One tag across partitions, or one partition, that no writer has read.
    for event in
        [|n: u32| noted(&format!("b{n}"), "r", ""), |n: u32| noted("b", &format!("r{n}"), "")]
    {
        let appends = (0..writers).map(async |n| {
            let catalog = catalog().expect("free of contradictions");
            let log = DcbLog::new(client.clone(), TABLE, catalog, Clock::running(NOW_MS));
            let appended = append(&log, events![event(n)], &envelope()).await;
            (appended.map(|_| ()).map_err(|error| error.to_string()), log.meter().snapshot().writes)
        });
        let (ends, sent): (Vec<_>, Vec<_>) = join_all(appends).await.into_iter().unzip();
        let gave_up: Vec<_> = ends.into_iter().filter_map(Result::err).collect();
        assert_eq!(gave_up, Vec::<String>::new());
        assert!(sent.into_iter().sum::<u32>() > 2 * writers, "they were not in each other's way");
    }
    let catalog = catalog().expect("free of contradictions");
    let log = DcbLog::new(client, TABLE, catalog, Clock::running(NOW_MS));
    let report = log.verify_fences(&VerifyOptions::default()).await.expect("a report");
    assert!(report.in_order() && report.events == u64::from(2 * writers), "{report:?}");
}
