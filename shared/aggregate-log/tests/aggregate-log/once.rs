//! Commands under an idempotency key, and what their events carry.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::join;
use futures::stream::{BoxStream, StreamExt, once};
use ringfence::{Context, Envelope, Metadata, Never};
use ringfence_aggregate_log::{
    Aggregate, AggregateError, AggregateKey, Command, CommandError, Decision, Draft, EventStore,
    Executed, GetEvents, Memory, Place, Push, PushEvent, PushEventGroup, Range, StoredEvent, Table,
    execute,
};
use ringfence_dynamo::wire::Fault;
use ringfence_dynamo::{Clock, Retry};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::stack::{CustomerEvent, Customers, NOW_MS, Stack, added, customer, events};

/// What a command pushes to.
#[derive(Clone, Copy, Debug, Serialize)]
enum To {
    /// Its own customer.
    Own,
    /// Its own customer and Bob, whom it reads.
    Both,
    /// Its own customer, and the one whom its own customer's name names.
    Friend,
    /// Its own customer and Bob, at a place that it has not read.
    At(u64),
    End,
    Forced,
    /// Bob alone.
    Other,
}

#[derive(Clone, Debug, Serialize)]
struct Add {
    own: &'static str,
    to: To,
    points: i64,
    #[serde(skip)]
    metadata: Option<Value>,
}

fn add(to: To, points: i64) -> Add {
    Add { own: "ada", to, points, metadata: None }
}

impl Command for Add {
    const NAME: &'static str = "add";
    type Store = Customers;
    type Rejection = Never;

    fn aggregate_id(&self) -> String {
        self.own.to_owned()
    }

    async fn handle<L: GetEvents>(
        &self,
        own: Aggregate<Customers>,
        log: &L,
        _: &Context,
    ) -> Result<Decision<CustomerEvent>, CommandError<Never>> {
        let draft = || Draft {
            metadata: self.metadata.clone(),
            ..CustomerEvent::PointsAdded { points: self.points }.into()
        };
        let read = async |id: &str| Customers::get_aggregate(log, id, None).await?.push([draft()]);
        let unread =
            |place| Ok(Push { key: customer("bob"), place, events: vec![draft().encode()?] });
        let other = match self.to {
            To::Own => return Ok(Decision::of([draft()])),
            To::Both => read("bob").await,
            To::Friend => read(&own.state.unwrap_or_default().name).await,
            To::At(version) => unread(Place::At(version)),
            To::End => unread(Place::End),
            To::Forced => unread(Place::Forced(1)),
            To::Other => return Ok(Decision::default().and(read("bob").await?)),
        };
        Ok(Decision::of([draft()]).and(other?))
    }
}

fn keyed(idempotency_key: &str) -> Envelope {
    Envelope { idempotency_key: Some(idempotency_key.to_owned()), ..Envelope::default() }
}

async fn run(
    log: &(impl GetEvents + PushEventGroup),
    command: &Add,
    envelope: &Envelope,
) -> Executed<Never> {
    execute(log, command, envelope, Retry::default()).await
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
    let named = CustomerEvent::Registered { name: name.to_owned() };
    Customers::push_event(log, ada, named).await.expect("pushed");
}

#[tokio::test]
async fn a_repeat_is_known_although_the_command_would_push_to_another_aggregate_now() {
    let (_stack, log) = filled(0).await;
    name(&log, "bob").await;
    let to_friend = add(To::Friend, 1);
    assert_eq!(accepted(run(&log, &to_friend, &keyed("k")).await), first(["ada 2", "bob 1"]));
    name(&log, "eve").await;
    // It names those of its events that it has read.
    assert_eq!(accepted(run(&log, &to_friend, &keyed("k")).await), repeated(["ada 2"]));
    assert_eq!((count(&log, "bob").await, count(&log, "eve").await), (1, 0));
    assert_eq!(accepted(run(&log, &to_friend, &keyed("l")).await), first(["ada 4", "eve 1"]));
}

