//! An event that a view can't read stops neither the view nor its rows, and is folded in its place later.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use futures::future::join;
use ringfence_aws::wire::Fault;
use ringfence_views::{Definition, Retried};

use crate::notes::{Lenient, catalog, noted, poison, view, wiped};
use crate::parked::{mended, retry, shown, too_large};
use crate::world::{FIRST, World, generation};

/// The view by a build that can read the poison.
fn lenient() -> Definition {
    Definition::of::<Lenient>()
}

#[tokio::test(start_paused = true)]
async fn an_event_that_cannot_be_read_is_parked_and_a_retry_folds_it_in_its_place() {
    let world = World::new(11, catalog());
    let (later, both) = ([wiped("n1", &["a"]), noted("n1", &["a"])], noted("n1", &["a", "b"]));
    let first = [both.clone(), poison("n1")];
    let event = world.publish(first.into_iter().chain(later).chain([poison("n2"), both])).await;
    let ran = world.run(&view(), FIRST).await.unwrap();
    assert_eq!((ran.present, ran.parked, ran.unread.len(), ran.rows), (true, 0, 2, 5));
    let shows = |a, b| BTreeMap::from([("a".to_owned(), a), ("b".to_owned(), b)]);
    assert_eq!(world.counts(FIRST).await, shows(2, 2));
    let parked = world.projector().parked_events(&view()).await.unwrap();
    assert_eq!(parked, ran.unread);
    assert_eq!(parked[0].event, event[1].id());
    let cause = "the event can't be read: invalid type: string \"a\", expected a sequence";
    assert!(parked[0].cause.starts_with(cause), "{parked:?}");
    assert_eq!(world.projector().register(&view()).await.unwrap().parked_events, 2);

    // Another run goes on after them, and a retry by the same build leaves them.
    assert_eq!(world.run(&view(), FIRST).await.unwrap().events, 0);
    let left = retry(&world, &view()).await;
    assert_eq!(left, Retried { events_left: parked, ..shown(0) });

    // The first one comes before the wipe, so it makes no difference. The second one counts.
    assert_eq!(retry(&world, &lenient()).await, Retried { events: 2, ..shown(0) });
    assert_eq!(world.counts(FIRST).await, shows(3, 2));
    assert!(world.projector().parked_events(&view()).await.unwrap().is_empty());
    assert_eq!(world.projector().register(&view()).await.unwrap().parked_events, 0);
    assert_eq!(retry(&world, &lenient()).await, shown(0));
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_broken_in_its_log_is_parked_by_the_views_that_read_its_type() {
    let world = World::new(14, catalog());
    let event = world.publish(["a", "b", "a"].map(|row| noted("n1", &[row]))).await.remove(1);
    let broken = world.client.update_item().table_name("events").update_expression("REMOVE tags");
    let broken = broken.key("id", AttributeValue::S(event.partition.to_string()));
    let broken = broken.key("position", AttributeValue::N(event.slot.to_string()));
    broken.send().await.unwrap();
    let ran = world.run(&view(), FIRST).await.unwrap();
    assert_eq!((ran.present, ran.unread.len(), world.counts(FIRST).await["a"]), (true, 1, 2));
    let cause =
        "the event can't be read: the event can't be decoded: the item is not a complete event: ";
    assert!(ran.unread[0].cause.starts_with(cause), "{:?}", ran.unread);
    assert_eq!(retry(&world, &lenient()).await.events_left, ran.unread);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_folded_in_its_place_is_not_lost_to_a_projector_that_read_the_row_before()
{
    let world = World::new(12, catalog());
    // The row is as of the view's checkpoint, before and after the retry.
    world.publish([poison("n1"), noted("n1", &["a"])]).await;
    world.run(&view(), FIRST).await.unwrap();
    world.publish([noted("n1", &["a"])]).await;
    world.wire.inject("PutItem", 0, Fault::Delay(Duration::from_secs(10)));
    let retried = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        retry(&world, &lenient()).await
    };
    let (ran, retried) = join(world.run(&view(), FIRST), retried).await;
    assert_eq!((retried.events, ran.unwrap().rows), (1, 1));
    assert_eq!(world.counts(FIRST).await["a"], 3);

    // The projector comes between the retry's reads and its transaction.
    world.publish([poison("n1"), noted("n1", &["a"])]).await;
    world.run(&view(), FIRST).await.unwrap();
    world.wire.inject("TransactWriteItems", 0, Fault::Delay(Duration::from_secs(10)));
    let go_on = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.publish([noted("n1", &["a"])]).await;
        world.run(&view(), FIRST).await.unwrap();
    };
    let (retried, ()) = join(retry(&world, &lenient()), go_on).await;
    assert_eq!((retried.events, world.counts(FIRST).await["a"]), (1, 6));

    // A row that can't be written with the event is parked, as any other.
    world.publish([poison("n1"), too_large()]).await;
    world.run(&mended(), FIRST).await.unwrap();
    let Retried { shown, left, events, .. } = retry(&world, &lenient()).await;
    assert_eq!((shown, left.len(), events), (0, 1, 1));
    let registered = world.projector().register(&view()).await.unwrap();
    assert_eq!((registered.parked, registered.parked_events), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_rebuild_parks_an_event_again_unless_an_operator_has_skipped_it() {
    let world = World::new(13, catalog());
    world.publish([noted("n1", &["a"]), poison("n1"), noted("n1", &["a"])]).await;
    world.run(&view(), FIRST).await.unwrap();
    let (projector, view) = (world.projector(), view());
    projector.rebuild(&view, &|_| {}).await.unwrap();
    assert!(world.rows("$Parked-notes", FIRST).await.is_empty());
    let [parked] = &projector.parked_events(&view).await.unwrap()[..] else { panic!("one") };
    assert!(projector.skip(&view, &parked.event, "it is of a test").await.unwrap());
    assert!(!projector.skip(&view, &parked.event, "again").await.unwrap());
    assert_eq!(projector.register(&view).await.unwrap().parked_events, 0);
    assert_eq!(retry(&world, &lenient()).await, shown(0));
    projector.rebuild(&view, &|_| {}).await.unwrap();
    assert!(projector.parked_events(&view).await.unwrap().is_empty());
    assert_eq!(world.counts(generation(3)).await["a"], 2);
}
