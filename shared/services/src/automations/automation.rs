//! An ordered automation, as a handler of the events of lanes.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use lambda_runtime::Error;
use ringfence_core::{BoundaryId, Cause, Context, Lane, SequencedEvent, Slice, is_personal};
use ringfence_feed::Wants;
use ringfence_lambda::slice::Hosted;
use ringfence_log::{Log, Sourced, Sources, StackLogs};
use ringfence_reactors::{Delivery, Failed, Handler, InDoubt, Starts};
use ringfence_stack::{MemberList, Members, Visitor};

/// A new automation also reacts to the events of this time before its start. If the EventTopic has delivered some to
/// it, their keys are known, and nothing happens twice.
const OVERLAP: Duration = Duration::from_secs(3_600);

/// The ordered automations of a stack.
#[derive(Clone, Debug, Default)]
pub struct Ordered {
    pub(crate) slices: Vec<OrderedSlice>,
    /// The logs of the stack.
    pub(crate) sources: Sources,
    /// Whether one of them has personal data.
    pub(crate) is_personal: bool,
}

/// A slice that reacts in order.
#[derive(Clone, Copy, Debug)]
pub struct OrderedSlice {
    pub(crate) name: &'static str,
    causes: &'static [Cause],
    lane: Lane,
    open: fn(&StackLogs) -> Result<Hosted, Error>,
}

impl Ordered {
    /// The ordered automations that the stack `M` lists.
    #[must_use]
    pub fn of<M: Members>() -> Self {
        let mut ordered = Self::default();
        MemberList::walk::<M>(&mut ordered);
        ordered
    }
}

impl Visitor for Ordered {
    fn context<C: Context<Log: Sourced>>(&mut self) {
        self.sources.add(C::Log::SOURCE);
    }

    fn slice<S: Slice<Context: Context<Log: Log<S>>>>(&mut self) {
        // A constant, so that the code of other slices is not compiled into the function.
        if const { S::ORDER.is_some() }
            && let Some(lane) = S::ORDER
        {
            self.is_personal |= is_personal::<S>();
            self.slices.push(OrderedSlice {
                name: S::NAME,
                causes: S::REACTS_TO,
                lane,
                open: Hosted::open::<S>,
            });
        }
    }
}

/// An ordered automation on its log.
pub struct Automation {
    slice: OrderedSlice,
    hosted: Hosted,
}

impl Automation {
    pub(crate) fn open(slice: &OrderedSlice, logs: &StackLogs) -> Result<Self, Error> {
        Ok(Self { slice: *slice, hosted: (slice.open)(logs)? })
    }
}

impl Handler for Automation {
    fn name(&self) -> &'static str {
        self.slice.name
    }

    fn handles(&self, event: &SequencedEvent) -> bool {
        // The context of an event of the DCB log that can't be read is not known.
        let is_cause = |cause: &Cause| {
            cause.event_type == event.event_type && [cause.context, ""].contains(&&*event.context)
        };
        self.slice.causes.iter().any(is_cause)
    }

    fn wants(&self) -> Wants {
        let causes = self.slice.causes;
        Arc::new(move |it| causes.iter().any(|cause| cause.event_type == it.event_type))
    }

    fn lane(&self, event: &SequencedEvent) -> BoundaryId {
        self.slice.lane.of(event)
    }

    fn starts(&self) -> Starts {
        Starts::Now
    }

    fn overlap(&self) -> Duration {
        OVERLAP
    }

    /// The key of the reaction makes the effect happen once.
    fn in_doubt(&self) -> InDoubt {
        InDoubt::Repeat
    }

    fn keeps_receipts(&self) -> bool {
        false
    }

    fn plan(&self, _: &SequencedEvent) -> Result<usize, Failed> {
        Ok(1)
    }

    fn carry_out<'a>(&'a self, delivery: Delivery<'a>) -> LocalBoxFuture<'a, Result<(), Failed>> {
        async move {
            let event = delivery.event();
            let failed = self.hosted.react(event, &self.lane(event)).await.err();
            failed.map_or(Ok(()), |failed| {
                let cause = format!("{}: {}", failed.error_type, failed.error_message);
                // An event that can't be read stays so until another program reads it.
                Err(if failed.error_type == "malformed" {
                    Failed::ForGood(cause)
                } else {
                    Failed::ForNow(cause)
                })
            })
        }
        .boxed_local()
    }
}
