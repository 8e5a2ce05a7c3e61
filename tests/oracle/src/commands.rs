//! What is given: commands of the example contexts about few things, so that they collide.

use catalog::Money;
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
use ringfence::kit::id;
use ringfence::{
    Catalog, CommandContext, Decisions, Envelope, EventLog, HandleError, Handled, NewEvent, Plan,
    Reads, ReadsOf, Refusal, Seen, SequencedEvent, Slice, State, Tag, Writes, handle,
};
use ringfence_dynamo::Random;
use serde_json::Value;

use crate::claims;
use crate::gates::{CloseGate, CloseHall, PassGate};
use crate::world::NOW_MS;

/// Commands of one schedule.
pub(crate) const JOBS_MAX: usize = 14;
/// The first commands make the things that the others are about.
const FIRST: usize = 2;
/// When the last command begins, in milliseconds.
const START_MAX_MS: u64 = 120;
/// What a schedule can be about.
const THEMES: u64 = 5;
/// Claims on the work of a project.
pub(crate) const CLAIMS: u64 = 4;
/// The time by which a command is decided differs from the true one by at most this, either way, in milliseconds.
/// Leases in the schedules have a second, so claims are often taken over.
const AHEAD_MAX_MS: u64 = 600_000;
/// Writers of one schedule.
pub(crate) const WRITERS: usize = 3;

/// What a decision comes to: why the command is refused, if it is, and its events: type, tags, payload.
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
                true => state.evolve(ReadsOf::<S>::decode(event).expect("it has its type's shape")),
                false => state,
            }
        });
        let now_ms = seen.newest_ms(now_ms);
        let context = CommandContext { now_ms, ..CommandContext::default() };
        let (rejection, events) = match command.decide(&state, &context) {
            Ok(events) => (None, events),
            Err(rejection) => {
                let left = command.leaves(&rejection, &state, &context);
                (Some(Refusal::of(&rejection).rejection), left)
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

            /// Those of the events that the command's decision folds.
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

            /// What the command comes to at this time if these events are folded in this order.
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

/// One command, and how often it is delivered.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) number: usize,
    pub(crate) command: Command,
    /// With a key, any number of copies has one effect.
    pub(crate) keyed: bool,
    /// The time by which it is decided, in milliseconds since 1970.
    pub(crate) now_ms: u64,
    pub(crate) copies: Vec<Delivery>,
}

/// One delivery of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    pub(crate) writer: usize,
    pub(crate) start_ms: u64,
    /// How long after its start its writer crashes.
    pub(crate) crash_ms: Option<u64>,
}

/// What the schedule of a seed is about.
pub(crate) fn theme(seed: u64) -> u64 {
    Random::new(&[seed]).below(THEMES)
}

impl Job {
    /// Names the command: its key, if it has one, and the metadata `commandId` of its events.
    pub(crate) fn id(&self) -> String {
        format!("job-{}", self.number)
    }

    pub(crate) fn new(seed: u64, number: usize) -> Self {
        let theme = theme(seed);
        let mut random = Random::new(&[seed, 1, number as u64]);
        let command = if number < FIRST {
            first(theme, number)
        } else {
            match theme {
                0 => courses(&mut random),
                1 => shop(&mut random),
                2 => gates(&mut random),
                3 => ordering(&mut random),
                _ => claims::command(&mut random),
            }
        };
        let keyed = random.chance(40);
        let copies = if keyed { 1 + random.below(3) } else { 1 };
        let copies = (0..copies).map(|_| Delivery {
            writer: usize::try_from(random.below(WRITERS as u64)).unwrap_or(0),
            start_ms: match number < FIRST {
                // There is no feature without a project.
                true if theme == CLAIMS => number as u64 * 40,
                true => 0,
                false => 10 + random.below(START_MAX_MS),
            },
            crash_ms: random.chance(15).then(|| random.below(60)),
        });
        let copies = copies.collect();
        let now_ms = NOW_MS - AHEAD_MAX_MS + random.below(2 * AHEAD_MAX_MS);
        Self { number, command, keyed, now_ms, copies }
    }
}

