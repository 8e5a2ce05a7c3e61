//! Each reader of lanes has a role for its items only.

use std::cell::Cell;
use std::time::Duration;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use ringfence_aws::wire::Exchange;
use ringfence_core::kit::fail;
use ringfence_core::{BoundaryId, Lane, SequencedEvent};
use ringfence_reactors::{
    Delivery, Failed, Handler, InDoubt, Lanes, PAUSES, ReactorTable, Starts, Unpark,
};
use ringfence_stack::{Members, Stack};

use crate::readers::{VIEWS, World, check_role, noted, requests_of_rows};
use crate::written::write_if_asked;

/// The logical id of the function that feeds ordered automations.
pub(crate) const IN_ORDER: &str = "ReactInOrder";
/// The logical id of the function that notifies all readers of lanes.
pub(crate) const NOTIFY: &str = "NotifyReaders";

/// Whether a slice of the stack reacts in order.
pub(crate) fn has_ordered(stack: &Stack) -> bool {
    stack.slices().any(|(_, slice)| slice.order.is_some())
}

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

    fn carry_out<'a>(
        &'a self,
        _: usize,
        _: Delivery<'a>,
    ) -> LocalBoxFuture<'a, Result<(), Failed>> {
        let failed = self.fails.get().then(|| Failed::ForNow("probed".to_owned()));
        async move { failed.map_or(Ok(()), Err) }.boxed_local()
    }
}

/// The requests of a reader of lanes with this name, for all outcomes of its events.
pub(crate) async fn requests_of_lanes(name: &'static str, keeps_receipts: bool) -> Vec<Exchange> {
    let (world, long) = (World::start(), Duration::from_secs(3_600));
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
    asked
}

/// Compares the requests of each reactor with its role. Panics unless the role allows exactly them.
pub async fn check_roles_of_reactors<M: Members>() {
    let stack = Stack::of::<M>().unwrap_or_else(|error| fail("the stack", error));
    write_if_asked(&stack);
    for (_, reactor) in stack.reactors() {
        let mut asked = requests_of_lanes(reactor.name, true).await;
        asked.extend(requests_of_rows(reactor.views).await);
        check_role(reactor.name, asked);
    }
}
