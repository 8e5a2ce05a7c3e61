//! Many lanes side by side, on a store whose requests take their time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use ringfence_aws::Random;
use ringfence_aws::wire::{Director, Edit, Fault};
use ringfence_feed::{Checkpoint, Entry, Until};
use ringfence_reactors::{Ended, PAUSES, Unpark};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::world::{LONG, NAME, World, asked};

/// Published latencies. With `ahead`, the checkpoint is moved too far: that is a mistake which the tests must notice.
struct Store {
    ahead: bool,
}

impl Director for Store {
    fn faults(&self, operation: &str, request: &Value) -> Vec<Fault> {
        let mut faults = Vec::new();
        let moves = request["UpdateExpression"].to_string().contains("#checkpoint = :to");
        if self.ahead && moves {
            faults.push(Fault::Request(Edit::new(|request| {
                let to = &mut request["ExpressionAttributeValues"][":to"]["N"];
                let ahead = to.as_str().map_or(0, |to| to.parse().unwrap_or(0)) + 100;
                *to = json!(i64::to_string(&ahead));
            })));
        }
        let is_read = operation == "Query" || operation.ends_with("GetItem");
        faults.push(Fault::Late(Duration::from_millis(if is_read { 5 } else { 8 })));
        faults
    }

    fn carried_out(&self, _: &str, _: &Value, _: u16) {}
}

/// In simulated time: an effect of 108 ms, as a webhook has.
#[tokio::test(start_paused = true)]
async fn lanes_do_not_wait_for_the_fullest_one() {
    let world = World::new(13);
    let mut random = Random::new(&[13]);
    let events = 600_u32;
    world.publish((0..events).map(|_| asked(&format!("o{}", random.below(300)), 1))).await;
    world.wire.direct(Arc::new(Store { ahead: false }));
    world.receiver.0.lock().unwrap().takes = Duration::from_millis(108);
    let begun = Instant::now();
    let ran = world.run().await.unwrap();
    assert_eq!((ran.ended, ran.effects), (Ended::Present, events.into()));
    let a_second = f64::from(events) / begun.elapsed().as_secs_f64();
    assert!(a_second > 400.0, "{a_second} a second");
}

/// The effects of each lane, as they are in the index; an event's effects have its place.
async fn expected(world: &World) -> BTreeMap<String, Vec<(Checkpoint, String)>> {
    let entries = world.index.read(Checkpoint::START, Until::Present);
    let entries: Vec<Entry> = entries.try_collect().await.unwrap();
    let mut lanes = BTreeMap::<_, Vec<_>>::new();
    for Entry { checkpoint, event } in entries {
        let letters = event.data["letters"].as_u64().unwrap();
        let of_event = (0..letters).map(|n| (checkpoint, format!("{}/{n}", event.id())));
        lanes.entry(event.partition.to_string()).or_default().extend(of_event);
    }
    lanes
}

/// A reactor of its own on the events of a world: two runs whose process ends at some moment, and then runs that end. A
/// person retries the lane of the event that seems to have ended the second one.
async fn crash<const RECEIPTS: bool>(
    world: &World,
    lanes: &BTreeMap<String, Vec<(Checkpoint, String)>>,
    random: &mut Random,
) -> Result<(), String> {
    let crashes = [1_500, 300].map(|ms| Duration::from_millis(random.below(ms)));
    for run in 0..6 {
        let reader = world.bare::<RECEIPTS>();
        let ran = match crashes.get(run) {
            Some(after) => timeout(*after, reader.run(LONG)).await.ok(),
            None => Some(reader.run(LONG).await),
        };
        let ended = ran.transpose().map_err(|error| error.to_string())?.map(|ran| ran.ended);
        // The lease ends.
        world.wait(PAUSES[2]);
        let at = world.table().standing(NAME).await.unwrap().checkpoint.unwrap_or_default();
        let parked = world.parked().await;
        let sent = world.receiver.0.lock().unwrap().all.clone();
        for (lane, expected) in lanes {
            let of_lane = sent.iter().filter(|(of, ..)| of.as_str() == lane);
            let mut arrived: Vec<_> = of_lane.map(|(.., letter)| letter).collect();
            let known: BTreeSet<_> = arrived.iter().copied().collect();
            let waits = parked.iter().find(|of| of.lane.as_str() == lane);
            let is_passed = |to: Checkpoint| to <= at && waits.is_none_or(|of| to < of.place);
            let is_left = |(to, it): &&(Checkpoint, _)| is_passed(*to) && !known.contains(it);
            if let Some(left) = expected.iter().find(is_left) {
                return Err(format!("the checkpoint {at} is after {left:?}, which is not done"));
            }
            // With receipts, at most the effect that was under way is repeated.
            match RECEIPTS {
                true => arrived.dedup(),
                false => {
                    let mut known = BTreeSet::new();
                    arrived.retain(|letter| known.insert(*letter));
                }
            }
            let in_order = expected.iter().map(|(_, letter)| letter).take(arrived.len());
            if !in_order.eq(arrived.iter().copied()) {
                return Err(format!("{lane}: {arrived:?} instead of {expected:?}"));
            }
        }
        for lane in &parked {
            world.table().ask(NAME, &lane.lane, &lane.event, &Unpark::Retry).await.unwrap();
        }
        if parked.is_empty() && ended.is_some() {
            let is_missing = |(_, it): &&(Checkpoint, String)| !sent.iter().any(|of| of.2 == *it);
            let missing = lanes.values().flatten().find(is_missing);
            return missing.map_or(Ok(()), |missing| Err(format!("{missing:?} is passed over")));
        }
    }
    Err("it never ends".to_owned())
}

#[tokio::test(start_paused = true)]
async fn the_checkpoint_passes_only_what_is_done_wherever_runs_break_off() {
    let (mut world, mut random) = (World::new(14), Random::new(&[14]));
    // One lane has a fifth of the events.
    let events: Vec<_> = (0..220)
        .map(|_| {
            let (is_hot, order) = (random.chance(20), random.below(60));
            let order = if is_hot { "hot".to_owned() } else { format!("o{order}") };
            asked(&order, u32::try_from(random.below(3)).unwrap())
        })
        .collect();
    world.publish(events).await;
    let lanes = expected(&world).await;
    for n in 1..10 {
        let ahead = n > 4;
        world.begin_again(n);
        world.receiver.0.lock().unwrap().takes = Duration::from_millis(20);
        world.wire.direct(Arc::new(Store { ahead }));
        let crashed = match n % 2 {
            0 => crash::<true>(&world, &lanes, &mut random).await,
            _ => crash::<false>(&world, &lanes, &mut random).await,
        };
        if ahead && crashed.is_err() {
            return;
        }
        assert_eq!(crashed, Ok(()), "{n}");
    }
    panic!("nobody notices a checkpoint that goes ahead");
}
