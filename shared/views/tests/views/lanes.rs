//! Readers of lanes, which are notified of the events that they read.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::join;
use ringfence_aws::wire::Fault;
use ringfence_views::{Definition, LaneReader, Notify, Projector};
use serde_json::Value;

use crate::notes::{catalog, noted, view, wiped};
use crate::rounds::Others;
use crate::world::{FIRST, LONG, World};

/// A bus, which notes who is notified.
#[derive(Clone, Default)]
pub(crate) struct Bus {
    /// The names since the last look.
    sent: Arc<Mutex<BTreeSet<&'static str>>>,
    is_down: Arc<Mutex<bool>>,
    /// A mistake: it sends after the run.
    is_late: bool,
    later: Arc<Mutex<BTreeSet<&'static str>>>,
}

impl Bus {
    /// Who was notified since the last look.
    pub(crate) fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.sent.lock().unwrap()).into_iter().collect()
    }

    fn notify(&self) -> Notify {
        let bus = self.clone();
        Arc::new(move |names| {
            let bus = bus.clone();
            async move {
                if *bus.is_down.lock().unwrap() {
                    return Err("it is down".to_owned());
                }
                let sent = if bus.is_late { &bus.later } else { &bus.sent };
                sent.lock().unwrap().extend(names);
                Ok(())
            }
            .boxed()
        })
    }

    /// A projector of a stack with a reader of each type.
    pub(crate) fn projector(&self, world: &World) -> Projector {
        let readers = [
            LaneReader { name: "of-noted", types: vec!["Noted"] },
            LaneReader { name: "of-wiped", types: vec!["Wiped"] },
        ];
        world.projector().notifying(readers.into(), self.notify())
    }

    /// One run. Returns its line.
    pub(crate) async fn round(&self, world: &World, views: &[Definition]) -> Value {
        self.go_on(&self.projector(world), world, views).await
    }

    /// One run of a process. Returns its line.
    pub(crate) async fn go_on(
        &self,
        projector: &Projector,
        world: &World,
        views: &[Definition],
    ) -> Value {
        let round = world.round(projector, views).await;
        self.sent.lock().unwrap().append(&mut self.later.lock().unwrap());
        assert_eq!(round.unfinished, [""; 0]);
        round.line.json
    }
}

#[tokio::test(start_paused = true)]
async fn a_stack_without_views_notifies_the_readers_of_an_event_and_no_others() {
    let (world, bus) = (World::new(1, catalog()), Bus::default());
    // Some events may have come before anybody looked.
    bus.round(&world, &[]).await;
    assert_eq!(bus.take(), ["of-noted", "of-wiped"]);
    for (event, notified) in [(noted("n1", &["a"]), "of-noted"), (wiped("n1", &["a"]), "of-wiped")]
    {
        world.publish([event]).await;
        world.wire.forget();
        bus.round(&world, &[]).await;
        assert_eq!(bus.take(), [notified]);
        let units: f64 = world.units().into_iter().map(|(_, units)| units).sum();
        assert_eq!(units, 4.0, "three to read, and one to move");
    }
    bus.round(&world, &[]).await;
    assert_eq!(bus.take(), [""; 0], "nothing is new");
    // A program without readers of lanes leaves nobody behind.
    world.publish([noted("n1", &["a"])]).await;
    world.round(&world.projector(), &[view()]).await;
    let together = world.checkpoints().together().await.unwrap();
    assert_eq!(Vec::from_iter(together.readers), ["notes#1"]);
    bus.round(&world, &[view()]).await;
    assert_eq!(bus.take(), ["of-noted", "of-wiped"], "it may have passed some");
}

#[tokio::test(start_paused = true)]
async fn neither_a_stuck_view_nor_a_slow_one_delays_a_notification() {
    let (world, bus) = (World::new(2, catalog()), Bus::default());
    world.publish([noted("n1", &["a"]), wiped("n1", &["b"])]).await;
    let views = [view(), Definition::of::<Others>()];
    bus.round(&world, &views).await;
    bus.round(&world, &views).await;
    bus.take();
    world.publish([noted("n1", &["a"])]).await;
    // Its rows, with the others and then alone.
    for put in [0, 1] {
        world.wire.inject("PutItem", put, Fault::Delay(Duration::from_secs(20)));
    }
    let meanwhile = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let slow = bus.take();
        tokio::time::sleep(Duration::from_millis(1_000)).await;
        world.publish([wiped("n1", &["c"])]).await;
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        (slow, bus.take(), world.counts(FIRST).await["a"])
    };
    let (_, seen) = join(bus.round(&world, &views), meanwhile).await;
    assert_eq!(seen, (vec!["of-noted"], vec!["of-wiped"], 1), "the view has not written its row");
    assert_eq!(world.counts(FIRST).await["a"], 2);
}

#[tokio::test(start_paused = true)]
async fn views_go_on_if_the_bus_is_down_and_all_readers_are_notified_when_it_is_back() {
    let (world, bus) = (World::new(3, catalog()), Bus::default());
    world.publish([noted("n1", &["a"])]).await;
    bus.round(&world, &[view()]).await;
    bus.take();
    for notes in 2..4 {
        *bus.is_down.lock().unwrap() = true;
        world.publish([noted("n1", &["a"])]).await;
        let line = bus.round(&world, &[view()]).await;
        let found = ["level", "outcome", "unnotified", "failed_function"];
        let found = found.map(|name| line[name].as_str().unwrap());
        assert_eq!(found, ["ERROR", "failed", "it is down", "project-views"]);
        assert_eq!((world.counts(FIRST).await["a"], bus.take()), (notes, vec![]));
    }
    *bus.is_down.lock().unwrap() = false;
    let line = bus.round(&world, &[view()]).await;
    assert_eq!((&line["unnotified"], &line["level"]), (&Value::Null, &"INFO".into()));
    assert_eq!(bus.take(), ["of-noted", "of-wiped"]);
}

#[tokio::test(start_paused = true)]
async fn a_notification_is_sent_before_the_place_of_the_readers_moves() {
    // The first run joins, and the second one moves.
    for (run, operation) in [(0, "TransactWriteItems"), (1, "UpdateItem")] {
        for (fault, is_late) in [
            (Fault::Delay(2 * LONG), false),
            (Fault::Late(2 * LONG), false),
            (Fault::Late(2 * LONG), true),
        ] {
            let (world, bus) = (World::new(4, catalog()), Bus { is_late, ..Bus::default() });
            if run == 1 {
                bus.round(&world, &[]).await;
                bus.take();
            }
            world.publish([noted("n1", &["a"])]).await;
            world.wire.inject(operation, 0, fault);
            let crashed = tokio::time::timeout(LONG / 2, bus.round(&world, &[])).await.is_err();
            assert!(crashed, "{operation}");
            bus.later.lock().unwrap().clear();
            bus.round(&world, &[]).await;
            assert_eq!(bus.take().contains(&"of-noted"), !is_late, "{operation}");
        }
    }
}
