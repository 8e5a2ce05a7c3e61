//! A lane whose event fails waits, and the others go on.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use futures::{TryStreamExt, future::join};
use ringfence_aws::wire::Fault;
use ringfence_core::BoundaryId;
use ringfence_feed::{Checkpoint, Until};
use ringfence_reactors::{Ended, Failed, PAUSES, ReactorError, Unpark};

use tokio::time::sleep;

use crate::world::{LONG, NAME, World, asked};

fn lane() -> BoundaryId {
    BoundaryId::stored("orderId:a")
}

/// Asks for the event for which the one lane waits.
async fn ask(world: &World, ask: &Unpark) {
    let [waits] = &world.parked().await[..] else { panic!("one lane waits") };
    world.table().ask(NAME, &waits.lane, &waits.event, ask).await.unwrap();
}

fn slots(world: &World, lane: &str) -> Vec<String> {
    let slot = |letter: String| letter.split('/').nth(1).unwrap().to_owned();
    world.receiver.letters(lane).into_iter().map(slot).collect()
}

#[tokio::test(start_paused = true)]
async fn a_lane_is_tried_again_after_growing_pauses_and_then_waits_for_a_person() {
    let world = World::new(1);
    world.receiver.fail("orderId:a/2", (0..5).map(|n| Failed::ForNow(format!("try {n}"))));
    world.publish([asked("a", 1), asked("a", 1), asked("b", 1), asked("a", 1)]).await;
    for (tries, pause) in (1..).zip(PAUSES) {
        let ran = world.run().await.unwrap();
        assert_eq!((ran.waiting, ran.parked), (1, 0), "after {tries}");
        assert_eq!(world.run().await.unwrap().ended, Ended::Idle, "its time has not come");
        let parked = world.parked().await;
        assert_eq!((&parked[0].lane, parked[0].tries), (&lane(), tries));
        assert_eq!(
            (&*parked[0].event, &*parked[0].cause),
            ("orderId:a/2", &*format!("try {}", tries - 1))
        );
        world.wait(pause);
    }
    let ran = world.run().await.unwrap();
    assert_eq!((ran.waiting, ran.parked), (0, 1));
    assert_eq!(
        (slots(&world, "orderId:a"), slots(&world, "orderId:b")),
        (vec!["1".into()], vec!["1".into()])
    );
    // Nobody asks, so it stays, whatever comes.
    world.wait(PAUSES[3]);
    world.publish([asked("a", 1), asked("b", 1)]).await;
    assert_eq!(world.run().await.unwrap().effects, 1);
    // Later events follow when it is retried.
    ask(&world, &Unpark::Retry).await;
    let ran = world.run().await.unwrap();
    assert_eq!((ran.effects, ran.waiting, ran.parked), (3, 0, 0));
    assert_eq!(slots(&world, "orderId:a"), ["1", "2", "3", "4"]);
    world.publish([asked("a", 1)]).await;
    assert_eq!(world.run().await.unwrap().effects, 1, "it goes with the others again");
}

