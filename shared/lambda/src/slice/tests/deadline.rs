//! The time that Lambda gives an invocation.

use std::{future::pending, sync::Mutex, time::Duration};

use lambda_runtime::Context;
use ringfence_aws::{Clock, Meter};
use ringfence_core::{
    Envelope, HandleError, Handled, NewEvent, OnLog, Outcome, Slice, Traceparent,
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::shop::RecordDemand;
use super::{NOW_MS, topic_event};
use crate::slice::function::Function;

/// A slice whose log answers after some time or never. It records the deadlines of its commands.
struct Waiting {
    takes: Option<Duration>,
    deadlines: Mutex<Vec<Option<u64>>>,
}

impl OnLog<RecordDemand> for Waiting {
    async fn handle(&self, _: &RecordDemand, envelope: &Envelope) -> Result<Handled, HandleError> {
        self.deadlines.lock().unwrap().push(envelope.deadline_ms);
        match self.takes {
            Some(time) => sleep(time).await,
            None => pending().await,
        }
        Ok(Handled {
            outcome: Outcome::Accepted(vec![]),
            attempts: 1,
            repeated: false,
            conflicts: vec![],
            written: vec![],
        })
    }

    async fn add(&self, _: Vec<NewEvent>, _: &Envelope) -> Result<(), HandleError> {
        unreachable!("a function adds nothing")
    }
}

fn function(takes: Option<Duration>) -> Function<RecordDemand, Waiting> {
    let waiting = Waiting { takes, deadlines: Mutex::default() };
    Function::new(waiting, Clock::running(NOW_MS), Meter::default())
}

fn demand() -> String {
    json!({ "type": "Record", "productId": "p1", "orderId": "o1" }).to_string()
}

fn until(deadline: u64) -> Context {
    let mut lambda = Context::default();
    lambda.deadline = deadline;
    lambda
}

#[tokio::test(start_paused = true)]
async fn a_command_that_gets_no_answer_in_time_is_answered_before_lambda_ends_the_process() {
    let function = function(None);
    let start = Instant::now();
    let invoked = function.invoke(&demand(), &until(NOW_MS + 3_000)).await;
    assert_eq!(start.elapsed(), Duration::from_millis(2_000));
    let answer = invoked.answer.unwrap();
    assert_eq!(answer["type"], "urn:ringfence:problem:outcome-unknown", "{answer}");
    let line = &invoked.lines[0];
    assert_eq!((line.outcome, line.duration_ms), ("outcome-unknown", 2_000));
    // It may have written events with the command's span.
    let command_id = line.command_id.as_deref().unwrap();
    assert_eq!(line.span, Some(Traceparent::of_command(command_id, RecordDemand::NAME, None)));
    assert_eq!(*function.on().deadlines.lock().unwrap(), [Some(NOW_MS + 2_000)]);
}

#[tokio::test(start_paused = true)]
async fn no_command_of_an_event_begins_without_time_and_the_event_is_delivered_again() {
    let event = topic_event("OrderPlaced", &["p1", "p2"]).to_string();
    // After the first command the second one has this time, and a second is left for the answer.
    for (left, begun, error) in [(1_999, 1, "unavailable"), (2_000, 2, "outcome-unknown")] {
        let function = function(Some(Duration::from_secs(3)));
        let invoked = function.invoke(&event, &until(NOW_MS + 3_000 + left + 1_000)).await;
        assert_eq!(invoked.answer.unwrap_err().error_type, error, "{left}");
        assert_eq!(function.on().deadlines.lock().unwrap().len(), begun, "{left}");
    }
    let function = function(None);
    let invoked = function.invoke(&event, &until(NOW_MS + 3_000)).await;
    assert_eq!(invoked.answer.unwrap_err().error_type, "outcome-unknown");
    assert_eq!(function.on().deadlines.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_in_the_past_does_not_count() {
    let function = function(Some(Duration::ZERO));
    let invoked = function.invoke(&demand(), &until(NOW_MS)).await;
    assert_eq!(invoked.answer.unwrap(), json!({ "accepted": true, "events": [] }));
    assert_eq!(*function.on().deadlines.lock().unwrap(), [None]);
}
