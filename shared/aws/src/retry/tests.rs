use std::future::ready;

use super::*;
use crate::{Reason, seed_thread};

fn throttled() -> Failure {
    Failure::Throttled { source: "slow down".into() }
}

#[tokio::test(start_paused = true)]
async fn a_transient_failure_is_tried_again_until_the_attempts_are_used_up() {
    seed_thread(1);
    let (mut calls, begun) = (0, Instant::now());
    let outcome: Result<(), _> = Retry::default()
        .run(|| {
            calls += 1;
            ready(Err(throttled()))
        })
        .await;
    // The waits grow.
    assert!(begun.elapsed() > WAIT_FIRST * ATTEMPTS_MAX, "{:?}", begun.elapsed());
    let gave_up = outcome.expect_err("it never succeeds");
    assert!(matches!(gave_up.failure, Failure::Throttled { .. }));
    assert_eq!((calls, gave_up.attempts), (ATTEMPTS_MAX, ATTEMPTS_MAX));
}

#[tokio::test(start_paused = true)]
async fn the_first_success_ends_it() {
    let mut calls = 0;
    let outcome = Retry::default()
        .run(|| {
            calls += 1;
            ready(if calls < 3 { Err(throttled()) } else { Ok(calls) })
        })
        .await;
    assert_eq!(outcome.ok(), Some(3));
}

#[tokio::test(start_paused = true)]
async fn a_permanent_failure_is_not_tried_again() {
    let mut calls = 0;
    let outcome: Result<(), _> = Retry::default()
        .run(|| {
            calls += 1;
            ready(Err(Failure::Permanent { source: "no such table".into() }))
        })
        .await;
    assert!(outcome.is_err());
    assert_eq!(calls, 1);
}

#[tokio::test(start_paused = true)]
async fn a_write_has_an_unknown_outcome_if_one_attempt_may_have_taken_effect() {
    let lost = |what: &'static str| Failure::Unknown { source: what.into() };
    let refused = || Failure::Permanent { source: "access denied".into() };
    let written = |mut failures: Vec<Failure>| async move {
        failures.reverse();
        let send = || ready(Err::<(), _>(failures.pop().expect("it has ended before")));
        let gave_up = Retry::default().attempts_max(3).run(send).await.expect_err("it fails");
        gave_up.writing("writing")
    };
    let ended = [
        (vec![lost("first"), lost("second"), refused()], Some(("second", 3))),
        (vec![throttled(), lost("first"), throttled()], Some(("first", 3))),
        (vec![throttled(), throttled(), lost("last")], Some(("last", 3))),
        (vec![throttled(), refused()], None),
        (vec![throttled(), throttled(), throttled()], None),
    ];
    for (failures, expected) in ended {
        let told = format!("{failures:?}");
        let unknown = match written(failures).await {
            StoreError::OutcomeUnknown { attempts, source } => {
                Some((source.source().expect("what the SDK reported").to_string(), attempts))
            }
            StoreError::Failed { .. } | StoreError::Throttled { attempts: 3 } => None,
            other => panic!("{told} ended as {other:?}"),
        };
        let expected = expected.map(|(cause, attempts)| (cause.to_owned(), attempts));
        assert_eq!(unknown, expected, "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_is_sent_again_until_a_refusal_judges_the_send_whose_answer_was_lost() {
    let lost = || Failure::Unknown { source: "lost".into() };
    let refused = || Failure::Cancelled(vec![Reason::Condition(None)]);
    let held = || Failure::Cancelled(vec![Reason::Conflict, Reason::Condition(None)]);
    // As a log judges: while others hold an item, a condition that failed says nothing of an earlier send.
    let judge = |failure: Failure, sent_before: bool| {
        Ok::<_, StoreError>(match &failure {
            Failure::Cancelled(reasons) if reasons.len() == 1 => Judged::Known("refused"),
            Failure::Cancelled(_) if sent_before => Judged::Held(failure),
            _ => Judged::Failed(failure),
        })
    };
    let ended = async |mut failures: Vec<Failure>| {
        let (mut sends, all) = (0, failures.len());
        failures.reverse();
        let send = || {
            sends += 1;
            ready(failures.pop().map_or(Ok("committed"), Err))
        };
        let ended = Retry::default().attempts_max(3).write().judged("writing", send, judge).await;
        (ended, sends, all)
    };
    assert!(matches!(ended(vec![lost()]).await, (Ok("committed"), 2, 1)));
    assert!(matches!(ended(vec![lost(), refused()]).await, (Ok("refused"), 2, 2)));
    // The answer to the first send stays lost, whatever the last one meets.
    let all = [lost(), held(), held()];
    let (end, sends, all) = ended(all.into()).await;
    assert!(matches!(end, Err(StoreError::OutcomeUnknown { attempts: 3, .. })), "{end:?}");
    assert_eq!(sends, all);
}

#[tokio::test(start_paused = true)]
async fn no_attempt_goes_on_past_the_deadline() {
    let start = monotonic();
    let within = Duration::from_millis(200);
    let hangs = || std::future::pending::<Result<(), Failure>>();
    let gave_up = Retry::default().within(within).run(hangs).await.expect_err("it hangs");
    assert!(matches!(gave_up.failure, Failure::Unknown { .. }), "{gave_up:?}");
    assert_eq!((gave_up.attempts, monotonic() - start), (1, within));
}

#[tokio::test(start_paused = true)]
async fn no_wait_crosses_the_deadline() {
    for micros in 0..1_000 {
        let start = monotonic();
        let within = Duration::from_micros(200_000 + micros);
        let mut attempts = Retry::default().attempts_max(1_000).within(within).start();
        while attempts.again().await {}
        assert!(monotonic() - start < within);
        assert!((2..1_000).contains(&attempts.made()));
    }
}
