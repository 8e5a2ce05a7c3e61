//! The streams of the aggregate log and the document log, which share the index with the DCB log.

use aws_sdk_dynamodb::types::AttributeValue;
use futures::TryStreamExt;
use ringfence_aggregate_log::{AggregateKey, AggregateTable, NewAggregateEvent, Push, PushPlace};
use ringfence_aws::wire::{Fault, Wire};
use ringfence_aws::{Clock, Random, Retry, item_bytes};
use ringfence_core::{BoundaryId, Consistency, Envelope};
use ringfence_dcb_log::DcbLog;
use ringfence_document_log::{
    Direction, DocumentLog, DynamoStore, Payload, StreamAppend, StreamAppended, StreamName,
    TipLimits,
};
use ringfence_feed::{IndexError, Indexer, Partition, StreamError};
use serde_json::json;

use crate::world::{EVENTS, INDEX, World, catalog, changed, run};

pub(crate) const AGGREGATES: &str = "aggregates";
pub(crate) const DOCUMENTS: &str = "documents";

/// Tips calve soon, so that most reads meet calves.
const TIP_EVENTS_MAX: usize = 3;
/// Large events of a stream: more than a page of a query, and than an item of the index.
const LARGE: u64 = 7;

pub(crate) fn aggregates(client: aws_sdk_dynamodb::Client, clock: &Clock) -> AggregateTable {
    AggregateTable::new(client, AGGREGATES, clock.clone())
}

pub(crate) fn documents(
    client: aws_sdk_dynamodb::Client,
    clock: &Clock,
) -> DocumentLog<DynamoStore> {
    let limits = TipLimits { events_max: Some(TIP_EVENTS_MAX), ..TipLimits::default() };
    DocumentLog::new(DynamoStore::new(client, DOCUMENTS), clock.clone()).with_limits(limits)
}

fn new_event(note: &str) -> NewAggregateEvent {
    let (payload, metadata) = (Some(json!({ "note": note })), None);
    NewAggregateEvent { event_type: "Changed".to_owned(), payload, metadata, timestamp_ms: None }
}

fn aggregate(n: u64) -> AggregateKey {
    AggregateKey::new("things", format!("t{n}")).expect("a name")
}

pub(crate) fn stream(n: u64) -> StreamName {
    StreamName::new("things", &format!("s:{n}")).expect("a name")
}

/// Pushes `events` events onto each of some aggregates, in one transaction.
pub(crate) async fn push(log: &AggregateTable, aggregates: &[u64], events: u64) -> Vec<Partition> {
    let push = |n: &u64| Push {
        key: aggregate(*n),
        place: PushPlace::End,
        events: (0..events).map(|n| new_event(&n.to_string())).collect(),
    };
    log.push_event_group(aggregates.iter().map(push).collect()).await.expect("pushed");
    aggregates
        .iter()
        .map(|n| Partition::from(BoundaryId::stored(aggregate(*n).to_string())))
        .collect()
}

/// Appends to a stream.
pub(crate) async fn append(
    log: &DocumentLog<DynamoStore>,
    n: u64,
    events: u64,
    note: &str,
) -> Partition {
    let (stream, envelope) = (stream(n), Envelope::default());
    let known = log.tip(&stream, Consistency::Strong, &envelope).await.expect("the Tip");
    let event = || Payload::new("Changed", Some(json!({ "note": note })));
    let append = StreamAppend {
        stream: &stream,
        known: known.as_ref(),
        by_etag: false,
        events: (0..events).map(|_| event()).collect(),
        unfolds: Vec::new(),
        envelope: &envelope,
    };
    let appended = log.append(append).await.expect("appended");
    assert!(matches!(appended, StreamAppended::Written(_)), "{appended:?}");
    Partition::from(stream.partition())
}

/// Adds events to a random stream of one of the two logs.
pub(crate) async fn any(world: &World, random: &mut Random, things: u64) -> Vec<Partition> {
    let (n, events) = (random.below(things), 1 + random.below(3));
    match random.below(4) {
        0 => push(&world.aggregates, &[n], events).await,
        1 => push(&world.aggregates, &[n, things], events).await,
        _ => vec![append(&world.documents, n, events, "x").await],
    }
}

/// An indexer of the DCB log alone.
fn dcb_alone(world: &World) -> Indexer {
    let dcb = DcbLog::new(world.client.clone(), EVENTS, catalog(), world.clock.clone());
    Indexer::new([dcb.into()], world.client.clone(), INDEX)
}

async fn outcome(world: &World, partition: &Partition) -> Result<u64, IndexError> {
    let indexer = world.indexer(world.client.clone(), INDEX);
    let retry = Retry::default();
    indexer.index([partition.clone()], retry).await.remove(partition).expect("an outcome")
}

