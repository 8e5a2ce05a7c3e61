//! Commands take effect at the expected cost, and only once under a key.

use ringfence_aws::Units;
use ringfence_aws::wire::{Edit, Fault};
use ringfence_core::{Envelope, EventRef, Handled, Outcome, Rejected, Slice, StoreError};
use ringfence_document_log::{
    AccessStrategy, Cache, Category, DocumentError, DynamoStore, Load, MemoryStore, Store, handle,
};

use crate::basket::{
    Basket, Event, State, accesses, add, baskets, rolling, snapshot, some_cache, state,
};
use crate::faults::without;
use crate::on_both;
use crate::slices::{Add, Ensure};
use crate::stack::{NOW_MS, Stack, events_max, log};

on_both![
    an_answer_has_the_places_of_the_events,
    a_repeat_is_answered_with_the_events_of_the_first,
    the_scope_of_a_key_is_the_slice_and_the_stream,
    a_command_with_pruned_events_is_forgotten,
    a_key_is_refused_without_events,
];

fn adding(sku: u32) -> Add {
    Add { basket_id: "x/1".to_owned(), sku }
}

fn ensuring(sku: u32) -> Ensure {
    Ensure { basket_id: "x/1".to_owned(), sku }
}

fn keyed(key: &str) -> Envelope {
    Envelope { idempotency_key: Some(key.to_owned()), ..Envelope::default() }
}

async fn done<C: Slice<Context = Basket, State = State>, S: Store>(
    category: &Category<State, S>,
    command: &C,
    key: Option<&str>,
) -> Handled {
    let envelope = key.map(keyed).unwrap_or_default();
    let handled = handle(category, command, &envelope).await.expect("it is settled");
    // The tests compare only the places of the events.
    Handled { written: vec![], ..handled }
}

/// An answer with events of type `Added` in these slots.
fn accepted(slots: &[u64], repeated: bool) -> Handled {
    let event = |slot: &u64| EventRef {
        event_type: "Added".to_owned(),
        partition: "Basket-x%2F1".to_owned(),
        slot: *slot,
    };
    let outcome = Outcome::Accepted(slots.iter().map(event).collect());
    Handled { outcome, attempts: 1, repeated, conflicts: vec![], written: vec![] }
}

async fn an_answer_has_the_places_of_the_events<S: Store + Clone>(store: S) {
    let category = baskets(log(store), snapshot(), some_cache());
    assert_eq!(done(&category, &adding(1), None).await, accepted(&[0], false));
    assert_eq!(done(&category, &adding(1), None).await, accepted(&[1], false));
    assert_eq!(done(&category, &ensuring(1), None).await, accepted(&[], false));
    let close = |_: &State| Ok::<_, ()>(vec![Event::Closed.of("x/1")]);
    category.transact("x/1", Load::Eventual, &Envelope::default(), close).await.expect("closed");
    let rejected = done(&category, &adding(1), None).await.outcome;
    let rejection = serde_json::json!({ "code": "BasketClosed" });
    let message = "the basket is closed".to_owned();
    assert_eq!(rejected, Outcome::of(Some(Rejected { message, rejection }), vec![]));
}

async fn a_repeat_is_answered_with_the_events_of_the_first<S: Store + Clone>(store: S) {
    // The events are in the Tip or in calves, and the program is cold or warm.
    for (n, limits) in [events_max(100), events_max(2)].into_iter().enumerate() {
        for (a, access) in accesses().into_iter().take(3).enumerate() {
            let log = || log(store.clone()).with_limits(limits);
            let warm = baskets(log(), access(), some_cache());
            let cold = baskets(log(), access(), Cache::none());
            let command = Add { basket_id: format!("{n}-{a}"), sku: 7 };
            for _ in 0..2 {
                done(&cold, &Add { basket_id: command.basket_id.clone(), sku: 1 }, None).await;
            }
            let first = done(&warm, &command, Some("k")).await;
            assert!(!first.repeated);
            for later in 0..4 {
                for category in [&warm, &cold] {
                    let again = done(category, &command, Some("k")).await;
                    let expected = Handled { repeated: true, attempts: 1, ..first.clone() };
                    assert_eq!(again, expected, "limits {n}, access {a}, {later} later");
                }
                done(&cold, &Add { basket_id: command.basket_id.clone(), sku: 1 }, None).await;
            }
            let total = state(&cold, &command.basket_id).await;
            assert_eq!((total.items[&7], total.items[&1]), (1, 6));
        }
    }
}

async fn the_scope_of_a_key_is_the_slice_and_the_stream<S: Store>(store: S) {
    let category = baskets(log(store), snapshot(), Cache::none());
    done(&category, &adding(1), Some("k")).await;
    let reused = handle(&category, &adding(2), &keyed("k")).await.expect_err("another command");
    assert!(matches!(&reused, DocumentError::KeyReused(reused) if reused.key == "k"), "{reused:?}");
    assert_eq!(done(&category, &ensuring(2), Some("k")).await, accepted(&[1], false), "a slice");
    assert_eq!(done(&category, &adding(1), Some("K")).await, accepted(&[2], false), "a key");
    assert_eq!(done(&category, &adding(1), Some("k")).await, accepted(&[0], true));
    let other = Add { basket_id: "y".to_owned(), sku: 2 };
    assert!(!done(&category, &other, Some("k")).await.repeated, "a stream");
    assert!(done(&category, &other, Some("k")).await.repeated);
    assert_eq!(state(&category, "y").await.total(), 1);
}

