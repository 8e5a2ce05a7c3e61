//! Every way to store a state gives the same state.

use ringfence_core::{Consistency, Envelope, State as _};
use ringfence_document_log::{
    AccessStrategy, Cache, Decided, DocumentError, Load, Payload, Store, TipLimits,
};

use crate::basket::{
    State, accesses, add, baskets, of, rolling, snapshot, snapshots, some_cache, state, transact,
};
use crate::on_both;
use crate::stack::{events_max, log, name};

on_both![
    every_access_reads_what_it_wrote,
    the_latest_event_is_the_state,
    competing_writers_lose_nothing,
    an_access_can_be_changed,
    rolling_state_writes_no_events,
    snapshots_of_two_versions_live_side_by_side,
    an_unknown_unfold_is_skipped_and_an_unknown_event_fails,
    a_known_type_of_another_shape_is_an_error,
];

fn limits() -> [TipLimits; 3] {
    [events_max(1), events_max(3), TipLimits::default()]
}

async fn every_access_reads_what_it_wrote<S: Store + Clone>(store: S) {
    for (a, access) in accesses().into_iter().enumerate() {
        for (l, limits) in limits().into_iter().enumerate() {
            let id = format!("{a}-{l}");
            let log = || log(store.clone()).with_limits(limits);
            let cached = baskets(log(), access(), some_cache());
            let cold = baskets(log(), access(), Cache::none());
            let mut expected = State::default();
            for n in 0..7 {
                // They take turns, so that the cached state is old every second time.
                let writer = if n % 2 == 0 { &cached } else { &cold };
                add(writer, &id, n % 3).await;
                expected = expected.evolve(crate::basket::added(n % 3));
                assert_eq!(state(&cold, &id).await, expected, "access {a}, limits {l}, event {n}");
                assert_eq!(state(&cached, &id).await, expected, "access {a}, limits {l}, {n}");
            }
        }
    }
}

async fn the_latest_event_is_the_state<S: Store + Clone>(store: S) {
    let log = || log(store.clone()).with_limits(events_max(2));
    let latest = baskets(log(), AccessStrategy::LatestKnownEvent, Cache::none());
    for sku in 0..5 {
        add(&latest, "x", sku).await;
        let expected = State::default().evolve(crate::basket::added(sku));
        assert_eq!(state(&latest, "x").await, expected);
    }
    let all = baskets(log(), AccessStrategy::Unoptimized, Cache::none());
    assert_eq!(state(&all, "x").await.total(), 5);
}

async fn competing_writers_lose_nothing<S: Store + Clone>(store: S) {
    for (a, access) in accesses().into_iter().enumerate() {
        let id = format!("race-{a}");
        let writer =
            |cache| baskets(log(store.clone()).with_limits(events_max(3)), access(), cache);
        let (one, two) = (writer(some_cache()), writer(Cache::none()));
        let many = async |writer, load| {
            for _ in 0..10 {
                let added = transact(writer, &id, load, |state| state.add(7, 1)).await;
                assert_eq!(added.outcome, Decided::Accepted(vec![crate::basket::added(7).of(&id)]));
            }
        };
        futures::join!(many(&one, Load::Cached), many(&two, Load::Eventual));
        assert_eq!(state(&two, &id).await.total(), 20, "access {a}");
        assert_eq!(state(&one, &id).await.total(), 20, "access {a}, cached");
        let stream = one.stream(&id).expect("a name");
        let report = one.log().verify(&stream, &Envelope::default()).await.expect("an answer");
        assert_eq!(report.problems, [], "access {a}");
    }
}

