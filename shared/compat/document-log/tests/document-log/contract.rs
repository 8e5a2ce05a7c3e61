//! The contract of every store: writes are guarded, and all or nothing.

use futures::TryStreamExt;
use ringfence_core::{Consistency, Envelope, Metadata};
use ringfence_document_log::{
    Batch, Direction, DocumentError, DocumentLog, NESTING_MAX, Payload, Store, StreamAppend,
    StreamAppended, TimelineEvent, TipLimits,
};
use ringfence_harness::bound;
use serde_json::{Value, json};

use crate::stack::{command, events_max, log, name};

/// Runs each of these tests in memory and on DynamoDB.
#[macro_export]
macro_rules! on_both {
    ($($test:ident),* $(,)?) => {
        mod memory {
            $(#[tokio::test] async fn $test() {
                super::$test(ringfence_document_log::MemoryStore::default()).await;
            })*
        }
        mod dynamo {
            $(#[tokio::test] async fn $test() {
                let stack = $crate::stack::Stack::start().await;
                super::$test(stack.store()).await;
            })*
        }
    };
}

on_both![
    a_stream_begins_once,
    an_append_by_version_is_refused_when_events_came_between,
    an_append_by_etag_is_refused_when_anything_came_between,
    events_come_back_from_either_end,
    a_tip_calves_by_count,
    a_tip_calves_by_bytes,
    unfolds_alone_keep_the_version_and_may_calve,
    an_append_that_is_too_large_is_refused_before_it_is_sent,
    metadata_is_beside_the_payload,
    any_json_is_a_payload,
    json_that_is_too_deep_for_readers_is_refused_before_it_is_sent,
];

pub(crate) fn events(numbers: std::ops::Range<u64>) -> Vec<Payload> {
    numbers.map(|n| Payload::new("Added", Some(json!({ "sku": n, "quantity": 1 })))).collect()
}

pub(crate) async fn append<S: Store>(
    log: &DocumentLog<S>,
    known: Option<&Batch>,
    numbers: std::ops::Range<u64>,
) -> StreamAppended {
    let (stream, envelope) = (name("a"), Envelope::default());
    let (events, unfolds) = (events(numbers), Vec::new());
    let append = StreamAppend {
        stream: &stream,
        known,
        by_etag: false,
        events,
        unfolds,
        envelope: &envelope,
    };
    log.append(append).await.expect("it is settled")
}

#[track_caller]
pub(crate) fn written(appended: StreamAppended) -> Batch {
    match appended {
        StreamAppended::Written(tip) => tip,
        StreamAppended::Conflict(found) => panic!("a conflict with {found:?}"),
    }
}

#[track_caller]
fn conflict(appended: StreamAppended) -> Option<Batch> {
    match appended {
        StreamAppended::Conflict(found) => found,
        StreamAppended::Written(tip) => panic!("written: {tip:?}"),
    }
}

pub(crate) async fn read<S: Store>(
    log: &DocumentLog<S>,
    range: std::ops::Range<u64>,
    direction: Direction,
) -> Result<Vec<u64>, DocumentError> {
    let (stream, envelope) = (name("a"), Envelope::default());
    let consistency = Consistency::Eventual;
    let events: Vec<TimelineEvent> =
        log.read(&stream, range, direction, consistency, &envelope).try_collect().await?;
    let sku = |recorded: &TimelineEvent| {
        let data = recorded.event.data.json().expect("JSON").expect("a payload");
        assert_eq!(data["sku"], recorded.index, "an event at another's place");
        recorded.index
    };
    Ok(events.iter().map(sku).collect())
}

async fn a_stream_begins_once<S: Store>(store: S) {
    let log = log(store);
    let tip = written(append(&log, None, 0..2).await);
    assert_eq!((tip.version, tip.appended, tip.events.len()), (2, 2, 2));
    let found = conflict(append(&log, None, 0..1).await);
    assert!(found.is_none_or(|found| found == tip));
    let there = log.tip(&name("a"), Consistency::Strong, &Envelope::default()).await;
    assert_eq!(there.expect("an answer"), Some(tip));
}

async fn an_append_by_version_is_refused_when_events_came_between<S: Store>(store: S) {
    let log = log(store);
    let first = written(append(&log, None, 0..1).await);
    let second = written(append(&log, Some(&first), 1..3).await);
    assert_eq!(conflict(append(&log, Some(&first), 1..2).await), Some(second.clone()));
    // An append of unfolds alone keeps the version.
    let (stream, envelope) = (name("a"), Envelope::default());
    let unfolds = vec![Payload::new("State", Some(json!(1)))];
    let unfold = StreamAppend {
        stream: &stream,
        known: Some(&second),
        by_etag: true,
        events: vec![],
        unfolds,
        envelope: &envelope,
    };
    let unfolded = written(log.append(unfold).await.expect("it is settled"));
    assert_ne!(unfolded.etag, second.etag);
    let third = written(append(&log, Some(&second), 3..4).await);
    assert_eq!((third.version, third.unfolds.len()), (4, 0));
    assert_eq!(read(&log, 0..9, Direction::Forward).await.expect("whole"), [0, 1, 2, 3]);
}

