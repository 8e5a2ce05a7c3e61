//! Runs the cases of slices, in memory and on DynamoDB.

use futures::executor::block_on;
use ringfence_aggregate_log::AggregateLog;
use ringfence_core::kit::check_in_memory;
use ringfence_core::prelude::*;
use ringfence_core::{HandleError, OnEvents, Slice, SliceError};

use crate::customers::{
    AddPoints, Customers, Deactivate, Points, PointsAdded, Register, Spend, Transfer, add, catalog,
    envelope, points, registered,
};
use crate::stack::{accepted, in_process, run, run_with};

/// Runs each case on a new table, and checks the table afterwards.
async fn check<S: Slice>() {
    for case in S::cases() {
        let (table, clock) = in_process();
        let log = AggregateLog::new(table, catalog(), clock.clone());
        let on = OnEvents::new(log, catalog(), 0);
        case.check(&on, &|now_ms| clock.set(now_ms)).await;
        assert!(on.log().table().verify(&|_| {}).await.expect("a report").wrong.is_empty());
    }
}

#[test]
fn cases_hold_in_memory() {
    check_in_memory::<Register>();
    check_in_memory::<AddPoints>();
    check_in_memory::<Deactivate>();
    check_in_memory::<Spend>();
    check_in_memory::<Transfer>();
}

#[tokio::test]
async fn cases_hold_on_dynamodb() {
    check::<Register>().await;
    check::<AddPoints>().await;
    check::<Deactivate>().await;
    check::<Spend>().await;
    check::<Transfer>().await;
}

#[test]
#[should_panic(expected = "case at shared/compat/aggregate-log/tests/aggregate-log/cases.rs")]
fn a_case_that_does_not_hold_names_its_place() {
    let case = given(events![registered("ada")]).when(add("ada", &[1])).then_nothing();
    block_on(case.check_in_memory());
}

/// Its events have two tags.
#[derive(Event)]
struct CardGiven {
    #[tag(partition)]
    customer_id: String,
    card_id: String,
}

/// Adds a point to each of a list of customers.
#[derive(Command)]
struct GiveAll {
    customer_ids: Vec<String>,
}

impl Slice for GiveAll {
    const NAME: &'static str = "give-all";
    type Context = Customers;
    type State = Points;
    type Writes = PointsAdded;
    type Rejection = Never;

    fn decide(&self, _: &Points, _: &CommandContext) -> Result<Vec<PointsAdded>, Never> {
        Ok(self.customer_ids.iter().map(|customer| points(customer, 1)).collect())
    }
}

#[tokio::test]
async fn events_and_commands_that_do_not_name_their_aggregates_are_refused() {
    let declared = Catalog::of_streams("CUSTOMERS", [CardGiven::SCHEMA]).map(drop);
    let event_type = "CardGiven".into();
    assert_eq!(declared, Err(CatalogError::NotOfOneStream { event_type }));
    let slice = ringfence_core::check::<GiveAll>(&catalog());
    let refused = SliceError::NoRecord { slice: "give-all" };
    assert_eq!(slice, Err(refused.clone()));
    // An unchecked slice is refused under a key.
    let (table, clock) = in_process();
    let log = AggregateLog::new(table, catalog(), clock);
    let give = GiveAll { customer_ids: vec!["ada".to_owned()] };
    assert_eq!(accepted(&run(&log, &give, None).await), ["CUSTOMERS#ada 1"]);
    let error = run_with(&log, &give, &envelope(Some("k"))).await.expect_err("it has no record");
    assert!(matches!(&error, HandleError::Slice(found) if *found == refused), "{error:?}");
}
