//! Readers get the bodies of events from the logs, and notice a body that is missing or another one.

use aws_sdk_dynamodb::types::AttributeValue;
use futures::{StreamExt, TryStreamExt};
use ringfence_aws::wire::{Edit, Exchange, Fault, Wire};
use ringfence_aws::{Item, Retry};
use ringfence_feed::{Checkpoint, FeedError, FeedStep, IndexDefect, Partition, Until};
use serde_json::json;

use crate::streams::{AGGREGATES, append, push};
use crate::world::{EVENTS, INDEX, World, changed, event_key, linked, partition, run};

/// An index of events of all logs.
async fn indexed() -> World {
    let world = World::new();
    world.append(vec![changed(1, "x"), changed(1, "y"), linked(2, 1)]).await;
    push(&world.aggregates, &[1], 2).await;
    append(&world.documents, 1, 2, "x").await;
    world.index_all(INDEX).await;
    world
}

fn is_strong(read: &Exchange) -> bool {
    let tables = read.request["RequestItems"].as_object().into_iter().flatten();
    tables.into_iter().any(|(_, keys)| keys["ConsistentRead"] == true)
}

#[test]
fn a_body_that_a_replica_lacks_or_has_otherwise_is_read_again_strongly() {
    for seed in 0..20 {
        run(seed, async move {
            let (world, wire) = (indexed().await, Wire::default());
            let entries = world.check(INDEX).await;
            let older = Edit::new(|answer| {
                let Some(items) = answer["Responses"][EVENTS].as_array_mut() else { return };
                for item in items {
                    item["appendId"] = json!({ "S": "older" });
                    item["data"] = json!({ "M": {} });
                }
            });
            let fault = if seed % 2 == 0 { Fault::stale(seed) } else { Fault::Reply(older) };
            wire.inject("BatchGetItem", 0, fault);
            for n in 1..4 {
                wire.inject("Query", n, Fault::stale(seed + n as u64));
            }
            let index = world.index(world.wired(&wire));
            let read = index.read(Checkpoint::START, Until::Present).try_collect::<Vec<_>>().await;
            assert_eq!(read.expect("the feed"), entries);
            let mut reads = wire.take();
            reads.retain(|exchange| exchange.operation == "BatchGetItem");
            assert!(!is_strong(&reads[0]) && reads.iter().filter(|it| is_strong(it)).count() <= 1);
        });
    }
}

/// A half unit for each event that is wanted, and for several that follow one another. The index has those of
/// documents.
#[test]
fn only_the_bodies_that_a_reader_wants_are_read() {
    run(1, async {
        let world = indexed().await;
        let of = |partition: Partition| {
            let index = world.index(world.client.clone());
            let of_index = index.meter().clone();
            async move {
                let wants = move |it: &ringfence_feed::Reference| it.partition == partition;
                let steps = index.read_where(Checkpoint::START, Until::Present, wants);
                let steps: Vec<_> = steps.try_collect().await.expect("the feed");
                let wanted = steps.iter().filter(|step| matches!(step, FeedStep::Event(_))).count();
                let units = index.usage().total().read - of_index.snapshot().total().read;
                (steps.len(), wanted, units)
            }
        };
        assert_eq!(of(partition(&changed(1, "x")).into()).await, (7, 2, 0.5));
        assert_eq!(of(partition(&linked(2, 1)).into()).await, (7, 1, 0.5));
        let stored = |name: &str| Partition::from(ringfence_core::BoundaryId::stored(name));
        assert_eq!(of(stored("things#t1")).await, (7, 2, 0.5));
        assert_eq!(of(stored("things-s%3A1")).await, (7, 2, 0.0));
        assert_eq!(of(stored("nothing")).await, (7, 0, 0.0));
    });
}

/// Three requests for up to 4 MB, so for twelve of these events.
#[test]
fn a_reader_holds_few_large_events_ahead() {
    run(5, async {
        let (world, wire) = (World::new(), Wire::default());
        let note = "x".repeat(330_000);
        for n in 0..40 {
            world.append(vec![changed(n, &note)]).await;
        }
        world.index_all(INDEX).await;
        let index = world.index(world.wired(&wire));
        let mut entries = index.read(Checkpoint::START, Until::Present);
        entries.next().await.expect("an event").expect("it can be read");
        let asked = |exchange: Exchange| {
            exchange.request["RequestItems"][EVENTS]["Keys"].as_array().map(Vec::len)
        };
        assert!(wire.take().into_iter().filter_map(asked).sum::<usize>() <= 36);
        assert_eq!(entries.count().await, 39);
    });
}

