//! Commands under an idempotency key, and what their events carry.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::join;
use futures::stream::{BoxStream, StreamExt, once};
use ringfence::prelude::*;
use ringfence::{Envelope, Metadata};
use ringfence_aggregate_log::{
    AggregateContext, AggregateError, AggregateKey, AggregateSlice, CommandError, Draft, Executed,
    GetEvents, Memory, Others, Place, Push, PushEvent, PushEventGroup, Range, StoredEvent, Table,
    To, handle,
};
use ringfence_dynamo::wire::Fault;
use ringfence_dynamo::{Clock, Retry};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::customers::{Customer, CustomerEvent, Customers, added, customer, points, registered};
use crate::stack::{NOW_MS, Stack, events};

/// What a command writes to.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Target {
    /// Its own customer.
    Own,
    /// Its own customer and Bob.
    Both,
    /// Its own customer, and the customer whose id is the own customer's name.
    Friend,
    /// Bob alone.
    Other,
}

/// Adds points to the customers of its target.
#[derive(Clone, Debug, Command)]
struct Add {
    customer_id: String,
    target: Target,
    points: i64,
    #[serde(skip)]
    metadata: Option<Value>,
}

impl Slice for Add {
    const NAME: &'static str = "add";
    type Context = Customers;
    /// The id of the other customer, if there is one.
    type State = Option<String>;
    type Writes = To<CustomerEvent>;
    type Rejection = Never;

    fn decide(
        &self,
        other: &Option<String>,
        _: &CommandContext,
    ) -> Result<Vec<To<CustomerEvent>>, Never> {
        let draft = Draft { metadata: self.metadata.clone(), ..points(self.points).into() };
        let other = other.as_ref().map(|other| To::other(other, draft.clone()));
        let own = (!matches!(self.target, Target::Other)).then(|| draft.into());
        Ok(own.into_iter().chain(other).collect())
    }
}

impl AggregateSlice for Add {
    fn aggregate_id(&self) -> String {
        self.customer_id.clone()
    }

    async fn load<L: GetEvents>(
        &self,
        own: Option<Customer>,
        others: &Others<'_, L, Customers>,
    ) -> Result<Option<String>, AggregateError> {
        let other = match self.target {
            Target::Own => return Ok(None),
            Target::Both | Target::Other => "bob".to_owned(),
            Target::Friend => own.unwrap_or_default().name,
        };
        others.get(&other).await?;
        Ok(Some(other))
    }
}

fn of(customer: &str, target: Target, points: i64) -> Add {
    Add { customer_id: customer.to_owned(), target, points, metadata: None }
}

/// Adds points to Ada's, at least.
fn add(target: Target, points: i64) -> Add {
    of("ada", target, points)
}

fn keyed(idempotency_key: &str) -> Envelope {
    Envelope { idempotency_key: Some(idempotency_key.to_owned()), ..Envelope::default() }
}

async fn run(
    log: &(impl GetEvents + PushEventGroup),
    command: &Add,
    envelope: &Envelope,
) -> Executed<Never> {
    handle(log, command, envelope, Retry::default()).await
}

/// The places of the events of an accepted command, and whether they were there before.
#[track_caller]
fn accepted(executed: Executed<Never>) -> (Vec<String>, bool) {
    let events = executed.outcome.unwrap_or_else(|error| panic!("{error:?}"));
    let place = |event: &StoredEvent| format!("{} {}", event.key.id(), event.version.number());
    (events.iter().map(place).collect(), executed.repeated)
}

fn first<const N: usize>(places: [&str; N]) -> (Vec<String>, bool) {
    (places.map(str::to_owned).to_vec(), false)
}

fn repeated<const N: usize>(places: [&str; N]) -> (Vec<String>, bool) {
    (places.map(str::to_owned).to_vec(), true)
}

#[track_caller]
fn invalid(executed: Executed<Never>) -> String {
    match executed.outcome {
        Err(CommandError::Log(AggregateError::Invalid(why))) => why,
        other => panic!("{other:?}"),
    }
}

/// A table in which Ada has this many events.
async fn filled(events: u64) -> (Stack, Table) {
    let stack = Stack::start().await;
    let log = stack.table();
    for _ in 0..events {
        log.push_event(&customer("ada"), Place::End, added(1)).await.expect("pushed");
    }
    stack.operations();
    (stack, log)
}

async fn count(log: &impl GetEvents, id: &str) -> usize {
    events(log, &customer(id), Range::default()).await.len()
}

async fn name(log: &Table, name: &str) {
    let ada = Customers::get_aggregate(log, "ada", None).await.expect("a read");
    Customers::push_event(log, ada, registered(name)).await.expect("pushed");
}