#[tokio::test]
async fn a_push_to_other_aggregates_alone_is_refused() {
    let (stack, log) = filled(1).await;
    for envelope in [keyed("k"), Envelope::default()] {
        let why = invalid(run(&log, &add(To::Other, 1), &envelope).await);
        let expected = "a command that pushes to CUSTOMERS#bob pushes to its own aggregate \
                        CUSTOMERS#ada as well, where its repeat is known";
        assert_eq!(why, expected);
        assert_eq!(stack.operations(), ["Query", "Query"]);
    }
}

#[tokio::test]
async fn a_key_is_known_wherever_the_events_of_other_aggregates_go() {
    for to in [To::At(2), To::End, To::Forced] {
        let (_stack, log) = filled(1).await;
        log.push_event(&customer("bob"), Place::End, added(1)).await.expect("pushed");
        assert!(!accepted(run(&log, &add(to, 1), &keyed("k")).await).1, "{to:?}");
        let again = accepted(run(&log, &add(to, 1), &keyed("k")).await);
        assert_eq!(again, repeated(["ada 2"]), "{to:?}");
    }
}

#[tokio::test]
async fn a_group_is_found_in_each_of_its_aggregates() {
    let (stack, log) = filled(2).await;
    let both = add(To::Both, 1);
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
    let (both, envelope) = (add(To::Both, 1), keyed("k"));
    let (one, other) = join(run(&log, &both, &envelope), run(&log, &both, &envelope)).await;
    let (one, other) = (accepted(one), accepted(other));
    assert_eq!((&one.0, &other.0), (&first(["ada 2", "bob 1"]).0, &one.0));
    assert_ne!(one.1, other.1, "one of them repeats the other");
    assert_eq!(count(&log, "bob").await, 1);
}

/// A log on which the command is run by somebody else just before Bob is read.
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
    let command = add(To::Both, 1);
    let between = Between { log: &log, command: command.clone(), came: AtomicBool::new(false) };
    assert_eq!(accepted(run(&between, &command, &keyed("k")).await), repeated(["ada 1", "bob 1"]));
    assert_eq!((count(&log, "ada").await, count(&log, "bob").await), (1, 1));
}

#[tokio::test]
async fn the_scope_of_a_key_is_the_slice_and_the_commands_own_aggregate() {
    let (_stack, log) = filled(0).await;
    let of_ada = add(To::Both, 1);
    assert_eq!(accepted(run(&log, &of_ada, &keyed("k")).await), first(["ada 1", "bob 1"]));
    for other in [add(To::Both, 2), add(To::Own, 1)] {
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
        let command = Add { own, ..add(To::Own, 1) };
        assert_eq!(accepted(run(&log, &command, &keyed("k")).await), first(places));
        assert_eq!(accepted(run(&log, &command, &keyed("k")).await), repeated(places));
    }
}

#[tokio::test]
async fn a_repeat_is_known_whatever_event_the_metadata_was_copied_from() {
    let (_stack, log) = filled(0).await;
    assert!(!accepted(run(&log, &add(To::Both, 1), &keyed("k")).await).1);
    let copied = events(&log, &customer("bob"), Range::default()).await.remove(0).metadata;
    let of_bob = Add { own: "bob", metadata: copied.clone(), ..add(To::Own, 1) };
    assert_eq!(accepted(run(&log, &of_bob, &keyed("l")).await), first(["bob 2"]));
    assert_eq!(accepted(run(&log, &of_bob, &keyed("l")).await), repeated(["bob 2"]));
    let of_eve = Add { own: "eve", metadata: copied, ..add(To::Both, 1) };
    assert_eq!(accepted(run(&log, &of_eve, &keyed("l")).await), first(["eve 1", "bob 3"]));
    assert_eq!(accepted(run(&log, &of_eve, &keyed("l")).await), repeated(["eve 1", "bob 3"]));
}

#[tokio::test]
async fn a_repeat_whose_own_aggregate_is_read_in_part_is_not_answered() {
    let (stack, log) = filled(0).await;
    let both = add(To::Both, 1);
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
        let add = Add { metadata: own, ..add(To::Both, 1) };
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