/// Events that somebody deleted, put again after a restore, or overwrote.
#[test]
fn an_event_that_its_log_does_not_have_is_named_and_no_reader_passes_over_it() {
    run(2, async {
        let world = indexed().await;
        let entries = world.check(INDEX).await;
        let events = |partition: &str| {
            let of = entries.iter().filter(move |it| it.event.partition.as_str() == partition);
            of.map(|entry| entry.event.clone()).collect::<Vec<_>>()
        };
        let of_thing = events("thingId:t1");
        let delete = world.client.delete_item().table_name(EVENTS);
        delete.set_key(Some(event_key(&of_thing[1]))).send().await.expect("deleted");
        let update =
            world.client.update_item().table_name(EVENTS).set_key(Some(event_key(&of_thing[0])));
        let update = update.update_expression("SET appendId = :id");
        let id = AttributeValue::S("00000000-0000-4000-8000-000000000000".to_owned());
        update.expression_attribute_values(":id", id).send().await.expect("put again");
        let key = |version: &str| {
            Item::from([
                ("aggregateId".to_owned(), AttributeValue::S("things#t1".to_owned())),
                ("version".to_owned(), AttributeValue::N(version.to_owned())),
            ])
        };
        let update = world.client.update_item().table_name(AGGREGATES).set_key(Some(key("2")));
        let update = update.update_expression("SET payload.note = :note");
        let note = AttributeValue::S("another".to_owned());
        update.expression_attribute_values(":note", note).send().await.expect("overwritten");
        // What an index of the table needs is no part of the event.
        let update = world.client.update_item().table_name(AGGREGATES).set_key(Some(key("1")));
        update.update_expression("REMOVE eventStoreId").send().await.expect("updated");

        let index = world.index(world.client.clone());
        let end = index.end().await.expect("the end");
        let mut back: Vec<_> = index.read_back(end).collect().await;
        back.reverse();
        let mut before = index.before(end, 9).await.expect("entries");
        before.reverse();
        let forward: Vec<_> = index.read(Checkpoint::START, Until::Present).collect().await;
        for found in [forward, back, before] {
            assert_eq!(found.len(), 7);
            let mut unread = Vec::new();
            for (found, entry) in found.into_iter().zip(&entries) {
                match found {
                    Ok(found) => assert_eq!(found, *entry),
                    Err(FeedError::Undecodable { known, source, .. }) => {
                        assert_eq!(known.checkpoint, entry.checkpoint);
                        unread.push((known.event.id(), source.to_string()));
                    }
                    Err(error) => panic!("{error:?}"),
                }
            }
            unread.sort();
            let another = "its log has another event in the place of the event; `ringfence index verify` lists such events";
            let gone = "the event is gone from its log; `ringfence index verify` lists such events";
            let expected =
                [("thingId:t1/1", another), ("thingId:t1/2", gone), ("things#t1/2", another)];
            assert_eq!(unread, expected.map(|(id, why)| (id.to_owned(), why.to_owned())));
        }
        let indexer = world.indexer(world.client.clone(), INDEX);
        let report = indexer.verify(&|_, _| ()).await.expect("compared");
        let thing = Partition::of(&of_thing[0]);
        let aggregate = Partition::of(&events("things#t1")[0]);
        let expected = [
            IndexDefect::Replaced { partition: thing.clone(), slot: 1 },
            IndexDefect::Gone { partition: thing, slot: 2 },
            IndexDefect::Replaced { partition: aggregate, slot: 2 },
        ];
        assert_eq!(report.wrong, expected);
    });
}

#[test]
fn a_log_that_does_not_answer_ends_a_reading_and_passes_over_nothing() {
    run(3, async {
        let (world, wire) = (indexed().await, Wire::default());
        for n in 0..8 {
            wire.inject("BatchGetItem", n, Fault::error("ThrottlingException"));
        }
        let index = world.index(world.wired(&wire));
        let read: Vec<_> = index.read(Checkpoint::START, Until::Present).collect().await;
        let [Err(error @ FeedError::Body(_))] = &read[..] else { panic!("{read:?}") };
        assert!(error.is_transient(), "{error:?}");
    });
}

/// A page that holds the events themselves.
#[test]
fn an_index_of_the_older_form_is_refused_and_nothing_is_given_up() {
    run(4, async {
        let world = World::new();
        let event = world.append(vec![changed(1, "x")]).await.remove(0);
        let mut page = event_key(&event);
        page = Item::from([("e".to_owned(), AttributeValue::L(vec![AttributeValue::M(page)]))]);
        page.insert("p".to_owned(), AttributeValue::S("$AppendsEpoch-0_0".to_owned()));
        page.insert("i".to_owned(), AttributeValue::N("0".to_owned()));
        page.insert("n".to_owned(), AttributeValue::N("1".to_owned()));
        let put = world.client.put_item().table_name(INDEX).set_item(Some(page));
        put.send().await.expect("an older version writes a page");
        let indexer = world.indexer(world.client.clone(), INDEX);
        let outcomes = indexer.index([event.partition], Retry::default()).await;
        let error = outcomes.values().next().expect("an outcome").as_ref().expect_err("refused");
        assert!(error.is_transient(), "it is no dead letter: {error:?}");
        let said = "item $AppendsEpoch-0_0 0 of the index has the form of an older version: name another table for the \
                    index, and run `ringfence index repair`";
        assert_eq!(error.to_string(), said);
        let index = world.index(world.client.clone());
        let read: Vec<_> = index.read(Checkpoint::START, Until::Present).collect().await;
        let [Err(error)] = &read[..] else { panic!("{read:?}") };
        assert_eq!(error.to_string(), said);
    });
}