#[tokio::test]
async fn a_repeat_is_known_although_the_command_would_push_to_another_aggregate_now() {
    let (_stack, log) = filled(0).await;
    name(&log, "bob").await;
    let to_friend = add(Target::Friend, 1);
    assert_eq!(accepted(run(&log, &to_friend, &keyed("k")).await), first(["ada 2", "bob 1"]));
    name(&log, "eve").await;
    // It names those of its events that it has read.
    assert_eq!(accepted(run(&log, &to_friend, &keyed("k")).await), repeated(["ada 2"]));
    assert_eq!((count(&log, "bob").await, count(&log, "eve").await), (1, 0));
    assert_eq!(accepted(run(&log, &to_friend, &keyed("l")).await), first(["ada 4", "eve 1"]));
}

#[tokio::test]
async fn a_repeat_that_reads_its_aggregate_twice_names_each_event_once() {
    let (_stack, log) = filled(0).await;
    name(&log, "ada").await;
    let to_herself = add(Target::Friend, 1);
    assert_eq!(accepted(run(&log, &to_herself, &keyed("k")).await), first(["ada 2", "ada 3"]));
    assert_eq!(accepted(run(&log, &to_herself, &keyed("k")).await), repeated(["ada 2", "ada 3"]));
}

#[tokio::test]
async fn events_of_another_aggregate_alone_are_refused() {
    let (stack, log) = filled(1).await;
    for envelope in [keyed("k"), Envelope::default()] {
        let why = invalid(run(&log, &add(Target::Other, 1), &envelope).await);
        let expected = "a command that writes to CUSTOMERS#bob must also write to its own aggregate \
                        CUSTOMERS#ada, where a repeat is known";
        assert_eq!(why, expected);
        assert_eq!(stack.operations(), ["Query", "Query"]);
    }
}

#[tokio::test]
async fn a_group_is_found_in_each_of_its_aggregates() {
    let (stack, log) = filled(2).await;
    let both = add(Target::Both, 1);
    assert_eq!(accepted(run(&log, &both, &keyed("k")).await), first(["ada 3", "bob 1"]));
    assert_eq!(stack.operations(), ["Query", "Query", "TransactWriteItems"]);
    assert_eq!(accepted(run(&log, &both, &keyed("k")).await), repeated(["ada 3", "bob 1"]));
    assert_eq!(stack.operations(), ["Query", "Query"]);
}

#[tokio::test]
async fn of_two_groups_under_one_key_the_second_finds_the_first() {
    let (stack, log) = filled(1).await;
    let barrier = Arc::new(Barrier::new(2));
    for pass in 0..2 {
        stack.wire.inject("TransactWriteItems", pass, Fault::Meet(barrier.clone()));
    }
    let (both, envelope) = (add(Target::Both, 1), keyed("k"));
    let (one, other) = join(run(&log, &both, &envelope), run(&log, &both, &envelope)).await;
    let (one, other) = (accepted(one), accepted(other));
    assert_eq!((&one.0, &other.0), (&first(["ada 2", "bob 1"]).0, &one.0));
    assert_ne!(one.1, other.1, "one of them repeats the other");
    assert_eq!(count(&log, "bob").await, 1);
}

/// A log on which someone else runs the command just before Bob is read.
struct Between<'l> {
    log: &'l Memory,
    command: Add,
    came: AtomicBool,
}

impl GetEvents for Between<'_> {
    fn get_events<'a>(
        &'a self,
        key: &'a AggregateKey,
        range: Range,
    ) -> BoxStream<'a, Result<StoredEvent, AggregateError>> {
        let comes = *key == customer("bob") && !self.came.swap(true, Ordering::Relaxed);
        let other = async move {
            if comes {
                accepted(run(self.log, &self.command, &keyed("k")).await);
            }
        };
        once(other).flat_map(move |()| self.log.get_events(key, range)).boxed()
    }
}

impl PushEventGroup for Between<'_> {
    async fn push_event_group(&self, group: Vec<Push>) -> Result<Vec<StoredEvent>, AggregateError> {
        self.log.push_event_group(group).await
    }
}

#[tokio::test]
async fn an_earlier_run_that_came_between_two_reads_is_named_whole() {
    let log = Memory::new(Clock::fixed(NOW_MS));
    let command = add(Target::Both, 1);
    let between = Between { log: &log, command: command.clone(), came: AtomicBool::new(false) };
    assert_eq!(accepted(run(&between, &command, &keyed("k")).await), repeated(["ada 1", "bob 1"]));
    assert_eq!((count(&log, "ada").await, count(&log, "bob").await), (1, 1));
}

