//! Each reader of lanes has a role for its items only.

use std::cell::Cell;
use std::time::Duration;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use ringfence_aws::wire::Exchange;
use ringfence_core::kit::fail;
use ringfence_core::{BoundaryId, Lane, LogKind, SequencedEvent};
use ringfence_local::template::Template;
use ringfence_reactors::{
    Delivery, Failed, Handler, InDoubt, Lanes, PAUSES, ReactorTable, Starts, Unpark,
};
use ringfence_stack::Members;

use crate::Dynamo;
use crate::readers::{VIEWS, World, noted, requests_of_rows};
use crate::requests::{Asked, asked_by, check_requests};
use crate::written::Current;

/// The logical id of the function that feeds ordered automations.
pub(crate) const IN_ORDER: &str = "ReactInOrder";

/// Handles every event. Its outcome is set before a run.
struct Probe {
    name: &'static str,
    keeps_receipts: bool,
    in_doubt: InDoubt,
    fails: Cell<bool>,
}

impl Handler for Probe {
    fn name(&self) -> &'static str {
        self.name
    }

    fn handles(&self, _: &SequencedEvent) -> bool {
        true
    }

    fn lane(&self, event: &SequencedEvent) -> BoundaryId {
        Lane::Partition.of(event)
    }

    fn starts(&self) -> Starts {
        Starts::Now
    }

    fn overlap(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn in_doubt(&self) -> InDoubt {
        self.in_doubt
    }

    fn keeps_receipts(&self) -> bool {
        self.keeps_receipts
    }

    fn plan(&self, _: &SequencedEvent) -> Result<usize, Failed> {
        Ok(2)
    }

    fn carry_out<'a>(&'a self, _: Delivery<'a>) -> LocalBoxFuture<'a, Result<(), Failed>> {
        let failed = self.fails.get().then(|| Failed::ForNow("probed".to_owned()));
        async move { failed.map_or(Ok(()), Err) }.boxed_local()
    }
}

/// The requests of a reader of lanes with this name, for all outcomes of its events. It may read those of the aggregate
/// log.
pub(crate) async fn requests_of_lanes(
    template: &Template,
    name: &'static str,
    keeps_receipts: bool,
    of_aggregates: bool,
) -> Vec<Exchange> {
    let (world, long) = (World::of(template), Duration::from_secs(3_600));
    let table = ReactorTable::new(world.dynamo.client.clone(), VIEWS, world.dynamo.clock.clone());
    let mut asked = Vec::new();
    for in_doubt in [InDoubt::Repeat, InDoubt::Park] {
        let handler = Probe { name, keeps_receipts, in_doubt, fails: Cell::new(false) };
        let lanes = Lanes { handler, index: world.index(), table: table.clone() };
        for fails in [false, true, false, false] {
            let event = world.publish(noted(&["a"], 0)).await;
            lanes.handler.fails.set(fails);
            let ran = lanes.run(long).await;
            ran.unwrap_or_else(|error| fail(name, error));
            asked.extend(world.dynamo.wire.take());
            if fails {
                // A person skips it, by a request of the command line.
                let skip = Unpark::Skip("probed".to_owned());
                let lane = Lane::Partition.of(&event);
                let asked = table.ask(name, &lane, &event.id(), &skip).await;
                asked.unwrap_or_else(|error| fail(name, error));
                let pause = u64::try_from(PAUSES[0].as_millis()).unwrap_or(0);
                world.dynamo.clock.set(world.dynamo.clock.now_ms() + pause);
                world.dynamo.wire.forget();
            }
        }
    }
    asked.extend(world.requests_for_bodies(of_aggregates).await);
    asked
}

/// Compares the requests of each reactor with its role. Panics unless the role allows exactly them.
pub async fn check_roles_of_reactors<M: Members>() {
    let current = Current::of::<M>();
    check_requests(current.template(), &asked_of_reactors(&current).await);
}

/// The requests of the reactors.
pub(crate) async fn asked_of_reactors(current: &Current) -> Vec<Asked> {
    let template = current.template();
    let mut all = Vec::new();
    for (context, reactor) in current.stack.reactors() {
        let of_aggregates = context.log == LogKind::Aggregates;
        let mut asked = requests_of_lanes(&template, reactor.name, true, of_aggregates).await;
        asked.extend(requests_of_rows(&template, reactor.views).await);
        if reactor.is_personal {
            asked.extend(Dynamo::with(&template, &[]).requests_of_vaults(false).await);
        }
        if reactor.destroys_keys() {
            asked.extend(Dynamo::with(&template, &[]).requests_of_forgetting().await);
        }
        all.push(asked_by(reactor.name, asked));
    }
    all
}