async fn an_append_by_etag_is_refused_when_anything_came_between<S: Store>(store: S) {
    let log = log(store);
    let (stream, envelope) = (name("a"), Envelope::default());
    let unfold = |known: Option<Batch>| {
        let (log, stream, envelope) = (&log, &stream, &envelope);
        async move {
            let unfolds = vec![Payload::new("State", Some(json!(1)))];
            let known = known.as_ref();
            let append =
                StreamAppend { stream, known, by_etag: true, events: vec![], unfolds, envelope };
            log.append(append).await.expect("it is settled")
        }
    };
    let first = written(unfold(None).await);
    assert_eq!((first.version, first.appended, first.unfolds[0].version), (0, 0, 0));
    let second = written(unfold(Some(first.clone())).await);
    assert_eq!(conflict(unfold(Some(first)).await), Some(second.clone()));
    // A stream at version 0 that has a Tip takes its first event.
    let tip = written(append(&log, Some(&second), 0..1).await);
    assert_eq!((tip.version, tip.events.len()), (1, 1));
}

async fn events_come_back_from_either_end<S: Store>(store: S) {
    let log = log(store).with_limits(events_max(3));
    let mut tip = None;
    for n in 0..20 {
        tip = Some(written(append(&log, tip.as_ref(), n..n + 1).await));
    }
    for from in 0..22 {
        for to in (from..23).step_by(bound(3, 1)) {
            let expected: Vec<u64> = (from..to.min(20)).collect();
            let found = read(&log, from..to, Direction::Forward).await.expect("whole");
            assert_eq!(found, expected, "{from}..{to}");
            let mut found = read(&log, from..to, Direction::Backward).await.expect("whole");
            found.reverse();
            assert_eq!(found, expected, "{from}..{to} backward");
        }
    }
    let all = read(&log, 0..u64::MAX, Direction::Backward).await.expect("whole");
    assert_eq!(all.len(), 20);
}

async fn a_tip_calves_by_count<S: Store>(store: S) {
    let log = log(store).with_limits(events_max(2));
    let tip = written(append(&log, None, 0..2).await);
    assert_eq!((tip.calved_bytes, tip.events.len()), (0, 2));
    let calf_bytes = tip.event_bytes() as u64;
    let tip = written(append(&log, Some(&tip), 2..5).await);
    // An append larger than the limit is never split: every event enters through the Tip.
    assert_eq!((tip.calved_bytes, tip.events.len(), tip.appended), (calf_bytes, 3, 3));
    let report = log.verify(&name("a"), &Envelope::default()).await.expect("an answer");
    assert_eq!((report.version, report.calves, report.problems), (5, 1, vec![]));
}

async fn a_tip_calves_by_bytes<S: Store + Clone>(store: S) {
    let generous = log(store.clone());
    let first = written(append(&generous, None, 0..1).await);
    let bytes = first.event_bytes();
    let limited = |event_bytes_max| {
        log(store.clone()).with_limits(TipLimits { event_bytes_max, ..TipLimits::default() })
    };
    let second = written(append(&limited(2 * bytes), Some(&first), 1..2).await);
    assert_eq!((second.events.len(), second.calved_bytes), (2, 0));
    let third = written(append(&limited(3 * bytes - 1), Some(&second), 2..3).await);
    assert_eq!((third.events.len(), third.calved_bytes), (1, 2 * bytes as u64));
}

async fn unfolds_alone_keep_the_version_and_may_calve<S: Store>(store: S) {
    let limits = TipLimits { bytes_max: 500, ..TipLimits::default() };
    let log = log(store).with_limits(limits);
    let tip = written(append(&log, None, 0..2).await);
    let (stream, envelope) = (name("a"), Envelope::default());
    let noise: Vec<u32> = (0..300_u32).map(|n| n.wrapping_mul(2_654_435_761)).collect();
    let unfolds = vec![Payload::new("State", Some(json!(noise)))];
    let (known, events) = (Some(&tip), vec![]);
    let append = StreamAppend {
        stream: &stream,
        known,
        by_etag: true,
        events,
        unfolds,
        envelope: &envelope,
    };
    let after = written(log.append(append).await.expect("it is settled"));
    assert_eq!((after.version, after.events.len(), after.appended), (2, 0, 0));
    let report = log.verify(&stream, &envelope).await.expect("an answer");
    assert_eq!((report.calves, report.problems), (1, vec![]));
    assert_eq!(read(&log, 0..2, Direction::Backward).await.expect("whole"), [1, 0]);
    let tip = written(self::append(&log, Some(&after), 2..3).await);
    assert_eq!((tip.version, tip.events.len()), (3, 1));
}

