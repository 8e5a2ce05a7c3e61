//! Commands under an idempotency key, and the metadata of their events.

use std::sync::Arc;

use futures::future::join;
use ringfence_aggregate_log::{AggregateLog, PushPlace, Range};
use ringfence_aws::wire::{Edit, Fault};
use ringfence_core::prelude::*;
use ringfence_core::{
    Decisions, Envelope, HandleError, Handled, LogError, Metadata, Slice, handle,
};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::customers::{
    Customers, Points, PointsAdded, add, added, catalog, customer, points, register,
};
use crate::stack::{NOW_MS, Stack, accepted, events, run_with};

/// Adds points to customers.
#[derive(Clone, Debug, Command)]
enum Give {
    /// To one customer.
    One {
        #[tag(partition)]
        customer_id: String,
        points: i64,
    },
    /// To two customers.
    Both {
        #[tag(key = "customerId", partition)]
        one: String,
        #[tag(key = "customerId", partition)]
        other: String,
        points: i64,
    },
    /// To the first of two customers; the other one is only read.
    First {
        #[tag(key = "customerId", partition)]
        first: String,
        #[tag(key = "customerId", partition)]
        other: String,
    },
}

impl Slice for Give {
    const NAME: &'static str = "give";
    type Context = Customers;
    type State = Points;
    type Writes = PointsAdded;
    type Rejection = Never;

    fn decide(&self, _: &Points, _: &CommandContext) -> Result<Vec<PointsAdded>, Never> {
        Ok(match self {
            Self::One { customer_id, points: given } => vec![points(customer_id, *given)],
            Self::Both { one, other, points: given } => {
                vec![points(one, *given), points(other, *given)]
            }
            Self::First { first, .. } => vec![points(first, 1)],
        })
    }
}

fn one(customer: &str, points: i64) -> Give {
    Give::One { customer_id: customer.to_owned(), points }
}

fn both(one: &str, other: &str, points: i64) -> Give {
    Give::Both { one: one.to_owned(), other: other.to_owned(), points }
}

/// Adds points to a customer that the command does not read.
#[derive(Clone, Debug, Command)]
struct GiveUnread {
    #[tag(partition)]
    customer_id: String,
    to: String,
}

impl Slice for GiveUnread {
    const NAME: &'static str = "give-unread";
    type Context = Customers;
    type State = Points;
    type Writes = PointsAdded;
    type Rejection = Never;

    fn decide(&self, _: &Points, _: &CommandContext) -> Result<Vec<PointsAdded>, Never> {
        Ok(vec![points(&self.to, 1)])
    }
}

/// An envelope with this key and nothing else.
fn keyed(idempotency_key: &str) -> Envelope {
    Envelope { idempotency_key: Some(idempotency_key.to_owned()), ..Envelope::default() }
}

async fn run<S: Slice>(log: &AggregateLog, command: &S, key: &str) -> Handled {
    run_with(log, command, &keyed(key)).await.unwrap_or_else(|error| panic!("{error:?}"))
}

/// The events of an accepted command without their store, and true if the command was repeated.
#[track_caller]
fn places(handled: &Handled) -> (String, bool) {
    (accepted(handled).join(", ").replace("CUSTOMERS#", ""), handled.repeated)
}

fn first(places: &str) -> (String, bool) {
    (places.to_owned(), false)
}

fn repeated(places: &str) -> (String, bool) {
    (places.to_owned(), true)
}

/// A table in which Ada has this many events.
async fn filled(events: u64) -> (Stack, AggregateLog) {
    let stack = Stack::start();
    let log = stack.log();
    for _ in 0..events {
        log.table().push_event(&customer("ada"), PushPlace::End, added(1)).await.expect("pushed");
    }
    stack.operations();
    (stack, log)
}

async fn count(log: &AggregateLog, id: &str) -> usize {
    events(log.table(), &customer(id), Range::default()).await.len()
}

#[tokio::test]
async fn a_repeat_that_names_one_aggregate_twice_names_each_event_once() {
    let (_stack, log) = filled(1).await;
    let to_herself = both("ada", "ada", 1);
    assert_eq!(places(&run(&log, &to_herself, "k").await), first("ada 2, ada 3"));
    assert_eq!(places(&run(&log, &to_herself, "k").await), repeated("ada 2, ada 3"));
}