#[tokio::test]
async fn the_scope_of_a_key_is_the_slice_and_the_commands_own_aggregate() {
    let (_stack, log) = filled(0).await;
    let of_ada = add(Target::Both, 1);
    assert_eq!(accepted(run(&log, &of_ada, &keyed("k")).await), first(["ada 1", "bob 1"]));
    for other in [add(Target::Both, 2), add(Target::Own, 1)] {
        let other = run(&log, &other, &keyed("k")).await;
        let reused = matches!(
            &other.outcome,
            Err(CommandError::Log(AggregateError::KeyReused(reused))) if reused.key == "k"
        );
        assert!(reused, "{other:?}");
    }
    assert_eq!((count(&log, "ada").await, count(&log, "bob").await), (1, 1));
    // Bob has an event of Ada's command under that key. It is not of his own command.
    for (own, places) in [("bob", ["bob 2"]), ("eve", ["eve 1"])] {
        let command = of(own, Target::Own, 1);
        assert_eq!(accepted(run(&log, &command, &keyed("k")).await), first(places));
        assert_eq!(accepted(run(&log, &command, &keyed("k")).await), repeated(places));
    }
}

#[tokio::test]
async fn a_repeat_is_known_whatever_event_the_metadata_was_copied_from() {
    let (_stack, log) = filled(0).await;
    assert!(!accepted(run(&log, &add(Target::Both, 1), &keyed("k")).await).1);
    let copied = events(&log, &customer("bob"), Range::default()).await.remove(0).metadata;
    let of_bob = Add { metadata: copied.clone(), ..of("bob", Target::Own, 1) };
    assert_eq!(accepted(run(&log, &of_bob, &keyed("l")).await), first(["bob 2"]));
    assert_eq!(accepted(run(&log, &of_bob, &keyed("l")).await), repeated(["bob 2"]));
    let of_eve = Add { metadata: copied, ..of("eve", Target::Both, 1) };
    assert_eq!(accepted(run(&log, &of_eve, &keyed("l")).await), first(["eve 1", "bob 3"]));
    assert_eq!(accepted(run(&log, &of_eve, &keyed("l")).await), repeated(["eve 1", "bob 3"]));
}

#[tokio::test]
async fn a_repeat_whose_own_aggregate_is_read_in_part_is_not_answered() {
    let (stack, log) = filled(0).await;
    let both = add(Target::Both, 1);
    assert_eq!(accepted(run(&log, &both, &keyed("k")).await), first(["ada 1", "bob 1"]));
    log.push_event(&customer("ada"), Place::End, added(1)).await.expect("pushed");
    stack.wire.inject("Query", 0, Fault::page(1));
    stack.wire.inject("Query", 1, Fault::error("AccessDeniedException"));
    let failed = run(&log, &both, &keyed("k")).await;
    let is_store = matches!(&failed.outcome, Err(CommandError::Log(AggregateError::Store(_))));
    assert!(is_store && !failed.repeated, "{failed:?}");
    assert_eq!(accepted(run(&log, &both, &keyed("k")).await), repeated(["ada 1", "bob 1"]));
}

#[tokio::test]
async fn events_carry_the_envelopes_metadata_beside_their_own() {
    let (_stack, log) = filled(0).await;
    let mut metadata = Metadata::default();
    metadata.insert("correlationId", "walk-1").expect("no key of the log");
    metadata.insert("principal", "ada").expect("no key of the log");
    let envelope = Envelope { metadata, ..Envelope::default() };
    let carried = async |own: Option<Value>, envelope: &Envelope| {
        let add = Add { metadata: own, ..add(Target::Both, 1) };
        let executed = run(&log, &add, envelope).await;
        executed.outcome.map(|events| {
            assert_eq!(events[0].metadata, events[1].metadata);
            events[0].metadata.clone()
        })
    };
    let added = carried(None, &envelope).await.expect("pushed");
    assert_eq!(added, Some(json!({ "correlationId": "walk-1", "principal": "ada" })));
    let own = json!({ "correlationId": "mine", "weight": 3 });
    let added = carried(Some(own), &envelope).await.expect("pushed");
    let expected = json!({ "correlationId": "mine", "weight": 3, "principal": "ada" });
    assert_eq!(added, Some(expected));
    let text = Some(json!("text"));
    let refused = carried(text.clone(), &envelope).await;
    assert!(matches!(refused, Err(CommandError::Log(AggregateError::Invalid(_)))), "{refused:?}");
    assert_eq!(carried(text.clone(), &Envelope::default()).await.expect("pushed"), text);
    assert_eq!(carried(None, &Envelope::default()).await.expect("pushed"), None);
}
