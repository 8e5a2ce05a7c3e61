//! The new events of a partition, as records show them or as they are read.

use std::time::Duration;

use ringfence_aws::Retry;
use ringfence_aws::wire::{Edit, Fault, Wire};
use ringfence_core::SequencedEvent;
use ringfence_feed::{IndexError, Indexer, Notification, Partition, StreamError};

use crate::world::{
    EVENTS, INDEX, World, by_partition, changed, event_key, linked, partition, record, run,
};

/// A page of the event table that lacks the events at `hidden`.
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

fn of(n: u64) -> Partition {
    partition(&changed(n, "x")).into()
}

/// What records show of some events of a partition.
async fn records(world: &World, events: &[&SequencedEvent]) -> Vec<Notification> {
    let mut records = Vec::new();
    for event in events {
        records.push(record(world, event).await);
    }
    records
}

/// An indexer that knows the end of the index, and its requests from now on.
async fn warm(world: &World) -> (Indexer, Wire) {
    let wire = Wire::default();
    let indexer = world.indexer(world.wired(&wire), INDEX);
    let event = world.append(vec![changed(99, "x")]).await.remove(0);
    indexer.index([event.partition], Retry::default()).await;
    wire.forget();
    (indexer, wire)
}

fn asked(wire: &Wire) -> Vec<String> {
    wire.take().into_iter().map(|exchange| exchange.operation).collect()
}

const TAKEN: [&str; 3] = ["BatchGetItem", "PutItem", "UpdateItem"];
const READ: [&str; 4] = ["BatchGetItem", "Query", "PutItem", "UpdateItem"];

#[test]
fn an_image_that_continues_what_is_indexed_is_taken_without_a_read() {
    run(0, async {
        let world = World::new();
        let (indexer, wire) = warm(&world).await;
        for note in ["x", "y"] {
            let event = world.append(vec![changed(1, note), changed(1, note)]).await;
            let notifications = records(&world, &[&event[0], &event[1]]).await;
            let outcomes = indexer.index(notifications, Retry::default()).await;
            assert_eq!(outcomes[&of(1)].as_ref().ok(), Some(&2), "{outcomes:?}");
            assert_eq!(asked(&wire), TAKEN);
        }
        assert_eq!(world.check(INDEX).await.len(), 5);
    });
}

#[test]
fn images_may_come_in_any_order() {
    run(1, async {
        let world = World::new();
        let (indexer, wire) = warm(&world).await;
        let events = world.append((0..3).map(|_| changed(1, "x")).collect()).await;
        let notifications =
            records(&world, &[&events[2], &events[0], &events[1], &events[0]]).await;
        let outcomes = indexer.index(notifications, Retry::default()).await;
        assert_eq!(outcomes[&of(1)].as_ref().ok(), Some(&3), "{outcomes:?}");
        assert_eq!(asked(&wire), TAKEN);
        world.check(INDEX).await;
    });
}

#[test]
fn an_image_over_a_gap_is_not_taken_but_the_partition_read() {
    run(2, async {
        let world = World::new();
        let (indexer, wire) = warm(&world).await;
        let events = world.append((0..4).map(|_| changed(1, "x")).collect()).await;
        // Slot 2 at the beginning, then slots 3 and 4 after 2.
        for (shown, indexed) in [(vec![1], 4), (vec![2, 3], 0)] {
            let shown: Vec<_> = shown.iter().map(|n: &usize| &events[*n]).collect();
            let notifications = records(&world, &shown).await;
            let outcomes = indexer.index(notifications, Retry::default()).await;
            assert_eq!(outcomes[&of(1)].as_ref().ok(), Some(&indexed), "{outcomes:?}");
            let expected = if indexed > 0 { READ.to_vec() } else { vec!["BatchGetItem"] };
            assert_eq!(asked(&wire), expected);
        }
        // Events that continue the progress are taken; after a gap the partition is read.
        let more = world.append((0..3).map(|_| changed(1, "y")).collect()).await;
        let notifications = records(&world, &[&more[0], &more[2]]).await;
        let outcomes = indexer.index(notifications, Retry::default()).await;
        assert_eq!(outcomes[&of(1)].as_ref().ok(), Some(&3), "{outcomes:?}");
        assert_eq!(asked(&wire), READ);
        assert_eq!(world.check(INDEX).await.len(), 8);
    });
}

#[test]
fn an_image_of_an_indexed_event_is_neither_read_nor_written() {
    run(3, async {
        let world = World::new();
        let (indexer, wire) = warm(&world).await;
        let events = world.append(vec![changed(1, "x"), changed(1, "y")]).await;
        indexer.index([of(1)], Retry::default()).await;
        wire.forget();
        for event in &events {
            let outcomes = indexer.index(records(&world, &[event]).await, Retry::default()).await;
            assert_eq!(outcomes[&of(1)].as_ref().ok(), Some(&0), "{outcomes:?}");
            assert_eq!(asked(&wire), ["BatchGetItem"]);
        }
        assert_eq!(world.check(INDEX).await.len(), 3);
    });
}

