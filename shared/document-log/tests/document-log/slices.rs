//! Slices on baskets, and their cases: in memory, and on DynamoDB however the state is stored.

use futures::executor::block_on;
use ringfence::kit::{InMemory, check_in_memory};
use ringfence::prelude::*;
use ringfence_document_log::kit::OnDocuments;
use ringfence_document_log::{Cache, DocumentLog, DocumentSlice, Documents, TipLimits};
use ringfence_dynamo::Clock;
use serde::Serialize;

use crate::basket::{Basket, Event, State, accesses, added, baskets};
use crate::stack::{NOW_MS, Stack, events_max};

/// Puts one more of a thing in, unless the basket is closed.
#[derive(Command)]
pub(crate) struct Add {
    pub(crate) basket_id: String,
    pub(crate) sku: u32,
}

/// Puts a thing in unless it is there.
#[derive(Command)]
pub(crate) struct Ensure {
    pub(crate) basket_id: String,
    pub(crate) sku: u32,
}

#[derive(Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code")]
pub(crate) enum Rejection {
    #[error("the basket is closed")]
    BasketClosed,
}

impl Slice for Add {
    const NAME: &'static str = "add";
    type Context = Basket;
    type State = State;
    type Writes = Event;
    type Rejection = Rejection;

    fn decide(&self, state: &State, _: &CommandContext) -> Result<Vec<Event>, Rejection> {
        state.add(self.sku, 1).map_err(|_| Rejection::BasketClosed)
    }

    fn cases() -> Vec<Case<Self>> {
        let add = || Add { basket_id: "a".to_owned(), sku: 7 };
        vec![
            given([]).when(add()).then([added(7)]),
            given([added(7), Event::Removed { sku: 7 }]).when(add()).then([added(7)]),
            given([]).and_of("b", [Event::Closed]).when(add()).then([added(7)]),
            given([added(1), Event::Closed]).when(add()).then_rejected(Rejection::BasketClosed),
        ]
    }
}

impl StreamSlice for Add {
    fn stream_id(&self) -> String {
        self.basket_id.clone()
    }
}

impl Slice for Ensure {
    const NAME: &'static str = "ensure";
    type Context = Basket;
    type State = State;
    type Writes = Event;
    type Rejection = Rejection;

    fn decide(&self, state: &State, _: &CommandContext) -> Result<Vec<Event>, Rejection> {
        state.ensure(self.sku).map_err(|_| Rejection::BasketClosed)
    }

    fn cases() -> Vec<Case<Self>> {
        let ensure = || Ensure { basket_id: "a".to_owned(), sku: 7 };
        let removed = || Event::Removed { sku: 7 };
        vec![
            given([added(1)]).when(ensure()).then([added(7)]),
            given([added(7), added(1)]).when(ensure()).then_nothing(),
            given([added(7), added(1), removed()]).when(ensure()).then([added(7)]),
            given([added(7), Event::Closed]).when(ensure()).then_nothing(),
            given([Event::Closed]).when(ensure()).then_rejected(Rejection::BasketClosed),
        ]
    }
}

impl StreamSlice for Ensure {
    fn stream_id(&self) -> String {
        self.basket_id.clone()
    }
}

/// Runs each case on streams of its own, in every access, with calves of one event and without calves.
async fn check<S: DocumentSlice<Context = Basket>>(stack: &Stack) {
    for (l, limits) in [events_max(1), TipLimits::default()].into_iter().enumerate() {
        for (a, access) in accesses().into_iter().enumerate() {
            let clock = Clock::fixed(NOW_MS);
            let log = DocumentLog::new(stack.store(), clock.clone()).with_limits(limits);
            let category = baskets(log, access(), Cache::none());
            for (c, case) in S::cases().iter().enumerate() {
                let prefix = format!("{}-{l}-{a}-{c}-", S::NAME);
                let log = OnDocuments { category: &category, prefix, clock: clock.clone() };
                case.check(&log).await;
            }
        }
    }
}

#[test]
fn cases_hold_in_memory() {
    check_in_memory::<Add>();
    check_in_memory::<Ensure>();
}

#[tokio::test]
async fn cases_hold_on_dynamodb_however_the_state_is_stored() {
    let stack = Stack::start().await;
    check::<Add>(&stack).await;
    check::<Ensure>(&stack).await;
}

#[test]
#[should_panic(expected = "case at shared/document-log/tests/document-log/slices.rs")]
fn a_case_that_does_not_hold_names_its_place() {
    let command = Add { basket_id: "a".to_owned(), sku: 1 };
    block_on(Documents::check(&given([Event::Closed]).when(command).then([added(1)])));
}