#[tokio::test]
async fn an_event_of_an_aggregate_that_the_command_does_not_name_can_not_have_a_key() {
    let (stack, log) = filled(1).await;
    let command = GiveUnread { customer_id: "ada".to_owned(), to: "bob".to_owned() };
    let refused = run_with(&log, &command, &keyed("k")).await.expect_err("a repeat is not known");
    let message = refused.to_string();
    assert!(
        message.starts_with("give-unread writes PointsAdded to CUSTOMERS#bob, which"),
        "{message}"
    );
    assert_eq!(stack.operations(), ["Query"]);
    // Without a key, the event goes to the end, if the read events are still the newest.
    let handled = run_with(&log, &command, &Envelope::default()).await.expect("accepted");
    assert_eq!(places(&handled), first("bob 1"));
    assert_eq!(stack.operations(), ["Query", "Query", "TransactWriteItems"]);
}

#[tokio::test]
async fn a_group_is_found_in_each_of_its_aggregates() {
    let (stack, log) = filled(2).await;
    let command = both("ada", "bob", 1);
    assert_eq!(places(&run(&log, &command, "k").await), first("ada 3, bob 1"));
    assert_eq!(stack.operations(), ["Query", "Query", "TransactWriteItems"]);
    assert_eq!(places(&run(&log, &command, "k").await), repeated("ada 3, bob 1"));
    assert_eq!(stack.operations(), ["Query", "Query", "TransactGetItems"]);
}

#[tokio::test]
async fn an_aggregate_that_is_read_and_not_written_is_checked() {
    let (stack, log) = filled(2).await;
    let (catalog, decisions, envelope) = (catalog(), Decisions::new(1), Envelope::default());
    let command = Give::First { first: "bob".to_owned(), other: "ada".to_owned() };
    let give = async || {
        let handled = handle(&log, &catalog, &decisions, &command, &envelope).await;
        handled.unwrap_or_else(|error| panic!("{error:?}"))
    };
    assert_eq!(accepted(&give().await), ["CUSTOMERS#bob 1"]);
    let sent = stack.wire.take().pop().expect("the append");
    let checked = &sent.request["TransactItems"][1]["ConditionCheck"]["Key"];
    let expected = json!({ "aggregateId": { "S": "CUSTOMERS#ada" }, "version": { "N": "3" } });
    assert_eq!(*checked, expected, "{}", sent.request);
    // Another event of the aggregate is a conflict.
    stack.clock.set(NOW_MS + 1_000);
    log.table().push_event(&customer("ada"), PushPlace::At(3), added(1)).await.expect("pushed");
    stack.operations();
    let answer = give().await;
    assert_eq!(accepted(&answer), ["CUSTOMERS#bob 2"]);
    assert_eq!(
        answer.conflicts.iter().map(|over| over.as_str()).collect::<Vec<_>>(),
        ["CUSTOMERS#ada"]
    );
    assert_eq!(stack.operations(), ["TransactWriteItems", "Query", "TransactWriteItems"]);
}

#[tokio::test]
async fn the_second_of_two_groups_under_one_key_finds_the_first() {
    let (stack, log) = filled(1).await;
    let barrier = Arc::new(Barrier::new(2));
    for pass in 0..2 {
        stack.wire.inject("TransactWriteItems", pass, Fault::Meet(barrier.clone()));
    }
    let command = both("ada", "bob", 1);
    let (one, other) = join(run(&log, &command, "k"), run(&log, &command, "k")).await;
    let (one, other) = (places(&one), places(&other));
    assert_eq!((&*one.0, &other.0), ("ada 2, bob 1", &one.0));
    assert_ne!(one.1, other.1, "one of them repeats the other");
    assert_eq!(count(&log, "bob").await, 1);
}

#[tokio::test]
async fn a_repeat_names_all_events_of_an_earlier_run_between_its_two_reads() {
    let (stack, log) = filled(0).await;
    let command = both("ada", "bob", 1);
    assert_eq!(places(&run(&log, &command, "k").await), first("ada 1, bob 1"));
    stack.operations();
    // Bob is read before that run.
    for read in 0..2 {
        let before = Edit::new(|answer| {
            let items = answer["Items"].as_array_mut().expect("items");
            items.retain(|item| item["aggregateId"]["S"] != "CUSTOMERS#bob");
        });
        stack.wire.inject("Query", read, Fault::Reply(before));
    }
    assert_eq!(places(&run(&log, &command, "k").await), repeated("ada 1, bob 1"));
    let looks = ["TransactGetItems", "Query", "TransactGetItems"];
    assert_eq!(stack.operations()[2..], looks);
    assert_eq!((count(&log, "ada").await, count(&log, "bob").await), (1, 1));
}