async fn an_append_that_is_too_large_is_refused_before_it_is_sent<S: Store>(store: S) {
    let log = log(store).with_encoding(ringfence_document_log::Encoding::Raw);
    let (stream, envelope) = (name("a"), Envelope::default());
    let large = |bytes: usize| vec![Payload::new("X", Some(Value::from("x".repeat(bytes - 43))))];
    let (known, by_etag) = (None, false);
    let append = |events, unfolds| {
        log.append(StreamAppend {
            stream: &stream,
            known,
            by_etag,
            events,
            unfolds,
            envelope: &envelope,
        })
    };
    let error = append(large(354_305), vec![]).await.expect_err("too large");
    assert_eq!(
        error.to_string(),
        "the append to Basket-a: 354305 bytes, limit 354304; append fewer or smaller events at once"
    );
    let error = append(events(0..1), large(409_600)).await.expect_err("too large");
    assert!(error.to_string().starts_with("the Tip of Basket-a: 409"), "{error}");
    let error = append(vec![], vec![]).await.expect_err("nothing");
    assert_eq!(error.to_string(), "nothing to write to Basket-a: give events or unfolds");
    assert_eq!(log.tip(&stream, Consistency::Strong, &envelope).await.expect("an answer"), None);
    let tip = written(append(large(354_304), vec![]).await.expect("at the limit"));
    // If an append does not fit beside the Tip's events, the Tip calves, whatever the limits say.
    let log = log.with_limits(TipLimits {
        event_bytes_max: usize::MAX,
        bytes_max: usize::MAX,
        events_max: None,
    });
    let known = Some(&tip);
    let (events, unfolds) = (large(200_000), vec![]);
    let append =
        StreamAppend { stream: &stream, known, by_etag, events, unfolds, envelope: &envelope };
    let tip = written(log.append(append).await.expect("it fits"));
    assert_eq!((tip.events.len(), tip.calved_bytes), (1, 354_304));
}

async fn metadata_is_beside_the_payload<S: Store>(store: S) {
    let log = log(store);
    let (stream, envelope) = (name("a"), command("c-1"));
    let (events, unfolds) = (events(0..1), Vec::new());
    let (known, by_etag) = (None, false);
    let append =
        StreamAppend { stream: &stream, known, by_etag, events, unfolds, envelope: &envelope };
    written(log.append(append).await.expect("it is settled"));
    let tip = log.tip(&stream, Consistency::Strong, &envelope).await.expect("an answer");
    let event = &tip.expect("a Tip").events[0];
    assert_eq!(event.correlation_id.as_deref(), Some("corr"));
    assert_eq!(event.causation_id.as_deref(), Some("cause"));
    assert_eq!(event.meta.json().expect("JSON"), Some(json!({ "commandId": "c-1" })));
    assert_eq!(event.time, "2024-06-23T00:00:00.000Z");
}

/// Bodies are bytes, so they can have JSON that an attribute can't hold.
async fn any_json_is_a_payload<S: Store>(store: S) {
    let log = log(store);
    let (stream, envelope) = (name("a"), Envelope::default());
    let deep = nested(NESTING_MAX - 1);
    let data =
        json!({ "": { "": 1 }, "number": 1e300, "deep": deep, "long": { "x".repeat(70_000): 1 } });
    let events = vec![Payload::new("Odd", Some(data.clone()))];
    let (known, by_etag, unfolds) = (None, false, Vec::new());
    let append =
        StreamAppend { stream: &stream, known, by_etag, events, unfolds, envelope: &envelope };
    written(log.append(append).await.expect("it is settled"));
    let tip = log.tip(&stream, Consistency::Strong, &envelope).await.expect("an answer");
    assert_eq!(tip.expect("a Tip").events[0].data.json().expect("JSON"), Some(data));
}

/// A JSON with this many nested levels of lists and maps.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, level| match level % 2 {
        0 => json!([inner]),
        _ => json!({ "inner": inner }),
    })
}

async fn json_that_is_too_deep_for_readers_is_refused_before_it_is_sent<S: Store>(store: S) {
    let log = log(store);
    let (stream, deep) = (name("a"), nested(NESTING_MAX + 1));
    let payload = || vec![Payload::new("Deep", Some(deep.clone()))];
    let mut metadata = Metadata::default();
    metadata.insert("trail", deep.clone()).expect("not a key of the log");
    let of_deep = Envelope { metadata, ..Envelope::default() };
    for (subject, events, unfolds, envelope) in [
        ("Deep", payload(), vec![], Envelope::default()),
        ("Deep", events(0..1), payload(), Envelope::default()),
        ("metadata trail", events(0..1), vec![], of_deep),
    ] {
        let (known, by_etag, envelope) = (None, false, &envelope);
        let append = StreamAppend { stream: &stream, known, by_etag, events, unfolds, envelope };
        let error = log.append(append).await.expect_err("no reader goes as deep").to_string();
        let said = "121 levels of lists and maps, limit 120; nest its data less, or keep what is nested as a text";
        assert_eq!(error, format!("{subject}: {said}"));
    }
    let tip = log.tip(&stream, Consistency::Strong, &Envelope::default()).await;
    assert_eq!(tip.expect("an answer"), None);
}
