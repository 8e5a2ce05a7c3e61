//! The new events of a partition are taken when its fence agrees, and not before.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence::{BoundaryId, Catalog, Event};
use ringfence_dcb_log::{DcbLog, Mark, NewsError, Progress};
use ringfence_dynamo::Retry;
use ringfence_dynamo::wire::{Edit, Fault, Wire};
use ringfence_feed::{IndexError, Partition};

use crate::world::{
    Changed, EVENTS, INDEX, World, by_partition, changed, link_made, linked, partition, run,
};

/// A page that lacks the events at `hidden`.
fn without(hidden: &[usize]) -> Fault {
    let hidden = hidden.to_vec();
    Fault::Reply(Edit::new(move |answer| {
        let mut n = 0;
        let items = answer["Items"].as_array_mut().expect("items");
        items.retain(|_| {
            n += 1;
            !hidden.contains(&(n - 1))
        });
    }))
}

/// What the fence of a partition says.
async fn mark(log: &DcbLog, of: &BoundaryId) -> Mark {
    let marks = log.marks(&[(of.clone(), None)], Retry::default()).await;
    marks.expect("an answer").remove(0).expect("a fence that counts")
}

/// How many events are new, and how many queries the read took.
async fn news(world: &World, wire: &Wire, of: &BoundaryId) -> (Result<usize, NewsError>, usize) {
    let log = DcbLog::new(world.wired(wire), EVENTS, crate::world::catalog(), world.clock.clone());
    let retry = Retry::default();
    let mark = mark(&log, of).await;
    let news = log.news(of, &Progress::default(), &mark, retry).await;
    let queries = wire.take().iter().filter(|exchange| exchange.operation == "Query").count();
    (news.map(|news| news.events.len()), queries)
}

#[test]
fn a_torn_page_is_read_again() {
    run(0, async {
        let world = World::new();
        let of = partition(&changed(1, "x"));
        world.append(vec![changed(1, "x"), changed(1, "y"), changed(1, "z")]).await;
        for hidden in [[0].as_slice(), &[1], &[2], &[0, 2], &[0, 1, 2]] {
            let wire = Wire::default();
            wire.inject("Query", 0, without(hidden));
            let (news, queries) = news(&world, &wire, &of).await;
            assert_eq!((news.expect("all of it"), queries), (3, 2), "{hidden:?}");
        }
    });
}

/// The events are there. Giving up on the partition would leave it to a person.
#[test]
fn a_torn_page_at_the_deadline_is_for_the_next_delivery() {
    run(7, async {
        let world = World::new();
        let of = world.append(vec![changed(1, "x"), changed(1, "y")]).await.remove(0).partition;
        let wire = Wire::default();
        wire.inject("Query", 0, without(&[0]));
        let indexer = world.indexer(world.wired(&wire), INDEX);
        let retry = Retry::default().within(Duration::ZERO);
        let outcomes = indexer.index([of.clone()], retry).await;
        assert!(wire.is_spent());
        let error =
            outcomes[&Partition::from(of.clone())].as_ref().expect_err("no time to look again");
        assert!(error.is_transient(), "{error:?}");
        world.index_all(INDEX).await;
        assert_eq!(world.check(INDEX).await.len(), 2);
    });
}

/// An older event is not visible yet, and a newer one takes its place in the count.
#[test]
fn an_event_after_the_fences_head_does_not_count_for_a_missing_one() {
    run(1, async {
        let world = World::new();
        let of = partition(&changed(1, "x"));
        world.append(vec![changed(1, "x")]).await;
        let wire = Wire::default();
        let log =
            DcbLog::new(world.wired(&wire), EVENTS, crate::world::catalog(), world.clock.clone());
        let mark = mark(&log, &of).await;
        let second = world.append(vec![changed(1, "y")]).await.remove(0);
        wire.inject("Query", 0, without(&[0]));
        let news = log.news(&of, &Progress::default(), &mark, Retry::default()).await;
        let news = news.expect("the first event").events;
        assert_eq!(news.len(), 1);
        assert_ne!(news[0]["position"], AttributeValue::S(second.position.to_string()));
    });
}

#[test]
fn an_event_that_names_no_context_is_indexed_with_that_of_its_type() {
    run(8, async {
        let world = World::new();
        let event = world.append(vec![changed(1, "x")]).await.remove(0);
        let text = |text: String| AttributeValue::S(text);
        let update = world.client.update_item().table_name(EVENTS);
        let update = update.key("id", text(event.partition.to_string()));
        let update = update.key("position", text(event.position.to_string()));
        let update = update.update_expression("REMOVE #context");
        update.expression_attribute_names("#context", "context").send().await.expect("an update");
        world.index_all(INDEX).await;
        assert_eq!(world.check(INDEX).await.remove(0).event, event);
    });
}

#[test]
fn events_stored_elsewhere_are_not_waited_for() {
    run(2, async {
        let world = World::new();
        world.append(vec![link_made(1), linked(1, 1), linked(2, 1)]).await;
        world.append(vec![linked(2, 1)]).await;
        let of = partition(&link_made(1));
        let (news, queries) = news(&world, &Wire::default(), &of).await;
        assert_eq!((news.expect("the event of the link"), queries), (1, 1));
        world.index_all(INDEX).await;
        world.check(INDEX).await;
    });
}

