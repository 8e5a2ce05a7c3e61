//! The kit decides each case on its facts in other fold orders.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
};

use futures::executor::block_on;
use ringfence_core::prelude::*;

use crate::shop::{GuestId, Opened, RoomId, Rooms, booked, cleaned};

thread_local! {
    /// The shifts of the cleanings in the order of each decision.
    static DECIDED: RefCell<BTreeSet<Vec<u32>>> = const { RefCell::new(BTreeSet::new()) };
}

/// Opens a house and names it after the cleanings of its rooms.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct Name {
    room_ids: Vec<RoomId>,
    after: After,
}

#[ringfence::value]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum After {
    /// The shift of the last cleaning, which depends on their order.
    Last,
    /// The sum of the shifts, which does not depend on their order.
    Sum,
    /// The time of the last cleaning, which depends on their order only by milliseconds.
    Time,
}

#[derive(Reads)]
pub(crate) enum Read {
    Cleaned {
        shift_id: u32,
        #[time]
        at_ms: u64,
    },
}

/// The shifts that have cleaned, and their times.
#[derive(Default)]
pub(crate) struct Shifts(Vec<(u32, u64)>);

impl State for Shifts {
    type Reads = Read;

    fn evolve(mut self, event: Read) -> Self {
        let Read::Cleaned { shift_id, at_ms } = event;
        self.0.push((shift_id, at_ms));
        self
    }
}

impl Slice for Name {
    const NAME: &'static str = "name";
    type Context = Rooms;
    type State = Shifts;
    type Writes = Opened;
    type Rejection = Never;

    fn decide(&self, Shifts(cleanings): &Shifts, _: &CommandContext) -> Result<Vec<Opened>, Never> {
        let shifts: Vec<u32> = cleanings.iter().map(|(shift, _)| *shift).collect();
        let last = cleanings.last().copied().unwrap_or_default();
        let name = match self.after {
            After::Last => last.0.to_string(),
            After::Sum => shifts.iter().sum::<u32>().to_string(),
            After::Time => last.1.to_string(),
        };
        DECIDED.with_borrow_mut(|decided| decided.insert(shifts));
        Ok(vec![Opened { name }])
    }
}

/// The command on the rooms r1 to r9.
pub(crate) fn name(after: After) -> Name {
    Name { room_ids: (1..10).map(|n| id(&format!("r{n}"))).collect(), after }
}

pub(crate) fn named(name: impl ToString) -> [Opened; 1] {
    [Opened { name: name.to_string() }]
}

/// Runs the case. Returns the decided orders of cleanings, and why the case failed.
pub(crate) fn run(case: Case<Name>) -> (Vec<Vec<u32>>, Option<String>) {
    DECIDED.take();
    let check = || block_on(case.check_in_memory());
    let failed = catch_unwind(AssertUnwindSafe(check)).err();
    let failed = failed.map(|why| *why.downcast::<String>().expect("a text"));
    (DECIDED.take().into_iter().collect(), failed)
}

#[test]
fn a_decision_that_depends_on_the_order_of_partitions_fails_and_names_the_orders() {
    let facts = || events![cleaned("r1", 1), cleaned("r2", 2)];
    let (_, failed) = run(given(facts()).when(name(After::Last)).then(named(2)));
    let failed = failed.unwrap();
    let (one, two) = ("Cleaned roomId:r1/1", "Cleaned roomId:r2/1");
    assert!(failed.starts_with("case at shared/core/tests/core/orders.rs:"), "{failed}");
    for line in [
        format!("  - after {one}, {two}"),
        format!("  + after {two}, {one}"),
        r#"  -         "name": "2""#.to_owned(),
        r#"  +         "name": "1""#.to_owned(),
    ] {
        assert!(failed.lines().any(|found| found.trim_end() == line), "{line}\n{failed}");
    }
    let (orders, failed) = run(given(facts()).when(name(After::Sum)).then(named(3)));
    assert_eq!((orders, failed), (vec![vec![1, 2], vec![2, 1]], None));
}

#[test]
fn the_order_within_a_partition_stays() {
    let facts = events![cleaned("r1", 1), cleaned("r2", 2), cleaned("r1", 3)];
    let (orders, failed) = run(given(facts).when(name(After::Sum)).then(named(6)));
    assert_eq!((orders, failed), (vec![vec![1, 2, 3], vec![1, 3, 2], vec![2, 1, 3]], None));
    let facts = events![cleaned("r1", 1), cleaned("r1", 2)];
    assert_eq!(run(given(facts).when(name(After::Last)).then(named(2))).1, None);
}

#[test]
fn facts_separated_by_a_wait_stay_in_order() {
    let case = |ms| {
        let facts = given(events![cleaned("r1", 1)]).wait(ms).and(events![cleaned("r2", 2)]);
        run(facts.when(name(After::Last)).then(named(2)))
    };
    assert_eq!(case(1), (vec![vec![1, 2]], None));
    assert!(case(0).1.is_some());
}

#[test]
fn a_decision_does_not_differ_by_the_milliseconds_between_facts_of_one_moment() {
    let facts = events![cleaned("r1", 1), cleaned("r2", 2)];
    let last = ringfence_core::kit::BEGIN_MS + 1;
    let (orders, failed) = run(given(facts).when(name(After::Time)).then(named(last)));
    assert_eq!((orders.len(), failed), (2, None));
}

#[test]
fn facts_that_the_decision_does_not_read_are_left_out() {
    let facts = events![booked("r1", "g1"), cleaned("r1", 1), booked("r2", "g1"), cleaned("r3", 2)];
    let (orders, _) = run(given(facts).when(name(After::Sum)).then(named(3)));
    assert_eq!(orders, [[1, 2], [2, 1]]);
}

#[test]
fn up_to_a_hundred_orders_are_tried_including_the_reverse_one() {
    for (rooms, tried) in [(4, 24), (5, 100), (9, 100)] {
        let facts = (1..=rooms).map(|n| cleaned(&format!("r{n}"), n).into());
        let sum = rooms * (rooms + 1) / 2;
        let (orders, failed) = run(given(facts).when(name(After::Sum)).then(named(sum)));
        assert_eq!((orders.len(), failed), (tried, None));
        assert!(orders.contains(&(1..=rooms).rev().collect()));
    }
}

/// Opens a house named after the rooms of a guest, in the order in which they were booked.
#[derive(Clone, Debug, PartialEq, Command)]
struct List {
    #[tag(cross_partition)]
    guest_id: GuestId,
}

#[derive(Reads)]
enum Bookings {
    Booked { room_id: RoomId },
}

/// The names of the rooms.
#[derive(Default)]
struct Names(String);

impl State for Names {
    type Reads = Bookings;

    fn evolve(self, event: Bookings) -> Self {
        let Bookings::Booked { room_id } = event;
        Self(format!("{}{room_id} ", self.0))
    }
}

impl Slice for List {
    const NAME: &'static str = "list";
    type Context = Rooms;
    type State = Names;
    type Writes = Opened;
    type Rejection = Never;

    fn decide(&self, Names(rooms): &Names, _: &CommandContext) -> Result<Vec<Opened>, Never> {
        Ok(vec![Opened { name: rooms.clone() }])
    }

    fn cases() -> Vec<Case<Self>> {
        let facts = events![booked("r1", "g1"), booked("r2", "g1"), booked("r3", "g1")];
        vec![given(facts).when(Self { guest_id: id("g1") }).then(named("r1 r2 r3 "))]
    }
}

#[test]
fn the_order_of_events_that_share_a_fence_stays() {
    ringfence_core::kit::check_in_memory::<List>();
}
