//! The commands of a schedule. They concern few things, so they collide.

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
use ringfence_aws::Random;
use ringfence_core::kit::id;

use crate::claims;
use crate::commands::{Command, name};
use crate::gates::{CloseGate, CloseHall, PassGate};
use crate::table::NOW_MS;

/// Commands of one schedule.
pub(crate) const JOBS_MAX: usize = 14;
/// The first commands create the things of the others.
const FIRST: usize = 2;
/// The last command begins at this time, in milliseconds.
const START_MAX_MS: u64 = 120;
/// The number of themes.
const THEMES: u64 = 5;
/// Claims on the work of a project.
pub(crate) const CLAIMS: u64 = 4;
/// The decision time of a command differs from the true time by at most this, either way, in milliseconds. Leases in
/// the schedules have a second, so claims are often taken over.
const AHEAD_MAX_MS: u64 = 600_000;
/// Writers of one schedule.
pub(crate) const WRITERS: usize = 3;

/// One command, and how often it is delivered.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) number: usize,
    pub(crate) command: Command,
    /// With a key, any number of copies has one effect.
    pub(crate) keyed: bool,
    /// Its decision time, in milliseconds since 1970.
    pub(crate) now_ms: u64,
    pub(crate) copies: Vec<Delivery>,
}

/// One delivery of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    pub(crate) writer: usize,
    pub(crate) start_ms: u64,
    /// Its writer crashes this long after its start.
    pub(crate) crash_ms: Option<u64>,
}

/// The theme of a seed's schedule.
pub(crate) fn theme(seed: u64) -> u64 {
    Random::new(&[seed]).below(THEMES)
}

impl Job {
    /// The name of the command: its key, if it has one, and the metadata `commandId` of its events.
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