#[tokio::test]
async fn the_scope_of_a_key_is_the_slice_and_the_aggregates_that_the_command_reads() {
    let (_stack, log) = filled(0).await;
    assert_eq!(places(&run(&log, &both("ada", "bob", 1), "k").await), first("ada 1, bob 1"));
    // Bob also has an event under that key, so the key is used there too.
    for other in [both("ada", "bob", 2), one("ada", 1), one("bob", 1), both("bob", "eve", 1)] {
        let refused = run_with(&log, &other, &keyed("k")).await;
        let reused = matches!(
            &refused,
            Err(HandleError::Log(LogError::KeyReused(reused))) if reused.key == "k"
        );
        assert!(reused, "{refused:?}");
    }
    assert_eq!((count(&log, "ada").await, count(&log, "bob").await), (1, 1));
    let of_eve = one("eve", 1);
    assert_eq!(places(&run(&log, &of_eve, "k").await), first("eve 1"));
    assert_eq!(places(&run(&log, &of_eve, "k").await), repeated("eve 1"));
    // In another slice, the same key is another key.
    run(&log, &register("ada"), "k").await;
    assert_eq!(places(&run(&log, &add("ada", &[1]), "k").await), first("ada 3"));
}

#[tokio::test]
async fn a_repeat_is_known_whatever_event_the_metadata_was_copied_from() {
    let (_stack, log) = filled(0).await;
    assert_eq!(places(&run(&log, &both("ada", "bob", 1), "k").await), first("ada 1, bob 1"));
    let copied = events(log.table(), &customer("bob"), Range::default()).await.remove(0).metadata;
    let copied = copied.expect("the marks of the command");
    let metadata: Metadata = serde_json::from_value(copied).expect("no key of the log");
    for (key, command, expected) in
        [("l", one("bob", 1), "bob 2"), ("m", both("eve", "bob", 1), "eve 1, bob 3")]
    {
        let envelope = Envelope { metadata: metadata.clone(), ..keyed(key) };
        for expected in [first(expected), repeated(expected)] {
            let handled = run_with(&log, &command, &envelope).await.expect("handled");
            assert_eq!(places(&handled), expected);
        }
    }
}

#[tokio::test]
async fn a_repeat_that_reads_only_a_part_of_its_aggregate_gets_no_answer() {
    let (stack, log) = filled(0).await;
    let command = both("ada", "bob", 1);
    assert_eq!(places(&run(&log, &command, "k").await), first("ada 1, bob 1"));
    log.table().push_event(&customer("ada"), PushPlace::End, added(1)).await.expect("pushed");
    (0..2).for_each(|page| stack.wire.inject("Query", page, Fault::page(1)));
    stack.wire.inject("Query", 2, Fault::error("AccessDeniedException"));
    let failed = run_with(&log, &command, &keyed("k")).await;
    assert!(matches!(failed, Err(HandleError::Log(LogError::Store(_)))), "{failed:?}");
    assert_eq!(places(&run(&log, &command, "k").await), repeated("ada 1, bob 1"));
}

#[tokio::test]
async fn events_carry_the_envelopes_metadata_and_their_slice() {
    let (_stack, log) = filled(0).await;
    let carried = async |metadata: Metadata| {
        let envelope = Envelope { metadata, ..Envelope::default() };
        run_with(&log, &both("ada", "bob", 1), &envelope).await.expect("accepted");
        let mut carried = Vec::new();
        for id in ["ada", "bob"] {
            let newest = events(log.table(), &customer(id), Range::NEWEST).await.remove(0);
            carried.push(newest.metadata);
        }
        assert_eq!(carried[0], carried[1]);
        carried.remove(0)
    };
    let given = json!({ "correlationId": "walk-1", "principal": "ada", "weight": 3 });
    let added: Option<Value> =
        carried(serde_json::from_value(given.clone()).expect("no key of the log")).await;
    let mut named = given;
    named["slice"] = "give".into();
    assert_eq!(added, Some(named));
    assert_eq!(carried(Metadata::default()).await, Some(json!({ "slice": "give" })));
}
