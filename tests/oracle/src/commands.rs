//! The commands of the example contexts, of any slice.

use catalog::add_product::AddProduct;
use catalog::change_product_name::ChangeProductName;
use catalog::record_product_demand::RecordProductDemand;
use courses::change_course_capacity::ChangeCourseCapacity;
use courses::define_course::DefineCourse;
use courses::subscribe_student::SubscribeStudent;
use courses::unsubscribe_student::UnsubscribeStudent;
use ordering::cancel_order::CancelOrder;
use ordering::order_product::OrderProduct;
use ordering::place_order::PlaceOrder;
use ordering::sync_catalog_product::SyncCatalogProduct;
use projects::claim_edge::ClaimEdge;
use projects::complete_iteration::CompleteIteration;
use projects::converge_edge::ConvergeEdge;
use projects::create_feature::CreateFeature;
use projects::expire_claim::ExpireClaim;
use projects::force_release::ForceRelease;
use projects::init_project::InitProject;
use projects::record_review::RecordReview;
use projects::release_edge::ReleaseEdge;
use projects::renew_claim::RenewClaim;
use projects::reopen_edge::ReopenEdge;
use projects::request_review::RequestReview;
use projects::spawn_feature::SpawnFeature;
use ringfence_aws::Random;
use ringfence_core::kit::id;
use ringfence_core::{
    Catalog, CommandContext, Decisions, Envelope, EventLog, HandleError, Handled, NewEvent, Plan,
    Reads, ReadsOf, Rejected, Seen, SequencedEvent, Slice, State, Tag, Writes, handle,
};
use serde_json::Value;

use crate::gates::{CloseGate, CloseHall, PassGate};

/// The result of a decision: the rejection, if the command is rejected, and its events: type, tags, payload.
#[derive(Debug, PartialEq)]
pub(crate) struct Decision {
    pub(crate) rejection: Option<Value>,
    pub(crate) events: Vec<(String, Vec<Tag>, Value)>,
}

impl Decision {
    fn of<S: Slice>(
        command: &S,
        catalog: &Catalog,
        events: &[&SequencedEvent],
        now_ms: u64,
    ) -> Self {
        let plan = plan(command, catalog);
        let mut seen = Seen::nothing(&plan);
        let read = |event: &&&SequencedEvent| plan.reads.iter().any(|read| read.holds(event));
        let state = events.iter().filter(read).fold(S::State::default(), |state, event| {
            match seen.observe(&plan, event) && plan.matches(event) {
                true => {
                    let event = catalog.current(*event).expect("no type has a second version");
                    state.evolve(ReadsOf::<S>::decode(&event).expect("it has its type's shape"))
                }
                false => state,
            }
        });
        let now_ms = seen.newest_ms(now_ms);
        let context = CommandContext { now_ms, ..CommandContext::default() };
        let (rejection, events) = match command.decide(&state, &context) {
            Ok(events) => (None, events),
            Err(rejection) => {
                let left = command.leaves(&rejection, &state, &context);
                (Some(Rejected::of(&rejection).rejection), left)
            }
        };
        let event = |event: &S::Writes| {
            let NewEvent { event_type, tags, data } = event.to_event().expect("it can be stored");
            (event_type.into_owned(), tags, data)
        };
        Self { rejection, events: events.iter().map(event).collect() }
    }
}

fn plan<S: Slice>(command: &S, catalog: &Catalog) -> Plan {
    let query = S::query(command.shape(), command.tags(), catalog);
    Plan::new(&query, catalog).expect("every command has a plan")
}

macro_rules! commands {
    ($($slice:ident),* $(,)?) => {
        #[derive(Clone, Debug)]
        pub(crate) enum Command {
            $($slice($slice)),*
        }

        /// The warm decisions of one writer.
        #[allow(non_snake_case, reason = "one for each slice, named as it is")]
        pub(crate) struct Caches {
            $($slice: Decisions<$slice>),*
        }

        impl Caches {
            pub(crate) fn new(entries: usize) -> Self {
                Self { $($slice: Decisions::new(entries)),* }
            }
        }

        impl Command {
            pub(crate) async fn handle(
                &self,
                log: &impl EventLog,
                catalog: &Catalog,
                caches: &Caches,
                envelope: &Envelope,
            ) -> Result<Handled, HandleError> {
                match self {
                    $(Self::$slice(command) => {
                        handle(log, catalog, &caches.$slice, command, envelope).await
                    })*
                }
            }

            /// The events that the command's decision folds.
            pub(crate) fn facts<'e>(
                &self,
                catalog: &Catalog,
                events: &[&'e SequencedEvent],
            ) -> Vec<&'e SequencedEvent> {
                let plan = match self {
                    $(Self::$slice(command) => plan(command, catalog),)*
                };
                let read = |event: &SequencedEvent| plan.reads.iter().any(|read| read.holds(event));
                let events = events.iter().copied();
                events.filter(|event| read(event) && plan.matches(event)).collect()
            }

            /// The result of the command at this time if these events are folded in this order.
            pub(crate) fn decide(
                &self,
                catalog: &Catalog,
                events: &[&SequencedEvent],
                now_ms: u64,
            ) -> Decision {
                match self {
                    $(Self::$slice(command) => Decision::of(command, catalog, events, now_ms),)*
                }
            }
        }
    };
}

commands!(
    AddProduct,
    CancelOrder,
    ChangeCourseCapacity,
    ChangeProductName,
    ClaimEdge,
    CloseGate,
    CloseHall,
    CompleteIteration,
    ConvergeEdge,
    CreateFeature,
    DefineCourse,
    ExpireClaim,
    ForceRelease,
    InitProject,
    OrderProduct,
    PassGate,
    PlaceOrder,
    RecordProductDemand,
    RecordReview,
    ReleaseEdge,
    RenewClaim,
    ReopenEdge,
    RequestReview,
    SpawnFeature,
    SubscribeStudent,
    SyncCatalogProduct,
    UnsubscribeStudent,
);

pub(crate) fn name<T: std::str::FromStr<Err: std::fmt::Display>>(
    random: &mut Random,
    kind: &str,
    of: u64,
) -> T {
    id(&format!("{kind}{}", random.below(of)))
}