/// The last entry is of a log that the stack no longer has, so no progress shows whether its page is settled.
#[test]
fn a_log_that_is_gone_does_not_hold_up_the_others() {
    run(1, async {
        let world = World::new();
        for _ in 0..2 {
            let event = world.append(vec![changed(1, "x")]).await.remove(0);
            let outcomes = dcb_alone(&world).index([event.partition], Retry::default()).await;
            assert!(outcomes.values().all(|outcome| matches!(outcome, Ok(1))), "{outcomes:?}");
            push(&world.aggregates, &[1], 1).await;
            world.index_all(INDEX).await;
        }
        world.check(INDEX).await;
    });
}

#[test]
fn an_entry_is_the_event_that_its_log_has() {
    run(1, async {
        let world = World::new();
        let in_aggregate = push(&world.aggregates, &[1], 2).await.remove(0);
        let in_document = append(&world.documents, 1, 2, "x").await;
        world.index_all(INDEX).await;
        let entries = world.check(INDEX).await;
        let said: Vec<_> = entries
            .iter()
            .map(|entry| (entry.event.id(), &*entry.event.context, Partition::of(&entry.event)))
            .collect();
        let expected = [
            ("things#t1/1", in_aggregate.clone()),
            ("things#t1/2", in_aggregate),
            ("things-s%3A1/0", in_document.clone()),
            ("things-s%3A1/1", in_document),
        ];
        for (id, partition) in expected {
            assert!(said.contains(&(id.to_owned(), "things", partition)), "{id}: {said:?}");
        }
        assert_eq!(entries[0].event.data["note"].as_str().map(str::len), Some(1));
        assert_eq!(entries[0].event.recorded_at(), "2024-06-23T00:00:00.000Z");
    });
}

#[test]
fn a_stream_is_read_only_after_what_is_indexed() {
    run(2, async {
        let world = World::new();
        let costs = |wire: &Wire| wire.take().into_iter().map(|exchange| exchange.operation);
        let (wire, partition) = (Wire::default(), append(&world.documents, 1, 2, "x").await);
        let indexer = world.indexer(world.wired(&wire), INDEX);
        let index = |partition: Partition| indexer.index([partition], Retry::default());
        index(partition.clone()).await;
        assert_eq!(costs(&wire).next().as_deref(), Some("Query"), "the end of the index");
        let tip_alone = ["BatchGetItem", "GetItem", "PutItem", "UpdateItem"];
        // The second append calves; the new events are in the Tip again.
        append(&world.documents, 1, 2, "y").await;
        index(partition.clone()).await;
        assert!(costs(&wire).eq(tip_alone), "the events are in the Tip");
        // After two appends, a part of the new events is in a calf.
        append(&world.documents, 1, 2, "y").await;
        append(&world.documents, 1, 2, "y").await;
        index(partition.clone()).await;
        let calves = ["BatchGetItem", "GetItem", "Query", "Query", "PutItem", "UpdateItem"];
        assert!(costs(&wire).eq(calves), "the calf is looked for, and read with what follows");
        index(partition).await;
        assert!(costs(&wire).eq(["BatchGetItem", "GetItem"]), "nothing is new");
        // A record of the Tip shows what the last append has brought.
        let partition = append(&world.documents, 1, 2, "z").await;
        let records = world.records(&partition).await;
        assert_eq!(records[0].events.len(), 2);
        let outcomes = indexer.index(records, Retry::default()).await;
        assert_eq!(outcomes[&partition].as_ref().ok(), Some(&2), "{outcomes:?}");
        assert!(costs(&wire).eq(["BatchGetItem", "PutItem", "UpdateItem"]), "it is not read");
        let partition = push(&world.aggregates, &[1, 2], 2).await.remove(0);
        index(partition).await;
        assert!(costs(&wire).eq(["BatchGetItem", "Query", "PutItem", "UpdateItem"]));
        world.index_all(INDEX).await;
        world.check(INDEX).await;
    });
}

#[test]
fn a_large_backlog_goes_in_piece_by_piece() {
    run(3, async {
        let world = World::new();
        for n in 0..LARGE {
            let note = "x".repeat(200_000);
            let event = new_event(&note);
            let group =
                vec![Push { key: aggregate(1), place: PushPlace::End, events: vec![event] }];
            world.aggregates.push_event_group(group).await.expect("pushed");
            // Random, so that compression does not make it smaller.
            let mut random = Random::new(&[n]);
            let note: String = (0..12_000).map(|_| format!("{:016x}", random.next())).collect();
            append(&world.documents, 1, 1, &note).await;
        }
        world.index_all(INDEX).await;
        let entries = world.check(INDEX).await;
        assert_eq!(entries.len() as u64, 2 * LARGE);
        for page in world.items(INDEX).await {
            assert!(item_bytes(&page) < 400 * 1_024);
        }
    });
}

