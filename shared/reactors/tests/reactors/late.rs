//! A write that is sent twice, or arrives when its run has gone on, changes nothing.

use std::time::Duration;

use futures::future::join;
use ringfence_aws::Clock;
use ringfence_aws::wire::Fault;
use ringfence_feed::Checkpoint;
use ringfence_reactors::{BATCH_EVENTS_MAX, Failed, ReactorError, Unpark};
use tokio::time::sleep;

use crate::world::{LONG, NAME, World, asked};

/// The caller gives up a send, sends again, and the first one takes effect after this time.
const LATE: Duration = Duration::from_secs(20);

/// Until each late send has arrived.
async fn arrive(world: &World) {
    assert!(world.wire.is_spent());
    sleep(2 * LATE).await;
}

async fn checkpoint(world: &World) -> Checkpoint {
    world.table().standing(NAME).await.unwrap().checkpoint.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_reactor_is_sent_back_once() {
    let world = World::new(1);
    world.publish([asked("a", 1)]).await;
    world.run().await.unwrap();
    let table = world.table();
    let send_back = async || table.send_back(NAME, Checkpoint::START, true).await.unwrap();
    world.wire.inject("UpdateItem", 0, Fault::Stray(LATE));
    send_back().await;
    assert_eq!(world.run().await.unwrap().effects, 1);
    arrive(&world).await;
    assert_eq!(world.run().await.unwrap().effects, 0);
    // A run goes on from there before it is sent again.
    world.wire.inject("UpdateItem", 0, Fault::LostAfter);
    let ((), ran) = join(send_back(), world.run()).await;
    assert_eq!((ran.unwrap().effects, world.run().await.unwrap().effects), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn what_a_person_asks_for_late_does_not_take_the_place_of_something_newer() {
    let skip = Unpark::Skip("it was sent by hand".to_owned());
    for fails_again in [false, true] {
        let world = World::new(2);
        let failures = vec![Failed::ForGood("no".to_owned()); 1 + usize::from(fails_again)];
        world.receiver.fail("orderId:a/1", failures);
        world.publish([asked("a", 1)]).await;
        world.run().await.unwrap();
        let [lane] = &world.parked().await[..] else { panic!("one lane is parked") };
        let table = world.table();
        let ask = async |ask| table.ask(NAME, &lane.lane, &lane.event, ask).await;
        world.wire.inject("UpdateItem", 0, Fault::Stray(LATE));
        ask(&skip).await.unwrap();
        if fails_again {
            ask(&Unpark::Retry).await.unwrap();
            assert_eq!(world.run().await.unwrap().parked, 1);
        } else {
            // Another person asks before it is sent again.
            world.wire.inject("UpdateItem", 0, Fault::LostAfter);
            let (first, second) = join(ask(&skip), ask(&Unpark::Retry)).await;
            assert!(matches!(first, Err(ReactorError::AskedSince { .. })), "{first:?}");
            second.unwrap();
        }
        arrive(&world).await;
        let ran = world.run().await.unwrap();
        assert_eq!((ran.parked, ran.effects), (usize::from(fails_again), u64::from(!fails_again)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_never_goes_back_and_no_run_overtakes_itself() {
    let world = World::new(3);
    let events = (0..BATCH_EVENTS_MAX + 1).map(|n| asked(&format!("o{n}"), 1));
    world.publish(events).await;
    // The lease arrives once more while the first letters are under way, and the first move after the last one.
    world.receiver.0.lock().unwrap().takes = LATE / 8;
    world.wire.inject("UpdateItem", 0, Fault::Stray(LATE / 16));
    world.wire.inject("UpdateItem", 2, Fault::Stray(2 * LATE));
    let ran = world.bare::<false>().run(10 * LONG).await.unwrap();
    let (at, sent) = (ran.checkpoint, world.receiver.count());
    arrive(&world).await;
    assert_eq!((checkpoint(&world).await, sent), (at, BATCH_EVENTS_MAX + 1));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_overtaken_moves_no_checkpoint_and_writes_no_receipt() {
    async fn check<const RECEIPTS: bool>() {
        let world = World::new(4);
        world.publish([asked("a", 1)]).await;
        world.bare::<RECEIPTS>().run(LONG).await.unwrap();
        world.publish([asked("a", 1), asked("a", 1)]).await;
        world.receiver.0.lock().unwrap().takes = Duration::from_secs(10);
        let ahead = Clock::running(world.clock.now_ms() + 300_000);
        let meanwhile = async {
            sleep(Duration::from_secs(1)).await;
            world.receiver.0.lock().unwrap().takes = Duration::ZERO;
            world.publish([asked("b", 1)]).await;
            let mut lanes = world.bare::<RECEIPTS>();
            lanes.table = world.table_at(&ahead);
            lanes.run(LONG).await.unwrap()
        };
        let lanes = world.bare::<RECEIPTS>();
        let (overtaken, ran) = join(lanes.run(LONG), meanwhile).await;
        assert!(matches!(overtaken, Err(ReactorError::Overtaken { .. })), "{overtaken:?}");
        assert_eq!((ran.effects, checkpoint(&world).await), (3, ran.checkpoint));
        // The letter that was under way arrives twice under its key. With receipts no other one does.
        assert_eq!(world.receiver.count(), if RECEIPTS { 5 } else { 6 });
    }
    check::<true>().await;
    check::<false>().await;
}