#[test]
fn counts_that_never_agree_name_fence_type_and_way_out() {
    run(3, async {
        let world = World::new();
        let event = world.append(vec![changed(1, "x"), changed(1, "y")]).await.remove(1);
        let text = |value: &str| AttributeValue::S(value.to_owned());
        let key = [("id", event.partition.as_str()), ("position", &*event.position.to_string())];
        let key = key.map(|(name, value)| (name.to_owned(), text(value))).into();
        let item = world.client.delete_item().table_name(EVENTS).set_key(Some(key));
        item.send().await.expect("someone deletes an event");
        let wire = Wire::default();
        let (few, queries) = news(&world, &wire, &event.partition).await;
        assert_eq!(
            (few.expect_err("one is missing").to_string().as_str(), queries),
            ("fence#thingId:t1 counts 2 Changed, the partition has 1; run `ringfence verify`", 8)
        );
        let indexer = world.indexer(world.client.clone(), INDEX);
        let outcomes = indexer.index([event.partition.clone()], Retry::default()).await;
        let error = outcomes[&Partition::from(event.partition.clone())]
            .as_ref()
            .expect_err("it can't be told");
        assert!(matches!(error, IndexError::News(_)) && !error.is_transient());

        for n in ["0000000000001-x", "0000000000002-x"] {
            let put = world.client.put_item().table_name(EVENTS);
            let put = put.item("id", text("thingId:t1")).item("position", text(n));
            put.item("event", text("Changed")).send().await.expect("someone writes events");
        }
        let (many, queries) = news(&world, &wire, &event.partition).await;
        assert_eq!(queries, 1, "too many stay too many");
        assert!(many.expect_err("one too many").to_string().contains("counts 2 Changed"));
    });
}

#[test]
fn a_type_that_the_catalog_does_not_know_is_named() {
    run(4, async {
        let world = World::new();
        world.append(vec![link_made(1), linked(1, 1)]).await;
        let catalog = Catalog::new("things", [Changed::SCHEMA]).expect("one type");
        let log = DcbLog::new(world.client.clone(), EVENTS, catalog, world.clock.clone());
        let of = partition(&link_made(1));
        let retry = Retry::default();
        let mark = mark(&log, &of).await;
        let news = log.news(&of, &Progress::default(), &mark, retry).await;
        let error = news.expect_err("one is stored elsewhere").to_string();
        assert_eq!(
            error,
            "fence#linkId:l1 counts 1 Linked, the partition has 0; \
             add the type to the catalog if it is stored elsewhere"
        );
    });
}

#[test]
fn an_event_that_can_not_be_decoded_holds_up_only_its_partition() {
    run(5, async {
        let world = World::new();
        let events = world.append(vec![changed(1, "x"), changed(1, "y"), changed(1, "z")]).await;
        world.append(vec![changed(2, "x")]).await;
        let text = |value: &str| AttributeValue::S(value.to_owned());
        let key = [("id", "thingId:t1"), ("position", &*events[1].position.to_string())];
        let key = key.map(|(name, value)| (name.to_owned(), text(value))).into();
        let update = world.client.update_item().table_name(EVENTS).set_key(Some(key));
        let update = update.update_expression("REMOVE tags");
        update.send().await.expect("someone breaks an event");
        let indexer = world.indexer(world.client.clone(), INDEX);
        let of = |n| partition(&changed(n, "x"));
        let outcomes = indexer.index([of(1), of(2)], Retry::default()).await;
        let error = outcomes[&Partition::from(of(1))].as_ref().expect_err("it can't be decoded");
        assert!(error.to_string().contains(&events[1].position.to_string()), "{error}");
        assert_eq!(outcomes[&Partition::from(of(2))].as_ref().ok(), Some(&1));
        let indexed = by_partition(world.feed(INDEX).await.into_iter().map(|entry| entry.event));
        assert_eq!(indexed[&Partition::from(of(1))], events[..1]);
    });
}

#[test]
fn verify_tells_what_is_behind_and_what_is_wrong_and_repair_indexes_the_rest() {
    run(6, async {
        let world = World::new();
        let nothing = |_, _| {};
        for n in 0..5 {
            world.append(vec![changed(n, "x"), linked(n, 1)]).await;
        }
        world.index_all(INDEX).await;
        let last = world.append(vec![changed(1, "y"), changed(7, "y")]).await.remove(0);
        let indexer = world.indexer(world.client.clone(), INDEX);
        let report = indexer.verify(&nothing).await.expect("both can be read");
        assert_eq!((report.entries, report.events), (10, 12));
        let behind: Vec<_> = report.behind.iter().map(|(p, n)| (p.id.as_str(), *n)).collect();
        assert_eq!(behind, [("thingId:t1", 1), ("thingId:t7", 1)]);
        assert_eq!(report.wrong, []);

        let (_, outcomes) = indexer.repair(&nothing).await.expect("both can be read");
        assert_eq!(outcomes.values().flatten().sum::<u64>(), 2);
        let report = indexer.verify(&nothing).await.expect("both can be read");
        assert!(report.behind.is_empty() && report.wrong.is_empty(), "{report:?}");
        world.check(INDEX).await;

        let key = [("id", last.partition.as_str()), ("position", &*last.position.to_string())];
        let key = key.map(|(n, v)| (n.to_owned(), AttributeValue::S(v.to_owned()))).into();
        let item = world.client.delete_item().table_name(EVENTS).set_key(Some(key));
        item.send().await.expect("someone deletes an event");
        let report = indexer.verify(&nothing).await.expect("both can be read");
        let wrong: Vec<_> = report.wrong.iter().map(ToString::to_string).collect();
        assert_eq!(wrong, ["thingId:t1: the index has 3 events, the table 2 up to the same event"]);
    });
}
