//! Interchange with the original, `@equinox-js/dynamo-store`: each reads the items of the other, and exactly one of two
//! writers at one version wins.

use futures::TryStreamExt;
use ringfence_core::{Consistency, Envelope};
use ringfence_document_log::{
    AccessStrategy, Cache, Category, Direction, DynamoStore, Encoding, Load, Span, StreamAppend,
    StreamAppended, TipLimits,
};
use ringfence_harness::Driver;
use ringfence_harness::bound;
use serde_json::{Value, json};

use crate::basket::{Event, State, add, added, baskets, rolling, snapshot, state, transact};
use crate::equinox;
use crate::stack::{Stack, events_max, log, name};
use crate::streams::image;

/// The number of races for one version, of each kind.
fn races() -> u64 {
    bound(8, 25)
}

fn ours(
    stack: &Stack,
    limits: TipLimits,
    access: AccessStrategy<State>,
) -> Category<State, DynamoStore> {
    baskets(log(stack.store()).with_limits(limits), access, Cache::none())
}

fn js(events: &[Event]) -> Vec<Value> {
    let event = |event: &Event| match event.stored() {
        (name, None) => json!({ "type": name }),
        (name, Some(data)) => json!({ "type": name, "data": data }),
    };
    events.iter().map(event).collect()
}

/// Checks that the original and this crate read the same state and version of a stream with this strategy.
async fn agree(original: &mut Driver, stack: &Stack, id: &str, strategy: &str) -> State {
    let theirs = original.call("query", json!({ "id": id, "strategy": strategy })).await;
    let access = match strategy {
        "unoptimized" => AccessStrategy::Unoptimized,
        "latest" => AccessStrategy::LatestKnownEvent,
        "rolling" => rolling(),
        _ => snapshot(),
    };
    let category = ours(stack, TipLimits::default(), access);
    let envelope = Envelope::default();
    let read = category.query(id, Load::Strong, &envelope, State::clone).await;
    let (state, version) = read.expect("it can be read");
    assert_eq!(theirs["state"], serde_json::to_value(&state).expect("JSON"), "{id} {strategy}");
    assert_eq!(theirs["version"], version, "{id} {strategy}");
    state
}

