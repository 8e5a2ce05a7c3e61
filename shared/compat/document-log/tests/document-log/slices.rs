//! Slices on baskets, and their cases: in memory, and on DynamoDB with every access.

use futures::executor::block_on;
use ringfence_aws::Clock;
use ringfence_core::prelude::*;
use ringfence_document_log::kit::{self, check_in_memory};
use ringfence_document_log::{Cache, DocumentLog, TipLimits};
use serde::Serialize;

use crate::basket::{Added, Basket, Closed, Event, State, accesses, added, baskets, of};
use crate::stack::{NOW_MS, events_max, in_process};

/// Puts one more of a thing in, unless the basket is closed.
#[derive(Command)]
pub(crate) struct Add {
    #[tag(partition)]
    pub(crate) basket_id: String,
    pub(crate) sku: u32,
}

/// Puts a thing in unless it is there.
#[derive(Command)]
pub(crate) struct Ensure {
    #[tag(partition)]
    pub(crate) basket_id: String,
    pub(crate) sku: u32,
}

#[derive(Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code")]
pub(crate) enum Rejection {
    #[error("the basket is closed")]
    BasketClosed,
}

fn one(basket: &str, sku: u32) -> Added {
    Added { basket_id: basket.to_owned(), sku, quantity: 1 }
}

/// The events that a decision of a basket writes.
fn written(
    basket: &str,
    sku: u32,
    decided: Result<Vec<Event>, Closed>,
) -> Result<Vec<Added>, Rejection> {
    let events = decided.map_err(|Closed| Rejection::BasketClosed)?;
    Ok(events.iter().map(|_| one(basket, sku)).collect())
}

impl Slice for Add {
    const NAME: &'static str = "add";
    type Context = Basket;
    type State = State;
    type Writes = Added;
    type Rejection = Rejection;

    fn decide(&self, state: &State, _: &CommandContext) -> Result<Vec<Added>, Rejection> {
        let Self { basket_id, sku } = self;
        written(basket_id, *sku, state.add(*sku, 1))
    }

    fn cases() -> Vec<Case<Self>> {
        let add = || Add { basket_id: "a".to_owned(), sku: 7 };
        vec![
            given([]).when(add()).then([one("a", 7)]),
            given(of("a", vec![added(7), Event::Removed { sku: 7 }]))
                .when(add())
                .then([one("a", 7)]),
            given([Event::Closed.of("b")]).when(add()).then([one("a", 7)]),
            given(of("a", vec![added(1), Event::Closed]))
                .when(add())
                .then_rejected(Rejection::BasketClosed),
        ]
    }
}

impl Slice for Ensure {
    const NAME: &'static str = "ensure";
    type Context = Basket;
    type State = State;
    type Writes = Added;
    type Rejection = Rejection;

    fn decide(&self, state: &State, _: &CommandContext) -> Result<Vec<Added>, Rejection> {
        let Self { basket_id, sku } = self;
        written(basket_id, *sku, state.ensure(*sku))
    }

    fn cases() -> Vec<Case<Self>> {
        let ensure = || Ensure { basket_id: "a".to_owned(), sku: 7 };
        let removed = || Event::Removed { sku: 7 };
        let a = |events| of("a", events);
        vec![
            given(a(vec![added(1)])).when(ensure()).then([one("a", 7)]),
            given(a(vec![added(7), added(1)])).when(ensure()).then_nothing(),
            given(a(vec![added(7), added(1), removed()])).when(ensure()).then([one("a", 7)]),
            given(a(vec![added(7), Event::Closed])).when(ensure()).then_nothing(),
            given(a(vec![Event::Closed])).when(ensure()).then_rejected(Rejection::BasketClosed),
        ]
    }
}

/// Runs each case on a new table, with every access, with calves of one event and without calves.
async fn check<S: Slice<Context = Basket, State = State>>() {
    for limits in [events_max(1), TipLimits::default()] {
        for access in accesses() {
            for case in S::cases() {
                let ((store, _), clock) = (in_process(), Clock::fixed(NOW_MS));
                let log = DocumentLog::new(store, clock.clone()).with_limits(limits);
                let category = baskets(log, access(), Cache::none());
                case.check(&category, &|now_ms| clock.set(now_ms)).await;
            }
        }
    }
}

#[test]
fn cases_hold_in_memory() {
    check_in_memory::<Add, _>();
    check_in_memory::<Ensure, _>();
}

#[tokio::test]
async fn cases_hold_on_dynamodb_with_every_access() {
    check::<Add>().await;
    check::<Ensure>().await;
}

#[test]
#[should_panic(expected = "case at shared/compat/document-log/tests/document-log/slices.rs")]
fn a_case_that_does_not_hold_names_its_place() {
    let command = Add { basket_id: "a".to_owned(), sku: 1 };
    let case = given([Event::Closed.of("a")]).when(command).then([one("a", 1)]);
    block_on(kit::check(&case));
}
