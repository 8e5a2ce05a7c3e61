//! A lane whose event fails waits, and the others go on.

use ringfence::BoundaryId;
use ringfence_feed::Checkpoint;
use ringfence_reactors::{Ended, Failed, PAUSES, ReactorError, Unpark};

use crate::world::{NAME, World, asked};

fn lane() -> BoundaryId {
    BoundaryId::stored("orderId:a")
}

fn slots(world: &World, lane: &str) -> Vec<String> {
    let slot = |letter: String| letter.split('/').nth(1).unwrap().to_owned();
    world.far.letters(lane).into_iter().map(slot).collect()
}

#[tokio::test(start_paused = true)]
async fn a_lane_is_tried_again_after_growing_pauses_and_then_waits_for_a_person() {
    let world = World::new(1);
    world.far.fail("orderId:a/2", (0..5).map(|n| Failed::ForNow(format!("try {n}"))));
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
    // What came meanwhile follows when it is retried.
    world.table().ask(NAME, &lane(), &Unpark::Retry).await.unwrap();
    let ran = world.run().await.unwrap();
    assert_eq!((ran.effects, ran.waiting, ran.parked), (3, 0, 0));
    assert_eq!(slots(&world, "orderId:a"), ["1", "2", "3", "4"]);
    world.publish([asked("a", 1)]).await;
    assert_eq!(world.run().await.unwrap().effects, 1, "it goes with the others again");
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_skipped_is_noted_and_a_later_one_can_fail_as_well() {
    let world = World::new(2);
    world.far.fail("orderId:a/1", [Failed::ForGood("no such address".to_owned())]);
    world.far.fail("orderId:a/3", [Failed::ForGood("refused".to_owned())]);
    world.publish((0..4).map(|_| asked("a", 2))).await;
    assert_eq!(world.run().await.unwrap().parked, 1);
    world
        .table()
        .ask(NAME, &lane(), &Unpark::Skip("the customer has moved".to_owned()))
        .await
        .unwrap();
    assert_eq!(world.run().await.unwrap().parked, 1);
    let parked = world.parked().await;
    assert_eq!((&*parked[0].event, parked[0].tries, parked[0].next_ms), ("orderId:a/3", 1, None));
    world.table().ask(NAME, &lane(), &Unpark::Retry).await.unwrap();
    assert_eq!(world.run().await.unwrap().parked, 0);
    assert_eq!(slots(&world, "orderId:a"), ["2", "2", "3", "3", "4", "4"]);
    // It is done, as the receipt says.
    world.table().send_back(NAME, Checkpoint::START, false).await.unwrap();
    assert_eq!(world.run().await.unwrap().effects, 0);
}

#[tokio::test(start_paused = true)]
async fn what_may_have_happened_is_repeated_or_parked_as_the_reactor_says() {
    let world = World::new(3);
    let unknown = || [Failed::Unknown("no answer".to_owned())];
    world.far.fail("orderId:a/1", unknown());
    world.publish([asked("a", 1), asked("a", 1)]).await;
    assert_eq!(world.run().await.unwrap().waiting, 1);
    world.wait(PAUSES[0]);
    assert_eq!(world.run().await.unwrap().effects, 2);
    let world = World::new(3);
    world.far.fail("orderId:a/1", unknown());
    world.publish([asked("a", 1), asked("a", 1)]).await;
    assert_eq!(world.run_parking().await.unwrap().parked, 1);
    world.wait(PAUSES[3]);
    assert_eq!(world.run_parking().await.unwrap().effects, 0);
    world.table().ask(NAME, &lane(), &Unpark::Retry).await.unwrap();
    assert_eq!(world.run_parking().await.unwrap().effects, 2);
    // An effect that did not happen is not in doubt.
    world.far.fail("orderId:a/3", [Failed::ForNow("busy".to_owned())]);
    world.publish([asked("a", 1)]).await;
    assert_eq!(world.run_parking().await.unwrap().waiting, 1);
    world.wait(PAUSES[0]);
    assert_eq!(world.run_parking().await.unwrap().effects, 1);
}

#[tokio::test(start_paused = true)]
async fn only_a_parked_lane_can_be_asked_for_and_no_reactor_that_has_one_is_sent_back() {
    let world = World::new(4);
    let nobody = world.table().ask(NAME, &lane(), &Unpark::Retry).await;
    assert!(matches!(nobody, Err(ReactorError::NotParked { .. })), "{nobody:?}");
    world.far.fail("orderId:a/1", [Failed::ForGood("no".to_owned())]);
    world.publish([asked("a", 1)]).await;
    world.run().await.unwrap();
    let back = world.table().send_back(NAME, Checkpoint::START, true).await;
    assert!(matches!(back, Err(ReactorError::HasParked { .. })), "{back:?}");
}