#[test]
fn a_missing_version_is_waited_for_and_then_refused() {
    run(4, async {
        let world = World::new();
        let partition = push(&world.aggregates, &[1], 3).await.remove(0);
        // The second event shows late.
        let wire = Wire::default();
        let hide = || {
            Fault::Reply(ringfence_aws::wire::Edit::new(|answer| {
                if let Some(items) = answer["Items"].as_array_mut() {
                    items.retain(|item| item["version"]["N"] != "2");
                }
            }))
        };
        (0..3).for_each(|pass| wire.inject("Query", pass, hide()));
        let indexer = world.indexer(world.wired(&wire), INDEX);
        let outcomes = indexer.index([partition.clone()], Retry::default()).await;
        assert_eq!(outcomes[&partition].as_ref().ok(), Some(&3));
        // Another writer has left out version 5.
        let key = aggregate(1);
        let forced =
            vec![Push { key, place: PushPlace::Forced(5), events: vec![new_event("five")] }];
        world.aggregates.push_event_group(forced).await.expect("pushed");
        let error = outcome(&world, &partition).await.expect_err("a gap");
        assert!(!error.is_transient());
        let IndexError::Stream(error) = error else { panic!("{error:?}") };
        assert!(matches!(*error, StreamError::Gap { wanted: 4, found: 5, .. }), "{error}");
        // The missing version is pushed, and the stream goes on.
        let key = aggregate(1);
        let missing =
            vec![Push { key, place: PushPlace::Forced(4), events: vec![new_event("four")] }];
        world.aggregates.push_event_group(missing).await.expect("pushed");
        assert_eq!(outcome(&world, &partition).await.ok(), Some(2));
        world.check(INDEX).await;
    });
}

#[test]
fn events_pruned_before_the_first_run_are_left_out_and_later_ones_are_missed() {
    run(5, async {
        let world = World::new();
        let partition = append(&world.documents, 1, 3, "x").await;
        for _ in 0..3 {
            append(&world.documents, 1, 3, "x").await;
        }
        let (name, envelope) = (stream(1), Envelope::default());
        world.documents.prune(&name, 4, &envelope).await.expect("pruned");
        assert_eq!(outcome(&world, &partition).await.ok(), Some(9), "the first calf is gone");
        let indexer = world.indexer(world.client.clone(), INDEX);
        let report = indexer.verify(&|_, _| ()).await.expect("compared");
        assert!(report.wrong.is_empty() && report.behind.is_empty(), "{report:?}");
        for _ in 0..3 {
            append(&world.documents, 1, 3, "x").await;
        }
        world.documents.prune(&name, 16, &envelope).await.expect("pruned");
        let error = outcome(&world, &partition).await.expect_err("events 12 to 14 are lost");
        assert!(!error.is_transient(), "{error:?}");
        let left =
            world.documents.read(&name, 15..21, Direction::Forward, Consistency::Strong, &envelope);
        assert_eq!(left.try_collect::<Vec<_>>().await.expect("read").len(), 6);
    });
}