/// Only the event's place and type are known.
#[tokio::test(start_paused = true)]
async fn an_event_that_cannot_be_decoded_parks_its_lane_and_the_others_go_on() {
    let world = World::new(9);
    world.publish([asked("a", 1), asked("a", 1), asked("b", 1), asked("a", 1)]).await;
    let broken = world.client.update_item().table_name("events").update_expression("REMOVE tags");
    let broken = broken.key("id", AttributeValue::S("orderId:a".to_owned()));
    broken.key("position", AttributeValue::N("2".to_owned())).send().await.unwrap();
    let ran = world.run().await.unwrap();
    assert_eq!((ran.ended, ran.effects, ran.waiting, ran.parked), (Ended::Present, 2, 0, 1));
    let [parked] = &world.parked().await[..] else { panic!("one lane is parked") };
    assert_eq!((&parked.lane, &*parked.event), (&lane(), "orderId:a/2"));
    assert!(parked.cause.starts_with("the event can't be decoded: "), "{}", parked.cause);
    ask(&world, &Unpark::Retry).await;
    assert_eq!(world.run().await.unwrap().parked, 1);
    ask(&world, &Unpark::Skip("it is lost".to_owned())).await;
    assert_eq!(world.run().await.unwrap().parked, 0);
    assert_eq!(slots(&world, "orderId:a"), ["1", "3"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_skipped_is_noted_and_a_later_one_can_fail_as_well() {
    let world = World::new(2);
    world.receiver.fail("orderId:a/1", [Failed::ForGood("no such address".to_owned())]);
    world.receiver.fail("orderId:a/3", [Failed::ForGood("refused".to_owned())]);
    world.publish((0..4).map(|_| asked("a", 2))).await;
    assert_eq!(world.run().await.unwrap().parked, 1);
    ask(&world, &Unpark::Skip("the customer has moved".to_owned())).await;
    assert_eq!(world.run().await.unwrap().parked, 1);
    let parked = world.parked().await;
    assert_eq!((&*parked[0].event, parked[0].tries, parked[0].next_ms), ("orderId:a/3", 1, None));
    ask(&world, &Unpark::Retry).await;
    assert_eq!(world.run().await.unwrap().parked, 0);
    assert_eq!(slots(&world, "orderId:a"), ["2", "2", "3", "3", "4", "4"]);
    // It is done, as the receipt says.
    world.table().send_back(NAME, Checkpoint::START, false).await.unwrap();
    assert_eq!(world.run().await.unwrap().effects, 0);
}

#[tokio::test(start_paused = true)]
async fn a_lane_goes_on_after_an_effect_that_nobody_can_help() {
    let world = World::new(8);
    world.receiver.fail("orderId:a/1", [Failed::Undeliverable("no such address".to_owned())]);
    world.publish([asked("a", 2), asked("a", 1)]).await;
    let ran = world.run().await.unwrap();
    assert_eq!((ran.effects, ran.waiting, ran.parked), (2, 0, 0));
    assert_eq!(slots(&world, "orderId:a"), ["1", "2"]);
    world.table().send_back(NAME, Checkpoint::START, false).await.unwrap();
    assert_eq!(world.run().await.unwrap().effects, 0);
}

#[tokio::test(start_paused = true)]
async fn what_may_have_happened_is_repeated_or_parked_as_the_reactor_says() {
    let world = World::new(3);
    let unknown = || [Failed::Unknown("no answer".to_owned())];
    world.receiver.fail("orderId:a/1", unknown());
    world.publish([asked("a", 1), asked("a", 1)]).await;
    assert_eq!(world.run().await.unwrap().waiting, 1);
    world.wait(PAUSES[0]);
    assert_eq!(world.run().await.unwrap().effects, 2);
    let world = World::new(3);
    world.receiver.fail("orderId:a/1", unknown());
    world.publish([asked("a", 1), asked("a", 1)]).await;
    assert_eq!(world.run_parking().await.unwrap().parked, 1);
    world.wait(PAUSES[3]);
    assert_eq!(world.run_parking().await.unwrap().effects, 0);
    ask(&world, &Unpark::Retry).await;
    assert_eq!(world.run_parking().await.unwrap().effects, 2);
    // An effect that did not happen is not in doubt.
    world.receiver.fail("orderId:a/3", [Failed::ForNow("busy".to_owned())]);
    world.publish([asked("a", 1)]).await;
    assert_eq!(world.run_parking().await.unwrap().waiting, 1);
    world.wait(PAUSES[0]);
    assert_eq!(world.run_parking().await.unwrap().effects, 1);
}

/// A run that breaks off once it has sent a letter: it can't write the receipt that says so.
async fn break_off_in_doubt(world: &World) {
    world.wire.inject("PutItem", 1, Fault::error("AccessDeniedException"));
    world.run_parking().await.unwrap_err();
    // Its lease ends.
    world.wait(PAUSES[2]);
}

#[tokio::test(start_paused = true)]
async fn an_effect_in_doubt_happens_again_once_for_each_time_that_a_person_asks() {
    let world = World::new(11);
    world.publish([asked("a", 1), asked("a", 1)]).await;
    for sent in 1..=2 {
        break_off_in_doubt(&world).await;
        let ran = world.run_parking().await.unwrap();
        assert_eq!((ran.effects, ran.parked, world.receiver.count()), (0, 1, sent));
        let parked = world.parked().await;
        assert!(parked[0].cause.starts_with("effect 0 may have happened"), "{parked:?}");
        ask(&world, &Unpark::Retry).await;
    }
    let ran = world.run_parking().await.unwrap();
    assert_eq!((ran.effects, ran.parked, world.receiver.count()), (2, 0, 4));
    assert_eq!(slots(&world, "orderId:a"), ["1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn what_was_done_of_an_event_that_is_passed_over_counts_for_no_other_one() {
    for parks in [false, true] {
        let world = World::new(12);
        world.publish([asked("a", 2), asked("a", 2)]).await;
        let run = async || if parks { world.run_parking().await } else { world.run().await };
        // The first letter is sent; of the second one, no receipt can be written.
        world.wire.inject("PutItem", 1, Fault::error("AccessDeniedException"));
        run().await.unwrap_err();
        world.wait(PAUSES[2]);
        let entries = world.index.read(Checkpoint::START, Until::Present);
        let first = pin!(entries).try_next().await.unwrap().unwrap();
        world.table().send_back(NAME, first.checkpoint, false).await.unwrap();
        let ran = run().await.unwrap();
        assert_eq!((ran.effects, ran.parked), (2, 0), "parks: {parks}");
        assert_eq!(slots(&world, "orderId:a").iter().filter(|slot| *slot == "2").count(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn only_a_parked_lane_can_be_asked_for_and_no_reactor_that_has_one_is_sent_back() {
    let world = World::new(4);
    let retry = async |event| world.table().ask(NAME, &lane(), event, &Unpark::Retry).await;
    let nobody = retry("orderId:a/1").await;
    assert!(matches!(nobody, Err(ReactorError::NotParked { .. })), "{nobody:?}");
    world.receiver.fail("orderId:a/1", [Failed::ForGood("no".to_owned())]);
    world.publish([asked("a", 1)]).await;
    world.run().await.unwrap();
    // A person who has read an old list means another event.
    let other = retry("orderId:a/2").await.unwrap_err().to_string();
    assert!(
        other.starts_with(
            "post: lane orderId:a has moved on and does not wait for event orderId:a/2;"
        ),
        "{other}"
    );
    let back = world.table().send_back(NAME, Checkpoint::START, true).await;
    assert!(matches!(back, Err(ReactorError::HasParked { .. })), "{back:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_for_while_a_lane_is_retried_is_done_after_it() {
    let no = || [Failed::ForGood("no".to_owned())];
    for retried in [false, true] {
        let world = World::new(5);
        world.receiver.fail("orderId:a/1", no().into_iter().chain(no()));
        world.publish([asked("a", 1), asked("a", 1)]).await;
        assert_eq!(world.run().await.unwrap().parked, 1);
        ask(&world, &Unpark::Retry).await;

        world.receiver.0.lock().unwrap().takes = Duration::from_secs(5);
        let meanwhile = async {
            sleep(Duration::from_secs(1)).await;
            let skip = Unpark::Skip("it was sent by hand".to_owned());
            ask(&world, if retried { &Unpark::Retry } else { &skip }).await;
        };
        let (ran, ()) = join(world.run(), meanwhile).await;
        assert_eq!((ran.unwrap().parked, world.parked().await[0].tries), (1, 1));
        assert_eq!(world.run().await.unwrap().parked, 0);
        let expected: &[&str] = if retried { &["1", "2"] } else { &["2"] };
        assert_eq!(slots(&world, "orderId:a"), expected);
    }
}

/// A run whose checkpoint can't be written, after which the lanes of `a` and of `b` are parked.
async fn break_off<const RECEIPTS: bool>(world: &World) {
    for event in ["orderId:a/1", "orderId:b/1"] {
        world.receiver.fail(event, [Failed::ForGood("no".to_owned())]);
    }
    world.publish(["a", "b", "a", "b"].map(|order| asked(order, 1))).await;
    world.wire.inject("UpdateItem", 1, Fault::error("AccessDeniedException"));
    world.bare::<RECEIPTS>().run(LONG).await.unwrap_err();
    assert_eq!(world.parked().await.len(), 2);
    // Its lease ends.
    world.wait(PAUSES[2]);
}

#[tokio::test(start_paused = true)]
async fn an_event_after_the_checkpoint_is_skipped_and_retried_like_any_other() {
    let skip = Unpark::Skip("no".to_owned());
    async fn check<const RECEIPTS: bool>(skip: &Unpark) {
        let world = World::new(6);
        break_off::<RECEIPTS>(&world).await;
        for (lane, ask) in world.parked().await.iter().zip([skip, &Unpark::Retry]) {
            world.table().ask(NAME, &lane.lane, &lane.event, ask).await.unwrap();
        }
        let ran = world.bare::<RECEIPTS>().run(LONG).await.unwrap();
        assert_eq!((ran.ended, ran.parked, ran.waiting), (Ended::Present, 0, 0));
        let sent = [slots(&world, "orderId:a"), slots(&world, "orderId:b")];
        assert_eq!(sent, [vec!["2".to_owned()], vec!["1".to_owned(), "2".to_owned()]]);
    }
    check::<true>(&skip).await;
    check::<false>(&skip).await;
    // New events take their share of the time before the checkpoint has passed the event.
    let world = World::new(6);
    world.receiver.fail("orderId:a/1", [Failed::ForGood("no".to_owned())]);
    world.publish(["c", "c", "c", "a"].map(|order| asked(order, 1))).await;
    world.wire.inject("UpdateItem", 1, Fault::error("AccessDeniedException"));
    let lanes = world.bare::<false>();
    lanes.run(LONG).await.unwrap_err();
    world.wait(PAUSES[2]);
    ask(&world, &skip).await;
    world.receiver.0.lock().unwrap().takes = Duration::from_secs(10);
    for (parked, time) in [(1, LONG / 2), (0, LONG)] {
        lanes.run(time).await.unwrap();
        assert_eq!((world.parked().await.len(), slots(&world, "orderId:a")), (parked, vec![]));
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_that_ends_the_process_is_parked_and_the_other_lanes_go_on() {
    async fn check<const RECEIPTS: bool>() {
        let world = World::new(7);
        let deadly = |event: &str| world.receiver.0.lock().unwrap().deadly = Some(event.to_owned());
        deadly("orderId:a/2");
        // It is in the third batch, and a run reads ahead.
        let before = 250;
        let orders = [&vec!["b"; before][..], &["a", "a", "a", "b", "c"]].concat();
        world.publish(orders.into_iter().map(|order| asked(order, 1))).await;
        for _ in 0..2 {
            assert!(world.run_that_may_die::<RECEIPTS>().await.is_none());
            assert_eq!(world.run_that_may_die::<RECEIPTS>().await.unwrap().ended, Ended::Held);
            world.wait(PAUSES[2]);
        }
        let ran = world.run_that_may_die::<RECEIPTS>().await.unwrap();
        assert_eq!((ran.ended, ran.parked, ran.waiting), (Ended::Present, 1, 0));
        let parked = world.parked().await;
        assert!(parked[0].cause.starts_with("two runs have ended"), "{parked:?}");
        let sent = |order: &str| slots(&world, &format!("orderId:{order}"));
        let of_b: BTreeSet<_> = sent("b").into_iter().collect();
        assert_eq!(
            (sent("a"), of_b.len(), sent("c")),
            (vec!["1".to_owned()], before + 1, vec!["1".to_owned()])
        );
        // A person retries it too early, and after the deploy that mends it.
        for is_mended in [false, true] {
            ask(&world, &Unpark::Retry).await;
            let deaths = if is_mended { 0 } else { 2 };
            for _ in 0..deaths {
                assert!(world.run_that_may_die::<RECEIPTS>().await.is_none());
                world.wait(PAUSES[2]);
            }
            if is_mended {
                deadly("");
            }
            let ran = world.run_that_may_die::<RECEIPTS>().await.unwrap();
            assert_eq!(ran.parked, usize::from(!is_mended));
        }
        assert_eq!(sent("a"), ["1", "2", "3"]);
    }
    check::<true>().await;
    check::<false>().await;
}