#[tokio::test(flavor = "multi_thread")]
async fn each_reads_events_that_both_wrote_in_turn() {
    let stack = Stack::start().await;
    let Some(mut original) = equinox::start(&stack).await else { return };
    let tips = [
        (TipLimits::EQUINOX, json!({})),
        (events_max(2), json!({ "maxEvents": 2 })),
        (TipLimits { event_bytes_max: 200, ..TipLimits::EQUINOX }, json!({ "maxEventBytes": 150 })),
    ];
    for (t, (limits, tip)) in (0_u32..).zip(tips) {
        for strategy in ["unoptimized", "latest", "snapshot", "snapshots", "rolling"] {
            let id = format!("{strategy}{t}");
            let access = || match strategy {
                "unoptimized" => AccessStrategy::Unoptimized,
                "latest" => AccessStrategy::LatestKnownEvent,
                "rolling" => rolling(),
                _ => snapshot(),
            };
            for turn in 0..8 {
                if turn % 2 == t % 2 {
                    let events = js(&[added(turn), added(turn)]);
                    let command = json!({
                        "id": id, "strategy": strategy, "tip": tip, "events": events,
                    });
                    original.call("transact", command).await;
                } else {
                    add(&ours(&stack, limits, access()), &id, turn).await;
                }
                agree(&mut original, &stack, &id, strategy).await;
            }
            let verified = log(stack.store()).verify(&name(&id), &Envelope::default()).await;
            let report = verified.expect("an answer");
            assert_eq!(report.problems, [], "{id}");
            assert_eq!(report.calves > 0, t > 0 && strategy != "rolling", "{id} {report:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_reads_bodies_of_the_other_in_every_encoding() {
    let stack = Stack::start().await;
    let Some(mut original) = equinox::start(&stack).await else { return };
    let many = State { items: (0..200).map(|sku| (sku, sku)).collect(), closed: false };
    let event = Event::Snapshot { items: many.items.clone(), closed: false };
    for (codec, number) in [("raw", 0), ("deflate", 1), ("flushed", 1), ("brotli", 2)] {
        let events = js(&[added(1), event.clone()]);
        original.call("transact", json!({ "id": codec, "codec": codec, "events": events })).await;
        let read = log(stack.store());
        let strong = Consistency::Strong;
        let tip = read.tip(&name(codec), strong, &Envelope::default()).await.expect("an answer");
        assert_eq!(tip.expect("a Tip").events[1].data.encoding, number, "{codec}");
        let category = ours(&stack, TipLimits::default(), AccessStrategy::Unoptimized);
        assert_eq!(state(&category, codec).await, many, "{codec}");
    }
    for encoding in [Encoding::Raw, Encoding::Deflate, Encoding::Brotli] {
        let id = format!("{encoding:?}");
        let log = log(stack.store()).with_encoding(encoding);
        let category = baskets(log, AccessStrategy::Unoptimized, Cache::none());
        let event = event.clone();
        transact(&category, &id, Load::Eventual, |_| Ok(vec![event.clone()])).await;
        let tip = category.log().tip(&name(&id), Consistency::Strong, &Envelope::default()).await;
        let stored = tip.expect("an answer").expect("a Tip").events[0].data.encoding;
        assert_eq!(stored, encoding.number());
        assert_eq!(agree(&mut original, &stack, &id, "unoptimized").await, many, "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_read_the_same_events() {
    let stack = Stack::start().await;
    let Some(mut original) = equinox::start(&stack).await else { return };
    let category = ours(&stack, events_max(3), AccessStrategy::Unoptimized);
    for sku in 0..4 {
        add(&category, "x", sku).await;
        let command =
            json!({ "id": "x", "tip": { "maxEvents": 2 }, "events": js(&[Event::Closed]) });
        original.call("transact", command).await;
        let reopen = vec![Event::Snapshot { items: [].into(), closed: false }];
        transact(&category, "x", Load::Eventual, |_| Ok(reopen.clone())).await;
    }
    let (stream, envelope) = (name("x"), Envelope::default());
    let (all, strong) = (0..u64::MAX, Consistency::Strong);
    let read = category.log().read(&stream, all, Direction::Forward, strong, &envelope);
    let events: Vec<_> = read.try_collect().await.expect("whole");
    let event = |recorded: &ringfence_document_log::TimelineEvent| {
        let mut json = json!({ "index": recorded.index, "type": recorded.event.event_type });
        if let Some(data) = recorded.event.data.json().expect("JSON") {
            json["data"] = data;
        }
        json
    };
    let ours: Vec<_> = events.iter().map(event).collect();
    assert_eq!(ours.len(), 12);
    assert_eq!(original.call("read", json!({ "id": "x" })).await["events"], json!(ours));
}

#[tokio::test(flavor = "multi_thread")]
async fn exactly_one_of_two_writers_at_one_version_wins() {
    let stack = Stack::start().await;
    let Some(mut original) = equinox::start(&stack).await else { return };
    // The first write of a stream, an append, and a calving, by either or both.
    let kinds = [("first", None, None), ("append", None, None), ("ours", Some(1), None)];
    let kinds = kinds.into_iter().chain([("theirs", None, Some(1)), ("both", Some(1), Some(1))]);
    let (mut won, mut lost) = (0, 0);
    for (kind, our_max, their_max) in kinds {
        let log = log(stack.store());
        let limits = our_max.map_or(TipLimits::EQUINOX, events_max);
        let log = log.with_limits(limits);
        let mut version = 0;
        for race in 0..races() {
            let id = if kind == "first" { format!("first{race}") } else { kind.to_owned() };
            let (stream, envelope) = (name(&id), Envelope::default());
            let tip = their_max.map_or(json!({}), |most| json!({ "maxEvents": most }));
            let events = js(&[added(1)]);
            let held =
                original.call("hold", json!({ "id": id, "tip": tip, "events": events })).await;
            assert_eq!(held, "held");
            let known = log.tip(&stream, Consistency::Strong, &envelope).await;
            let known = known.expect("an answer");
            let append = log.append(StreamAppend {
                stream: &stream,
                known: known.as_ref(),
                by_etag: false,
                events: crate::contract::events(2..3),
                unfolds: vec![],
                envelope: &envelope,
            });
            original.send("go", json!({})).await;
            let written =
                matches!(append.await.expect("it is settled"), StreamAppended::Written(_));
            let answer = original.answer().await;
            let theirs = answer["ok"] == "written";
            assert_ne!(written, theirs, "{kind}, race {race}: {answer}");
            *(if written { &mut won } else { &mut lost }) += 1;
            version = if kind == "first" { 1 } else { version + 1 };
            let report = log.verify(&stream, &envelope).await.expect("an answer");
            assert_eq!((report.version, report.problems), (version, vec![]), "{kind}, race {race}");
            agree(&mut original, &stack, &id, "unoptimized").await;
        }
    }
    eprintln!("of {} races ours won {won}, the original {lost}", won + lost);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_with_the_original_is_decided_again() {
    let stack = Stack::start().await;
    let Some(mut original) = equinox::start(&stack).await else { return };
    for (access, strategy) in [(snapshot(), "snapshot"), (rolling(), "rolling")] {
        let cached = baskets(log(stack.store()), access, crate::basket::some_cache());
        add(&cached, strategy, 1).await;
        let command = json!({ "id": strategy, "strategy": strategy, "events": js(&[added(2)]) });
        original.call("transact", command).await;
        let added = transact(&cached, strategy, Load::Cached, |state| state.add(3, 1)).await;
        assert_eq!(added.attempts, 2, "the cached Tip was not the newest");
        assert_eq!(agree(&mut original, &stack, strategy, strategy).await.total(), 3);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_original_reads_snapshots_of_a_pruned_stream_and_goes_on() {
    let stack = Stack::start().await;
    let Some(mut original) = equinox::start(&stack).await else { return };
    let category = ours(&stack, events_max(2), snapshot());
    for sku in 0..5 {
        add(&category, "x", sku).await;
    }
    let pruned = category.log().prune(&name("x"), 5, &Envelope::default()).await.expect("pruned");
    assert_eq!(pruned.first, 5);
    assert_eq!(agree(&mut original, &stack, "x", "snapshot").await.total(), 5);
    let events = js(&[added(9)]);
    let command = json!({ "id": "x", "strategy": "snapshot", "events": events });
    original.call("transact", command).await;
    assert_eq!(agree(&mut original, &stack, "x", "snapshot").await.total(), 6);
    let report = category.log().verify(&name("x"), &Envelope::default()).await;
    assert_eq!(report.expect("an answer").problems, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn stream_images_of_the_original_are_appends() {
    let stack = Stack::start().await;
    let Some(mut original) = equinox::start(&stack).await else { return };
    let mut stream = stack.stream();
    let tip = json!({ "maxEvents": 2 });
    for count in [1, 2, 1, 3] {
        let events = js(&vec![added(7); count]);
        let command = json!({ "id": "x", "strategy": "snapshot", "tip": tip, "events": events });
        original.call("transact", command).await;
    }
    let command = json!({ "id": "y", "strategy": "rolling", "events": js(&[added(1)]) });
    original.call("transact", command).await;
    let records = stream.read().expect("records");
    let images = records.iter().map(|record| image(&record["dynamodb"]["NewImage"]));
    let spans: Vec<_> =
        images.filter_map(|image| Span::of_image(image).expect("a batch")).collect();
    let shape: Vec<_> = spans.iter().map(|span| (span.index, span.events.len())).collect();
    assert_eq!(shape, [(0, 1), (1, 2), (3, 1), (4, 3)]);
    for recorded in spans.iter().flat_map(|span| &span.events) {
        let data = recorded.event.data.json().expect("JSON").expect("a payload");
        assert_eq!((&*recorded.event.event_type, &data["sku"]), ("Added", &json!(7)));
    }
}