async fn an_access_can_be_changed<S: Store + Clone>(store: S) {
    let log = || log(store.clone()).with_limits(events_max(2));
    let order: [fn() -> AccessStrategy<State>; 5] = [
        || AccessStrategy::Unoptimized,
        snapshot,
        || AccessStrategy::Unoptimized,
        snapshots,
        snapshot,
    ];
    for (n, access) in (0_u32..).zip(order) {
        let category = baskets(log(), access(), Cache::none());
        add(&category, "x", n).await;
        add(&category, "x", n).await;
        assert_eq!(state(&category, "x").await.total(), 2 * (n + 1), "change {n}");
    }
    let last = baskets(log(), rolling(), Cache::none());
    add(&last, "x", 99).await;
    assert_eq!(state(&last, "x").await.total(), 11);
    // The way back loses changes that were never events.
    let back = baskets(log(), AccessStrategy::Unoptimized, Cache::none());
    assert_eq!(state(&back, "x").await.total(), 10);
}

async fn rolling_state_writes_no_events<S: Store>(store: S) {
    let category = baskets(log(store), rolling(), some_cache());
    for sku in 0..3 {
        assert_eq!(add(&category, "x", sku).await, 0, "the version stays");
    }
    let tip = category.log().tip(&name("x"), Consistency::Strong, &Envelope::default()).await;
    let tip = tip.expect("an answer").expect("a Tip");
    assert_eq!((tip.version, tip.appended, tip.events.len(), tip.unfolds.len()), (0, 0, 0, 1));
    assert_eq!(state(&category, "x").await.total(), 3);
}

async fn snapshots_of_two_versions_live_side_by_side<S: Store + Clone>(store: S) {
    let new = baskets(log(store.clone()), snapshots(), Cache::none());
    let old = baskets(log(store), snapshot(), Cache::none());
    add(&new, "x", 1).await;
    assert_eq!(state(&old, "x").await.total(), 1);
    add(&old, "x", 2).await;
    assert_eq!(
        state(&new, "x").await.total(),
        2,
        "without a snapshot of its own, it reads the events"
    );
}

async fn an_unknown_unfold_is_skipped_and_an_unknown_event_fails<S: Store + Clone>(store: S) {
    crate::contract::append(&log(store.clone()), None, 0..1).await;
    let append = async |events, unfolds| {
        let (log, stream, envelope) = (log(store.clone()), name("a"), &Envelope::default());
        let tip = log.tip(&stream, Consistency::Strong, envelope).await.expect("an answer");
        let (stream, known, by_etag) = (&stream, tip.as_ref(), false);
        let append = ringfence_document_log::StreamAppend {
            stream,
            known,
            by_etag,
            events,
            unfolds,
            envelope,
        };
        log.append(append).await.expect("it is settled");
    };
    let removed = Payload::new("Removed", Some(serde_json::json!({"sku": 5})));
    let unfold = Payload::new("OldSnapshot", Some(serde_json::json!("?")));
    append(vec![removed], vec![unfold]).await;
    let category = baskets(log(store.clone()), snapshot(), Cache::none());
    assert_eq!(state(&category, "a").await.total(), 1);
    // A newer version of the program wrote this event, or a version with another name for the type.
    append(vec![Payload::new("Wrapped", None)], vec![]).await;
    let read = category.query("a", Load::Eventual, &Envelope::default(), |_| ()).await;
    let expected = "event 2 of Basket-a is of the type Wrapped, which its context does not have";
    assert_eq!(read.expect_err("it is not known").to_string(), expected);
}

async fn a_known_type_of_another_shape_is_an_error<S: Store + Clone>(store: S) {
    let envelope = Envelope::default();
    let log = log(store);
    let append = ringfence_document_log::StreamAppend {
        stream: &name("a"),
        known: None,
        by_etag: false,
        events: vec![ringfence_document_log::Payload::new(
            "Removed",
            Some(serde_json::json!({ "no": 1 })),
        )],
        unfolds: vec![],
        envelope: &envelope,
    };
    log.append(append).await.expect("it is settled");
    let category = baskets(log, AccessStrategy::Unoptimized, Cache::none());
    let decide = |state: &State| state.ensure(1).map(|events| of("a", events));
    let decided = category.transact("a", Load::Eventual, &envelope, decide).await;
    let error: DocumentError = decided.expect_err("it can't be decoded");
    assert_eq!(error.to_string(), "event 0 of Basket-a (Removed) can't be decoded");
}