pub(crate) fn name<T: std::str::FromStr<Err: std::fmt::Display>>(
    random: &mut Random,
    kind: &str,
    of: u64,
) -> T {
    id(&format!("{kind}{}", random.below(of)))
}

fn first(theme: u64, number: usize) -> Command {
    let thing = |kind: &str| format!("{kind}{number}");
    let (name, price) = (id("Lamp"), Money::new(1_250, "EUR"));
    match theme {
        0 => Command::DefineCourse(DefineCourse { course_id: id(&thing("c")), capacity: 2 }),
        1 => Command::AddProduct(AddProduct {
            product_id: id(&thing("p")),
            name,
            description: id(""),
            price,
        }),
        2 => gates(&mut Random::new(&[number as u64])),
        CLAIMS => claims::first(number),
        _ => Command::SyncCatalogProduct(SyncCatalogProduct {
            product_id: id(&thing("p")),
            name,
            price,
        }),
    }
}

fn courses(random: &mut Random) -> Command {
    let course_id = name(random, "c", 3);
    match random.below(10) {
        0 => Command::DefineCourse(DefineCourse { course_id, capacity: 1 }),
        1 => Command::ChangeCourseCapacity(ChangeCourseCapacity {
            course_id,
            new_capacity: u32::try_from(1 + random.below(3)).unwrap_or(1),
        }),
        2..=6 => Command::SubscribeStudent(SubscribeStudent {
            course_id,
            student_id: name(random, "s", 4),
        }),
        _ => Command::UnsubscribeStudent(UnsubscribeStudent {
            course_id,
            student_id: name(random, "s", 4),
        }),
    }
}

fn shop(random: &mut Random) -> Command {
    let product_id = name(random, "p", 2);
    let order_id = name(random, "o", 2);
    match random.below(10) {
        0 => Command::AddProduct(AddProduct {
            product_id,
            name: id("Lamp"),
            description: id(""),
            price: Money::new(1_250, "EUR"),
        }),
        1..=4 => Command::ChangeProductName(ChangeProductName {
            product_id,
            name: name(random, "Lamp ", 2),
        }),
        5..=7 => {
            Command::RecordProductDemand(RecordProductDemand::RecordDemand { product_id, order_id })
        }
        _ => {
            Command::RecordProductDemand(RecordProductDemand::RevokeDemand { product_id, order_id })
        }
    }
}

fn gates(random: &mut Random) -> Command {
    let hall_id = name(random, "h", 4);
    match random.below(4) {
        0 if random.chance(50) => {
            let gate_ids = (0..=random.below(3)).map(|_| name(random, "g", 4)).collect();
            Command::CloseHall(CloseHall { hall_id, gate_ids })
        }
        0 => Command::CloseGate(CloseGate { gate_id: name(random, "g", 3), hall_id }),
        _ => Command::PassGate(PassGate { visitor_id: name(random, "v", 6), hall_id }),
    }
}

fn ordering(random: &mut Random) -> Command {
    let order_id = name(random, "o", 5);
    match random.below(10) {
        0 => Command::SyncCatalogProduct(SyncCatalogProduct {
            product_id: name(random, "p", 3),
            name: name(random, "Lamp ", 2),
            price: Money::new(1_250, "EUR"),
        }),
        1..=3 => Command::PlaceOrder(PlaceOrder {
            order_id,
            customer_id: name(random, "c", 2),
            product_ids: (0..=random.below(3)).map(|_| name(random, "p", 3)).collect(),
            quantities: [].into(),
        }),
        4 => Command::CancelOrder(CancelOrder { order_id }),
        _ => Command::OrderProduct(OrderProduct {
            order_id,
            customer_id: name(random, "c", 2),
            product_id: name(random, "p", 2),
            quantity: u32::try_from(2 + random.below(4)).unwrap_or(2),
        }),
    }
}
