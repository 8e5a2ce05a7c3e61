//! Delivers events to functions like EventBridge and Lambda: with retries, and with a destination for failures.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chrono::SecondsFormat;
use serde_json::{Value, json};

use crate::{
    clock,
    destinations::Destinations,
    invoke::{Invoke, InvokeError},
    notices::Notices,
    template::{ACCOUNT, DeliveryTarget, FunctionResource, REGION, Retries},
};

/// The pause before the second attempt. It doubles with each attempt. AWS waits for seconds to minutes.
const RETRY_PAUSE_MIN: Duration = Duration::from_millis(100);
/// Longest pause between attempts.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(5);

/// Delivers events to the functions of a stack.
pub(crate) struct Delivery<I> {
    functions: Arc<I>,
    definitions: BTreeMap<String, FunctionResource>,
    destinations: Destinations,
    notices: Notices,
}

impl<I: Invoke> Delivery<I> {
    pub(crate) fn new(
        functions: &[FunctionResource],
        invoke: Arc<I>,
        destinations: Destinations,
        notices: Notices,
    ) -> Self {
        let definitions = functions.iter().map(|f| (f.binary.clone(), f.clone())).collect();
        Self { functions: invoke, definitions, destinations, notices }
    }

    pub(crate) fn notices(&self) -> &Notices {
        &self.notices
    }

    /// Invokes a target until it has succeeded or failed for good. EventBridge retries an event that does not reach the
    /// function, and then uses the target's dead-letter queue. Lambda retries an event on which the function failed,
    /// and then uses the function's destination. `rule` is the ARN of the rule or schedule.
    pub(crate) async fn deliver(&self, rule: &str, target: &DeliveryTarget, event: &Value) {
        let start = tokio::time::Instant::now();
        let (mut undelivered, mut failed) = (0_u32, 0_u32);
        loop {
            let Err(error) = self.functions.invoke(&target.function, event).await else { return };
            let function = self.definitions.get(&target.function);
            let (count, retries, destination) = match function {
                Some(function) if error.is_function_failure() => {
                    failed += 1;
                    (failed, function.retries, &function.on_failure)
                }
                _ => {
                    undelivered += 1;
                    (undelivered, target.retries, &target.dead_letter_queue)
                }
            };
            self.notices.trouble(&error);
            if is_over(retries, count, start.elapsed()) {
                let arn = format!("arn:aws:lambda:{REGION}:{ACCOUNT}:function:{}", target.function);
                return self.give_up((&error, count), destination.as_deref(), (rule, &arn), event);
            }
            let pause = RETRY_PAUSE_MIN.saturating_mul(2_u32.saturating_pow(count - 1));
            tokio::time::sleep(pause.min(RETRY_PAUSE_MAX)).await;
        }
    }

    /// A rule's queue gets the event itself, with attributes that name its target. A function's destination gets a
    /// record that contains the event.
    fn give_up(
        &self,
        (error, count): (&InvokeError, u32),
        destination: Option<&str>,
        (rule, target): (&str, &str),
        event: &Value,
    ) {
        let Some(arn) = destination else {
            return self.notices.trouble(&Lost { event: event["id"].to_string() });
        };
        let sent = if error.is_function_failure() {
            let record = json!({
                "version": "1.0",
                "timestamp": clock::now().to_rfc3339_opts(SecondsFormat::Millis, true),
                "requestContext": {
                    "functionArn": format!("{target}:$LATEST"),
                    "condition": "RetriesExhausted",
                    "approximateInvokeCount": count,
                },
                "requestPayload": event,
                "responsePayload": error.document(),
            });
            self.destinations.send(arn, &record, event)
        } else {
            let message = error.to_string();
            let attributes = [
                ("RULE_ARN", rule),
                ("TARGET_ARN", target),
                ("ERROR_CODE", "NO_RESOURCE"),
                ("ERROR_MESSAGE", &message),
            ];
            let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let sent =
                self.destinations.queues.send_with(arn, event.to_string(), attributes.into());
            sent.map(drop).map_err(Into::into)
        };
        if let Err(error) = sent {
            self.notices.trouble(&error);
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("event {event} is lost: the target has no destination for it")]
struct Lost {
    event: String,
}

fn is_over(retries: Retries, failures: u32, age: Duration) -> bool {
    retries.attempts_max.is_some_and(|max| failures > max)
        || retries.age_max.is_some_and(|max| age > max)
}