async fn a_command_with_pruned_events_is_forgotten<S: Store>(store: S) {
    let category = baskets(log(store).with_limits(events_max(1)), snapshot(), Cache::none());
    done(&category, &adding(1), Some("first")).await;
    done(&category, &adding(1), Some("second")).await;
    done(&category, &adding(1), None).await;
    let stream = category.stream("x/1").expect("a name");
    category.log().prune(&stream, 1, &Envelope::default()).await.expect("pruned");
    assert_eq!(done(&category, &adding(1), Some("second")).await, accepted(&[1], true));
    assert_eq!(done(&category, &adding(1), Some("first")).await, accepted(&[3], false));
}

#[tokio::test]
async fn a_search_for_an_earlier_run_that_meets_a_gap_is_repeated_strongly() {
    let stack = Stack::start().await;
    let limited = log(stack.store()).with_limits(events_max(1));
    let category = baskets(limited, snapshot(), Cache::none());
    for key in [Some("k"), None, None] {
        done(&category, &adding(1), key).await;
    }
    stack.take();
    stack.wire.inject("Query", 0, without(1));
    assert_eq!(done(&category, &adding(1), Some("k")).await, accepted(&[0], true));
    let queries = stack.take().into_iter().filter(|sent| sent.operation == "Query");
    let strong: Vec<_> = queries.map(|sent| sent.request["ConsistentRead"] == true).collect();
    assert_eq!(strong, [false, true]);
}

#[tokio::test(start_paused = true)]
async fn a_search_for_an_earlier_run_that_is_cut_short_gives_no_answer() {
    let store = MemoryStore::default();
    let category = baskets(log(store).with_limits(events_max(1)), snapshot(), Cache::none());
    done(&category, &adding(1), Some("k")).await;
    done(&category, &adding(2), None).await;
    // The calf with the first run is not there, as on a replica that lags behind.
    let stream = category.stream("x/1").expect("a name");
    category.log().store().delete(&stream, 0).await.expect("deleted");
    // Every pause between two looks is longer than that.
    let hasty = Envelope { deadline_ms: Some(NOW_MS + 1), ..keyed("k") };
    let cut = handle(&category, &adding(1), &hasty).await.expect_err("it is not known");
    let DocumentError::Store(StoreError::Unavailable { operation, .. }) = cut else {
        panic!("{cut:?}");
    };
    assert_eq!(operation, "searching for an earlier run");
    assert_eq!(state(&category, "x/1").await.total(), 2, "nothing is written");
}

async fn a_key_is_refused_without_events<S: Store>(store: S) {
    let category = baskets(log(store), rolling(), Cache::none());
    assert_eq!(done(&category, &adding(1), None).await, accepted(&[], false));
    let refused = handle(&category, &adding(1), &keyed("k")).await.expect_err("no events");
    assert_eq!(
        refused.to_string(),
        "Basket keeps no events, so it can't know a repeat; send no idempotency key"
    );
    assert_eq!(state(&category, "x/1").await.total(), 1);
}

#[tokio::test]
async fn one_of_two_commands_with_one_key_takes_effect() {
    let stack = Stack::start().await;
    for (n, limits) in [events_max(100), events_max(1)].into_iter().enumerate() {
        let log = || log(stack.store()).with_limits(limits);
        let categories = || (0..4).map(|_| baskets(log(), snapshot(), some_cache()));
        let categories: Vec<_> = categories().collect();
        let command = Add { basket_id: n.to_string(), sku: 1 };
        add(&categories[0], &command.basket_id, 2).await;
        let sent = categories.iter().map(|category| done(category, &command, Some("k")));
        let handled = futures::future::join_all(sent).await;
        let first = handled.iter().filter(|handled| !handled.repeated).count();
        assert_eq!(first, 1, "{handled:?}");
        assert!(handled.iter().all(|other| other.outcome == handled[0].outcome), "{handled:?}");
        assert_eq!(state(&categories[0], &command.basket_id).await.items[&1], 1);
    }
}

#[tokio::test]
async fn a_repeat_finds_an_unknown_outcome() {
    let stack = Stack::start().await;
    let category = baskets(log(stack.store()), snapshot(), some_cache());
    add(&category, "x/1", 2).await;
    stack.wire.inject("UpdateItem", 0, Fault::LostAfter);
    (0..7).for_each(|_| stack.wire.inject("UpdateItem", 0, Fault::LostBefore));
    let open = handle(&category, &adding(1), &keyed("k")).await.expect_err("no answer");
    assert!(matches!(open, DocumentError::Store(StoreError::OutcomeUnknown { .. })), "{open:?}");
    let mut again = done(&category, &adding(1), Some("k")).await;
    again.attempts = 1;
    again.conflicts.clear();
    assert_eq!(again, accepted(&[1], true));
}

