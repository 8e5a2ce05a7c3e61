//! Each effect happens once, in the order of its lane.

use std::time::Duration;

use futures::future::join;
use ringfence_aws::wire::{Exchange, Fault};
use ringfence_core::kit::id;
use ringfence_feed::Checkpoint;
use ringfence_lambda::Service;
use ringfence_reactors::{
    BATCH_EVENTS_MAX, EFFECT_TIME_MAX, Ended, Failed, PAUSES, RanLanes, ReactorFunction, Starts,
    Unpark, WAITING_LANES_MAX,
};

use tokio::time::sleep;

use crate::world::{Asked, LONG, NAME, Noted, Post, World, asked};

fn names(order: &str, letters: impl IntoIterator<Item = (u64, u32)>) -> Vec<String> {
    letters.into_iter().map(|(slot, n)| format!("orderId:{order}/{slot}/{n}")).collect()
}

#[tokio::test(start_paused = true)]
async fn the_effects_of_a_lane_happen_in_its_order_and_nothing_happens_twice() {
    let world = World::new(1);
    assert_eq!(world.run().await.unwrap().ended, Ended::Present, "it has its first checkpoint");
    let events = [
        asked("a", 2),
        asked("b", 1),
        Noted { order_id: id("a") }.into(),
        asked("a", 0),
        asked("a", 1),
    ];
    world.publish(events).await;
    let ran = world.run().await.unwrap();
    assert_eq!((ran.ended, ran.effects), (Ended::Present, 4));
    assert_eq!(world.receiver.letters("orderId:a"), names("a", [(1, 0), (1, 1), (4, 0)]));
    assert_eq!(world.receiver.letters("orderId:b"), names("b", [(1, 0)]));
    let idle = RanLanes { ended: Ended::Idle, effects: 0, ..ran };
    assert_eq!(world.run().await.unwrap(), idle);
    assert_eq!(world.receiver.count(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_out_of_time_leaves_the_rest_to_the_next_one() {
    let world = World::new(2);
    world.publish((0..5).map(|_| asked("a", 1))).await;
    world.receiver.0.lock().unwrap().takes = Duration::from_secs(5);
    let lanes = world.function::<false>(&world.clock);
    for (time, effects) in [(0, 0), (12, 3)] {
        let ran = lanes.run(Duration::from_secs(time)).await.unwrap();
        assert_eq!((ran.ended, ran.effects), (Ended::Behind, effects));
    }
    assert_eq!(world.run().await.unwrap().effects, 2);
    assert_eq!(world.receiver.letters("orderId:a"), names("a", (1..=5).map(|slot| (slot, 0))));
}

#[tokio::test(start_paused = true)]
async fn new_events_have_their_share_of_a_run_however_many_lanes_catch_up() {
    let world = World::new(6);
    let orders: Vec<String> = (0..40).map(|n| format!("o{n}")).collect();
    for order in &orders {
        world.receiver.fail(&format!("orderId:{order}/1"), [Failed::ForGood("no".to_owned())]);
    }
    let twice = orders.iter().chain(&orders);
    world.publish(twice.map(|order| asked(order, 1))).await;
    assert_eq!(world.run().await.unwrap().parked, orders.len());
    for lane in world.parked().await {
        world.table().ask(NAME, &lane.lane, &lane.event, &Unpark::Retry).await.unwrap();
    }
    world.publish((0..3).map(|_| asked("new", 1))).await;
    world.receiver.0.lock().unwrap().takes = Duration::from_secs(10);
    let ran = world.function::<false>(&world.clock).run(Duration::from_secs(30)).await.unwrap();
    // The third one would begin in the second half.
    assert_eq!(world.receiver.letters("orderId:new"), names("new", [(1, 0), (2, 0)]));
    assert!(ran.effects > 10, "{ran:?}");
    let mut runs = 1;
    while !world.parked().await.is_empty() {
        runs += 1;
        assert!(runs < 10, "it never ends");
        world.run().await.unwrap();
    }
    assert_eq!(world.receiver.count(), 2 * orders.len() + 3);
    for order in &orders {
        assert_eq!(
            world.receiver.letters(&format!("orderId:{order}")),
            names(order, [(1, 0), (2, 0)])
        );
    }
}

#[tokio::test(start_paused = true)]
async fn large_events_make_small_batches() {
    let world = World::new(8);
    let large = |n| Asked {
        order_id: id(&format!("o{n}")),
        customer_id: id("c"),
        letters: 0,
        text: "x".repeat(350_000),
    };
    world.publish((0..24).map(|n| large(n).into())).await;
    world.run().await.unwrap();
    let is_move = |update: &Exchange| {
        let expression = update.request["UpdateExpression"].as_str().unwrap_or_default();
        expression.contains("#checkpoint = :to")
    };
    assert_eq!(world.wire.take().iter().filter(|it| is_move(it)).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_effect_that_is_done_is_not_repeated_when_a_later_one_of_its_event_fails() {
    for parks in [false, true] {
        let world = World::new(9);
        world.publish([asked("a", 3)]).await;
        for sent in [3, 6] {
            world.receiver.fail("orderId:a/1", [None, Some(Failed::ForNow("busy".to_owned()))]);
            for (effects, waiting) in [(1, 1), (2, 0)] {
                let ran =
                    if parks { world.run_parking().await } else { world.run().await }.unwrap();
                assert_eq!((ran.effects, ran.waiting), (effects, waiting), "parks: {parks}");
                world.wait(PAUSES[0]);
            }
            assert_eq!(world.receiver.count(), sent, "parks: {parks}");
            // All of it happens again, and the same holds.
            world.table().send_back(NAME, Checkpoint::START, true).await.unwrap();
        }
        let letters = [(1, 0), (1, 1), (1, 2)].repeat(2);
        assert_eq!(world.receiver.letters("orderId:a"), names("a", letters));
    }
}

#[tokio::test(start_paused = true)]
async fn a_reactor_that_starts_now_passes_over_nothing_if_its_first_run_fails() {
    let world = World::new(10);
    world.publish([asked("a", 1)]).await;
    let mut lanes = world.bare::<true>();
    lanes.handler.1 = Starts::Now;
    // Its lease is taken, and then it fails.
    world.wire.inject("UpdateItem", 1, Fault::error("AccessDeniedException"));
    lanes.run(LONG).await.unwrap_err();
    world.publish([asked("b", 1)]).await;
    world.wait(PAUSES[2]);
    assert_eq!(lanes.run(LONG).await.unwrap().effects, 1);
    assert_eq!(world.receiver.letters("orderId:b"), names("b", [(1, 0)]));
}

#[test]
fn an_effect_that_begins_last_has_its_time_and_some_is_left_for_the_answer() {
    let reserve = <ReactorFunction<Post<false>> as Service>::ANSWER_TIME;
    assert!(reserve >= EFFECT_TIME_MAX + Duration::from_secs(2), "{reserve:?}");
}

#[tokio::test(start_paused = true)]
async fn a_run_handles_what_is_published_while_it_runs() {
    let world = World::new(3);
    world.publish([asked("a", 1)]).await;
    // The checkpoint moves slowly. Meanwhile an event is published, and another run finds the lease taken.
    world.wire.inject("UpdateItem", 1, Fault::Late(Duration::from_secs(10)));
    let late = async {
        sleep(Duration::from_secs(1)).await;
        world.publish([asked("b", 1)]).await;
        world.run().await.unwrap().ended
    };
    let (ran, late) = join(world.run(), late).await;
    assert_eq!((ran.unwrap().effects, late), (2, Ended::Held));
    assert!(world.wire.is_spent());
}

#[tokio::test(start_paused = true)]
async fn if_the_receiver_is_down_new_events_stay_in_the_index() {
    let world = World::new(4);
    let orders = (0..WAITING_LANES_MAX + BATCH_EVENTS_MAX).map(|n| format!("o{n}"));
    let orders: Vec<String> = orders.collect();
    for order in &orders {
        world.receiver.fail(&format!("orderId:{order}/1"), [Failed::ForNow("down".to_owned())]);
    }
    world.publish(orders.iter().map(|order| asked(order, 1))).await;
    let ran = world.run().await.unwrap();
    assert_eq!((ran.ended, ran.waiting, ran.parked), (Ended::Stopped, WAITING_LANES_MAX, 0));
    world.wait(PAUSES[0]);
    let ran = world.run().await.unwrap();
    // The waiting ones are done, and the others have failed once.
    assert_eq!((ran.ended, ran.waiting), (Ended::Stopped, BATCH_EVENTS_MAX));
    world.wait(PAUSES[0]);
    assert_eq!(world.run().await.unwrap().ended, Ended::Present);
    assert_eq!(world.receiver.count(), orders.len());
    assert_eq!(world.parked().await, []);
}

#[tokio::test(start_paused = true)]
async fn a_reactor_that_is_sent_back_repeats_nothing_unless_it_is_told_to() {
    let world = World::new(5);
    world.publish([asked("a", 1), asked("b", 1), asked("a", 2)]).await;
    let end = world.run().await.unwrap().checkpoint;
    let start = Checkpoint::START;
    world.table().send_back(NAME, start, false).await.unwrap();
    let ran = world.run().await.unwrap();
    assert_eq!((ran.checkpoint, ran.effects, world.receiver.count()), (end, 0, 4));
    for again in 1..=2 {
        world.table().send_back(NAME, start, true).await.unwrap();
        assert_eq!(world.run().await.unwrap().effects, 4);
        assert_eq!(world.receiver.count(), 4 + 4 * again);
    }
    // The receiver takes them for other letters, because their keys are new.
    assert_eq!(world.receiver.letters("orderId:a").len(), 9);
    let keys: Vec<_> =
        world.receiver.0.lock().unwrap().all.iter().map(|(_, key, _)| key.clone()).collect();
    assert!(keys.last().unwrap().ends_with("/again-2"), "{keys:?}");
}