/// A record shows the last of three events; the reads show some of the others late.
#[test]
fn a_torn_page_is_read_again() {
    run(4, async {
        let cases = [(&[0][..], 2), (&[1], 2), (&[2], 1), (&[0, 2], 2), (&[0, 1, 2], 2)];
        for (hidden, queries) in cases {
            let world = World::new();
            let (indexer, wire) = warm(&world).await;
            let events = world.append((0..3).map(|_| changed(1, "x")).collect()).await;
            wire.inject("Query", 0, without(hidden));
            let notifications = records(&world, &[&events[2]]).await;
            let outcomes = indexer.index(notifications, Retry::default()).await;
            assert!(wire.is_spent());
            assert_eq!(outcomes[&of(1)].as_ref().ok(), Some(&3), "{hidden:?}: {outcomes:?}");
            let reads = asked(&wire).iter().filter(|operation| *operation == "Query").count();
            assert_eq!(reads, queries, "{hidden:?}");
            world.check(INDEX).await;
        }
    });
}

/// The events are there. Giving up on the partition would leave it to a person.
#[test]
fn a_torn_page_at_the_deadline_is_for_the_next_delivery() {
    run(5, async {
        let world = World::new();
        let (indexer, wire) = warm(&world).await;
        let of = world.append(vec![changed(1, "x"), changed(1, "y")]).await.remove(0).partition;
        wire.inject("Query", 0, without(&[0]));
        let retry = Retry::default().within(Duration::ZERO);
        let outcomes = indexer.index([of.clone()], retry).await;
        assert!(wire.is_spent());
        let error = outcomes[&Partition::from(of)].as_ref().expect_err("no time to look again");
        assert!(error.is_transient(), "{error:?}");
        world.index_all(INDEX).await;
        assert_eq!(world.check(INDEX).await.len(), 3);
    });
}

#[test]
fn an_event_that_stays_missing_is_named_and_nothing_after_it_is_indexed() {
    run(6, async {
        let world = World::new();
        let events = world.append((0..3).map(|_| changed(1, "x")).collect()).await;
        let item = world.client.delete_item().table_name(EVENTS);
        let item = item.set_key(Some(event_key(&events[1])));
        item.send().await.expect("someone deletes an event");
        for notifications in [vec![Notification::from(of(1))], records(&world, &[&events[2]]).await]
        {
            let indexer = world.indexer(world.client.clone(), INDEX);
            let outcomes = indexer.index(notifications, Retry::default()).await;
            let error = outcomes[&of(1)].as_ref().expect_err("slot 2 is missing");
            let IndexError::Stream(cause) = error else { panic!("{error:?}") };
            assert!(matches!(**cause, StreamError::Gap { wanted: 2, found: 3, .. }), "{cause:?}");
            let said = "thingId:t1 has event 3 but not event 2; put back what is missing";
            assert_eq!(cause.to_string(), said);
            assert!(!error.is_transient());
            assert_eq!(world.feed(INDEX).await.len(), 1);
        }
    });
}

#[test]
fn an_event_that_names_no_context_is_indexed_without_one() {
    run(7, async {
        let world = World::new();
        let event = world.append(vec![changed(1, "x")]).await.remove(0);
        let update = world.client.update_item().table_name(EVENTS);
        let update = update.set_key(Some(event_key(&event)));
        let update = update.update_expression("REMOVE #context");
        update.expression_attribute_names("#context", "context").send().await.expect("an update");
        world.index_all(INDEX).await;
        let entry = world.feed(INDEX).await.remove(0);
        assert_eq!(entry.event, SequencedEvent { context: String::new(), ..event });
    });
}

#[test]
fn an_event_that_can_not_be_decoded_holds_up_only_its_partition() {
    run(8, async {
        let world = World::new();
        let events = world.append(vec![changed(1, "x"), changed(1, "y"), changed(1, "z")]).await;
        world.append(vec![changed(2, "x")]).await;
        let update = world.client.update_item().table_name(EVENTS);
        let update = update.set_key(Some(event_key(&events[1])));
        let update = update.update_expression("REMOVE tags");
        update.send().await.expect("someone breaks an event");
        let shown = records(&world, &[&events[0], &events[1]]).await;
        for notifications in [shown, vec![of(1).into()]] {
            let indexer = world.indexer(world.client.clone(), INDEX);
            let notifications = notifications.into_iter().chain([of(2).into()]);
            let outcomes = indexer.index(notifications, Retry::default()).await;
            let error = outcomes[&of(1)].as_ref().expect_err("it can't be decoded");
            assert_eq!(error.to_string(), "event 2 of thingId:t1 can't be decoded");
            assert!(outcomes[&of(2)].is_ok(), "{outcomes:?}");
        }
        let indexed = by_partition(world.feed(INDEX).await.into_iter().map(|entry| entry.event));
        assert_eq!(indexed[&of(1)], events[..1]);
        assert_eq!(indexed[&of(2)].len(), 1);
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

        let item = world.client.delete_item().table_name(EVENTS);
        item.set_key(Some(event_key(&last))).send().await.expect("someone deletes an event");
        let report = indexer.verify(&nothing).await.expect("both can be read");
        let wrong: Vec<_> = report.wrong.iter().map(ToString::to_string).collect();
        assert_eq!(wrong, ["thingId:t1: event 3 is gone"]);
    });
}
