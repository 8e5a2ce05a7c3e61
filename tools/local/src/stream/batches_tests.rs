use std::time::Duration;

use serde_json::json;

use super::*;
use crate::{pattern::Pattern, template::Retries};

fn mapping() -> Mapping {
    Mapping {
        table: "events".to_owned(),
        function: "publish-events".to_owned(),
        batch_size: 4,
        filters: Vec::new(),
        retries: Retries { attempts_max: Some(1), age_max: None },
        bisect: false,
        report_item_failures: true,
        on_failure: None,
    }
}

fn record(number: u32) -> Value {
    json!({
        "eventName": "INSERT",
        "dynamodb": { "SequenceNumber": number.to_string(), "ApproximateCreationDateTime": 100.0 },
    })
}

fn batches(mapping: Mapping, count: u32) -> Batches {
    let mut batches = Batches::new(mapping);
    batches.take((1..=count).map(record).collect());
    batches
}

fn numbers(records: &[Value]) -> String {
    let number = |r: &Value| r["dynamodb"]["SequenceNumber"].as_str().expect("one").to_owned();
    records.iter().map(number).collect::<Vec<_>>().join(" ")
}

/// Plays a function with the answers of `answer`, until no record waits. Returns the batches that it got and, after
/// `!`, those that were given up.
fn play(mut batches: Batches, answer: impl Fn(&str) -> InvocationOutcome) -> Vec<String> {
    let mut seen = Vec::new();
    for _ in 0..100 {
        match batches.next(100.0) {
            Next::Idle => return seen,
            Next::Invoke(records) => {
                let given = numbers(&records);
                batches.settle(&answer(&given));
                seen.push(given);
            }
            Next::GiveUp(given_up) => {
                assert_eq!(given_up.reason, GiveUpReason::RetryAttemptsExhausted);
                seen.push(format!("!{}", numbers(&given_up.records)));
            }
        }
    }
    panic!("no end: {seen:?}");
}

fn fails_on(poison: &'static str) -> impl Fn(&str) -> InvocationOutcome {
    move |given| match given.split(' ').any(|number| number == poison) {
        true => InvocationOutcome::Failed,
        false => InvocationOutcome::Succeeded,
    }
}

fn reports(poison: &'static str) -> impl Fn(&str) -> InvocationOutcome {
    move |given| match given.split(' ').any(|number| number == poison) {
        true => InvocationOutcome::Reported(vec![poison.to_owned()]),
        false => InvocationOutcome::Succeeded,
    }
}

#[test]
fn records_come_in_batches_in_order() {
    let seen = play(batches(mapping(), 6), |_| InvocationOutcome::Succeeded);
    assert_eq!(seen, ["1 2 3 4", "5 6"]);
}

#[test]
fn a_batch_fits_a_payload() {
    let mut batches = Batches::new(mapping());
    let large = |number| {
        let mut record = record(number);
        record["dynamodb"]["NewImage"] = "x".repeat(2_500_000).into();
        record
    };
    batches.take((1..=5).map(large).collect());
    assert_eq!(play(batches, |_| InvocationOutcome::Succeeded), ["1 2", "3 4", "5"]);
}

#[test]
fn filtered_records_do_not_count() {
    let pattern = json!({ "dynamodb": { "SequenceNumber": ["2", "3", "5", "6", "7"] } });
    let filters = vec![Pattern::parse(&pattern).expect("a pattern")];
    let seen = play(batches(Mapping { filters, ..mapping() }, 7), |_| InvocationOutcome::Succeeded);
    assert_eq!(seen, ["2 3 5 6", "7"]);
}

#[test]
fn failed_batch_is_retried_and_given_up() {
    let seen = play(batches(mapping(), 6), fails_on("2"));
    assert_eq!(seen, ["1 2 3 4", "1 2 3 4", "!1 2 3 4", "5 6"]);
}

#[test]
fn bisect_isolates_the_record_without_using_retries() {
    let seen = play(batches(Mapping { bisect: true, ..mapping() }, 5), fails_on("2"));
    assert_eq!(seen, ["1 2 3 4", "1 2", "1", "2", "2", "!2", "3 4", "5"]);
}

#[test]
fn reported_record_is_the_checkpoint() {
    let seen = play(batches(mapping(), 5), |given| match given {
        "1 2 3 4" => InvocationOutcome::Reported(vec!["4".to_owned(), "3".to_owned()]),
        _ => InvocationOutcome::Succeeded,
    });
    assert_eq!(seen, ["1 2 3 4", "3 4", "5"]);
}

#[test]
fn bisect_splits_at_the_reported_record() {
    let seen = play(batches(Mapping { bisect: true, ..mapping() }, 5), reports("3"));
    assert_eq!(seen, ["1 2 3 4", "3 4", "3 4", "!3 4", "5"]);
}

#[test]
fn progress_without_bisect_counts_as_a_retry() {
    let seen = play(batches(mapping(), 4), reports("3"));
    assert_eq!(seen, ["1 2 3 4", "3 4", "!3 4"]);
}

#[test]
fn report_of_a_foreign_record_fails_the_batch() {
    let seen = play(batches(mapping(), 2), |_| InvocationOutcome::Reported(vec!["9".to_owned()]));
    assert_eq!(seen, ["1 2", "1 2", "!1 2"]);
}

#[test]
fn without_a_bound_retries_go_on() {
    let retries = Retries { attempts_max: None, age_max: None };
    let mut batches = batches(Mapping { retries, ..mapping() }, 1);
    for _ in 0..1_000 {
        assert!(matches!(batches.next(100.0), Next::Invoke(_)));
        batches.settle(&InvocationOutcome::Failed);
    }
    assert_eq!(batches.failures(), 1_000);
}

#[test]
fn old_records_are_given_up_and_the_younger_go_on() {
    let retries = Retries { attempts_max: None, age_max: Some(Duration::from_secs(60)) };
    let mut batches = Batches::new(Mapping { retries, ..mapping() });
    let mut young = record(2);
    young["dynamodb"]["ApproximateCreationDateTime"] = json!(150.0);
    batches.take(vec![record(1), young]);
    match batches.next(161.0) {
        Next::GiveUp(given_up) => {
            assert_eq!(given_up.reason, GiveUpReason::RecordAgeExceeded);
            assert_eq!(numbers(&given_up.records), "1");
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(batches.next(161.0), Next::Invoke(records) if numbers(&records) == "2"));
}

#[track_caller]
fn check_answer(answer: Value, outcome: InvocationOutcome) {
    assert_eq!(InvocationOutcome::of_answer(&answer), outcome, "{answer}");
}

#[test]
fn answers_are_read_as_lambda_reads_them() {
    check_answer(Value::Null, InvocationOutcome::Succeeded);
    check_answer(json!({}), InvocationOutcome::Succeeded);
    check_answer(json!({ "batchItemFailures": null }), InvocationOutcome::Succeeded);
    check_answer(json!({ "batchItemFailures": [] }), InvocationOutcome::Succeeded);
    check_answer(
        json!({ "batchItemFailures": [{ "itemIdentifier": "" }] }),
        InvocationOutcome::Failed,
    );
    check_answer(
        json!({ "batchItemFailures": [{ "itemIdentifier": null }] }),
        InvocationOutcome::Failed,
    );
    check_answer(
        json!({ "batchItemFailures": [{ "identifier": "1" }] }),
        InvocationOutcome::Failed,
    );
    check_answer(
        json!({ "batchItemFailures": [{ "itemIdentifier": "1" }] }),
        InvocationOutcome::Reported(vec!["1".to_owned()]),
    );
}