#[test]
fn verify_compares_all_logs_and_repair_indexes_what_is_behind() {
    run(6, async {
        let world = World::new();
        push(&world.aggregates, &[1, 2], 2).await;
        append(&world.documents, 1, 5, "x").await;
        world.append(vec![changed(1, "x")]).await;
        let indexer = world.indexer(world.client.clone(), INDEX);
        let report = indexer.verify(&|_, _| ()).await.expect("compared");
        let behind: Vec<_> = report.behind.iter().map(|(p, n)| (p.to_string(), *n)).collect();
        let expected = [("thingId:t1", 1), ("things#t1", 2), ("things#t2", 2), ("things-s%3A1", 5)];
        assert_eq!(behind, expected.map(|(p, n)| (p.to_owned(), n)));
        let (_, outcomes) = indexer.repair(&|_, _| ()).await.expect("repaired");
        assert!(outcomes.values().all(Result::is_ok), "{outcomes:?}");
        world.check(INDEX).await;
        let report = indexer.verify(&|_, _| ()).await.expect("compared");
        assert!(report.wrong.is_empty() && report.behind.is_empty(), "{report:?}");
        assert_eq!((report.entries, report.events, report.skipped), (10, 10, 0));
        // An event that was deleted from the table is missed.
        let key = [("aggregateId", "things#t1")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        let mut delete = world.client.delete_item().table_name(AGGREGATES);
        for (name, value) in key {
            delete = delete.key(name, AttributeValue::S(value));
        }
        let version = AttributeValue::N("2".to_owned());
        delete.key("version", version).send().await.expect("deleted");
        let report = indexer.verify(&|_, _| ()).await.expect("compared");
        assert_eq!(report.wrong.len(), 1, "{report:?}");
        // A comparison of the DCB log alone reports the entries that it skipped.
        let alone = dcb_alone(&world);
        let report = alone.verify(&|_, _| ()).await.expect("compared");
        assert_eq!((report.entries, report.skipped, report.wrong.len()), (10, 9, 0));
    });
}

#[test]
fn a_stream_without_tip_is_an_error_and_a_systems_stream_is_ignored() {
    run(8, async {
        let world = World::new();
        let partition = append(&world.documents, 1, 4, "x").await;
        append(&world.documents, 1, 4, "x").await;
        let tip = AttributeValue::N(i32::MAX.to_string());
        let name = AttributeValue::S(stream(1).to_string());
        let delete = world.client.delete_item().table_name(DOCUMENTS).key("p", name).key("i", tip);
        delete.send().await.expect("deleted");
        let error = outcome(&world, &partition).await.expect_err("no Tip");
        assert!(!error.is_transient(), "{error:?}");
        let indexer = world.indexer(world.client.clone(), INDEX);
        let report = indexer.verify(&|_, _| ()).await.expect("compared");
        assert_eq!(report.behind.get(&partition), Some(&4), "{report:?}");

        let name = StreamName::new("$Checkpoints", "a").expect("a name");
        let envelope = Envelope::default();
        let events = vec![Payload::new("Moved", None)];
        let (known, by_etag, unfolds) = (None, false, Vec::new());
        let append =
            StreamAppend { stream: &name, known, by_etag, events, unfolds, envelope: &envelope };
        world.documents.append(append).await.expect("appended");
        let partition = Partition::from(name.partition());
        assert_eq!(outcome(&world, &partition).await.ok(), Some(0));
        assert!(world.feed(INDEX).await.is_empty());
    });
}

#[test]
fn a_tip_that_can_not_be_read_waits_for_a_person_and_a_refusal_does_not() {
    run(10, async {
        let world = World::new();
        let partition = append(&world.documents, 1, 1, "x").await;
        let refusing = Wire::default();
        refusing.inject("GetItem", 0, Fault::error("AccessDeniedException"));
        let indexer = world.indexer(world.wired(&refusing), INDEX);
        let outcomes = indexer.index([partition.clone()], Retry::default()).await;
        let error = outcomes[&partition].as_ref().expect_err("refused");
        assert!(error.is_transient(), "a role can be mended: {error:?}");

        let name = AttributeValue::S(stream(1).to_string());
        let put = world.client.put_item().table_name(DOCUMENTS).item("p", name);
        let put = put.item("i", AttributeValue::N(i32::MAX.to_string()));
        put.send().await.expect("put");
        let error = outcome(&world, &partition).await.expect_err("no Tip can be so");
        assert!(!error.is_transient(), "{error:?}");
    });
}

#[test]
fn an_item_that_is_not_an_event_does_not_stop_verify() {
    run(9, async {
        let world = World::new();
        push(&world.aggregates, &[1], 1).await;
        let put = world.client.put_item().table_name(AGGREGATES);
        let put = put.item("aggregateId", AttributeValue::S("things#odd".to_owned()));
        let put = put.item("version", AttributeValue::N("1".to_owned()));
        put.send().await.expect("put");
        let indexer = world.indexer(world.client.clone(), INDEX);
        let (report, outcomes) = indexer.repair(&|_, _| ()).await.expect("repaired");
        // It is an item of a stream, so it is tried, and says why it can't be indexed.
        assert_eq!(outcomes.values().filter(|outcome| outcome.is_err()).count(), 1, "{outcomes:?}");
        let wrong: Vec<_> = report.wrong.iter().map(ToString::to_string).collect();
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert!(wrong[0].starts_with("item things#odd 1 is not an event: "), "{wrong:?}");
        assert_eq!(world.feed(INDEX).await.len(), 1);
    });
}

#[test]
fn a_missing_log_is_named() {
    run(7, async {
        let world = World::new();
        let indexer = dcb_alone(&world);
        let partition = push(&world.aggregates, &[1], 1).await.remove(0);
        let outcomes = indexer.index([partition.clone()], Retry::default()).await;
        let error = outcomes[&partition].as_ref().expect_err("no such log");
        assert!(!error.is_transient());
        let long = Partition::from(BoundaryId::stored(format!("things#{}", "x".repeat(2_036))));
        let outcomes = indexer.index([long.clone()], Retry::default()).await;
        let error = outcomes[&long].as_ref().expect_err("too long");
        assert!(error.to_string().ends_with("has 2043 bytes, limit 2036"), "{error}");
    });
}