/// The answer to a command, and its requests and units.
async fn priced<S>(
    stack: &Stack,
    category: &Category<State, DynamoStore>,
    sent: impl Future<Output = S>,
) -> (S, Vec<String>, Units) {
    let meter = category.log().store().meter();
    let before = meter.snapshot();
    stack.take();
    let answer = sent.await;
    (answer, stack.operations(), meter.snapshot().since(&before).total())
}

#[tokio::test]
async fn a_key_costs_only_the_reads_of_calves() {
    let stack = Stack::start().await;
    let limited = |most| log(stack.store()).with_limits(events_max(most));
    let units = |read, write| Units { read, write };
    let tip = || vec!["GetItem".to_owned(), "UpdateItem".to_owned()];
    let cold = baskets(limited(100), snapshot(), Cache::none());
    add(&cold, "x/1", 2).await;
    for key in [None, Some("k")] {
        let (_, operations, used) = priced(&stack, &cold, done(&cold, &adding(1), key)).await;
        assert_eq!((operations, used), (tip(), units(0.5, 1.0)), "{key:?}");
    }
    let (again, operations, used) = priced(&stack, &cold, done(&cold, &adding(1), Some("k"))).await;
    assert_eq!((again.repeated, operations), (true, vec!["GetItem".to_owned()]));
    assert_eq!(used, units(0.5, 0.0));

    // Nine calves of one event, less than 4 KB together.
    let calved = baskets(limited(1), snapshot(), Cache::none());
    for _ in 0..9 {
        done(&calved, &Add { basket_id: "y".to_owned(), sku: 1 }, None).await;
    }
    let command = Add { basket_id: "y".to_owned(), sku: 3 };
    let with_calf = |read: &[&str]| {
        read.iter().chain(&["TransactWriteItems"]).map(|o| (*o).to_owned()).collect::<Vec<_>>()
    };
    let (_, operations, used) = priced(&stack, &calved, done(&calved, &command, None)).await;
    assert_eq!((operations, used.read), (with_calf(&["GetItem"]), 0.5));
    let (_, operations, used) = priced(&stack, &calved, done(&calved, &command, Some("k"))).await;
    assert_eq!((operations, used.read), (with_calf(&["GetItem", "Query"]), 1.0));
    let (again, operations, used) =
        priced(&stack, &calved, done(&calved, &command, Some("k"))).await;
    assert_eq!((again.repeated, operations.len(), used), (true, 1, units(0.5, 0.0)), "in the Tip");
    done(&calved, &Add { basket_id: "y".to_owned(), sku: 1 }, None).await;
    let (again, operations, used) =
        priced(&stack, &calved, done(&calved, &command, Some("k"))).await;
    assert_eq!((again.repeated, operations.len(), used), (true, 2, units(1.0, 0.0)), "in a calf");
}

#[tokio::test]
async fn after_a_conflict_only_new_events_are_searched() {
    let stack = Stack::start().await;
    let limited = |store| log(store).with_limits(events_max(1));
    let warm = baskets(limited(stack.store()), AccessStrategy::Unoptimized, some_cache());
    let other = baskets(limited(stack.other_store()), AccessStrategy::Unoptimized, Cache::none());
    for _ in 0..5 {
        add(&warm, "x/1", 1).await;
    }
    for _ in 0..2 {
        add(&other, "x/1", 1).await;
    }
    stack.take();
    let handled = done(&warm, &adding(1), Some("k")).await;
    assert_eq!((handled.attempts, handled.repeated), (2, false));
    let exchanges = stack.take();
    let items = |n: usize| exchanges[n].answer["Items"].as_array().expect("items").len();
    let operations: Vec<_> = exchanges.iter().map(|exchange| &*exchange.operation).collect();
    // The first attempt reads all calves. The second one folds and searches only the new calf besides the Tip.
    let expected = ["Query", "TransactWriteItems", "Query", "Query", "TransactWriteItems"];
    assert_eq!((operations, items(0), items(3)), (expected.to_vec(), 4, 1));
}

#[tokio::test]
async fn a_replica_without_the_newest_calves_hides_no_repeat() {
    let stack = Stack::start().await;
    let category =
        baskets(log(stack.store()).with_limits(events_max(1)), snapshot(), Cache::none());
    done(&category, &adding(1), Some("k")).await;
    // Hides the only calf, then the newest of two, then the two newest of three.
    for hidden in [1, 1, 2] {
        add(&category, "x/1", 1).await;
        let hide = Edit::new(move |answer| {
            let items = answer["Items"].as_array_mut().expect("items");
            items.drain(..hidden);
            answer.as_object_mut().expect("an answer").remove("LastEvaluatedKey");
        });
        // They are missing on the replica, and in two strong reads while the calf is being written.
        for pass in 0..3 {
            stack.wire.inject("Query", pass, Fault::Reply(hide.clone()));
        }
        assert_eq!(done(&category, &adding(1), Some("k")).await, accepted(&[0], true));
        assert!(stack.wire.is_spent(), "{hidden}");
    }
}
