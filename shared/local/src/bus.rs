//! The bus: entries become events, rules match them, targets are invoked.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    clock,
    destinations::Destinations,
    invoke::{Invoke, InvokeError},
    notices::Notices,
    template::{ACCOUNT, Function, Model, REGION, Retries, Rule, Target, last_part},
};

/// Pause before the second attempt; doubles with each. AWS waits from seconds to minutes.
const RETRY_PAUSE_MIN: Duration = Duration::from_millis(100);
/// Longest pause between attempts.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(5);

/// An entry of PutEvents.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Entry {
    source: Option<String>,
    detail_type: Option<String>,
    detail: Option<String>,
    event_bus_name: Option<String>,
    time: Option<f64>,
    #[serde(default)]
    resources: Vec<String>,
}

/// Why an entry was refused: EventBridge's code and message.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Refused {
    /// EventBridge's code.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
}

impl Entry {
    /// The entry's size as EventBridge counts it, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let texts = [&self.source, &self.detail_type, &self.detail];
        let texts: usize = texts.into_iter().flatten().map(String::len).sum();
        let resources: usize = self.resources.iter().map(String::len).sum();
        texts + resources + if self.time.is_some() { 14 } else { 0 }
    }

    /// The event that targets get, with its bus.
    fn event(self, now: DateTime<Utc>) -> Result<(String, Value), Refused> {
        let required = |value: Option<String>, name| {
            value.filter(|value| !value.is_empty()).ok_or_else(|| Refused {
                code: "InvalidArgument",
                message: format!("Parameter {name} is not valid. Reason: it is required."),
            })
        };
        let source = required(self.source, "Source")?;
        if source.starts_with("aws.") {
            let message = format!("Not authorized for the source {source}.");
            return Err(Refused { code: "NotAuthorizedForSourceException", message });
        }
        let detail_type = required(self.detail_type, "DetailType")?;
        let detail = required(self.detail, "Detail")?;
        let detail: Value =
            serde_json::from_str(&detail).ok().filter(Value::is_object).ok_or_else(|| Refused {
                code: "MalformedDetail",
                message: "Detail is malformed.".to_owned(),
            })?;
        // Seconds since 1970 are far below the range of an i64.
        #[expect(clippy::cast_possible_truncation)]
        let time = self.time.and_then(|seconds| DateTime::from_timestamp(seconds as i64, 0));
        let event = json!({
            "version": "0",
            "id": clock::id(),
            "detail-type": detail_type,
            "source": source,
            "account": ACCOUNT,
            "time": time.unwrap_or(now).to_rfc3339_opts(SecondsFormat::Secs, true),
            "region": REGION,
            "resources": self.resources,
            "detail": detail,
        });
        Ok((self.event_bus_name.unwrap_or_else(|| "default".to_owned()), event))
    }
}

/// The stack's buses with their rules.
pub struct Bus<I> {
    delivery: Arc<Delivery<I>>,
    buses: Vec<String>,
    rules: Vec<Rule>,
    running: Mutex<JoinSet<()>>,
}

struct Delivery<I> {
    functions: Arc<I>,
    definitions: BTreeMap<String, Function>,
    destinations: Destinations,
    notices: Notices,
}

impl<I: Invoke> Bus<I> {
    /// The buses and rules of a stack.
    #[must_use]
    pub fn new(
        model: &Model,
        functions: Arc<I>,
        destinations: Destinations,
        notices: Notices,
    ) -> Self {
        let definitions = model.functions.iter().map(|f| (f.binary.clone(), f.clone())).collect();
        Self {
            delivery: Arc::new(Delivery { functions, definitions, destinations, notices }),
            buses: model.buses.clone(),
            rules: model.rules.clone(),
            running: Mutex::default(),
        }
    }

    /// Puts one entry on its bus and returns the event's id; targets are invoked in the background.
    ///
    /// # Errors
    /// The entry is refused; nothing is delivered.
    pub fn put(&self, entry: Entry) -> Result<String, Refused> {
        let (bus, event) = entry.event(clock::now())?;
        let bus = last_part(&bus);
        if !self.buses.iter().any(|name| name == bus) {
            let message = format!("Event bus {bus} does not exist.");
            return Err(Refused { code: "InvalidArgument", message });
        }
        let id = event["id"].as_str().unwrap_or_default().to_owned();
        let event = Arc::new(event);
        self.delivery.notices.event(event.clone());

        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        while running.try_join_next().is_some() {}
        let rules =
            self.rules.iter().filter(|rule| rule.bus == bus && rule.pattern.matches(&event));
        for (rule, target) in rules.flat_map(|rule| rule.targets.iter().map(move |t| (rule, t))) {
            let (delivery, target) = (self.delivery.clone(), target.clone());
            let rule = format!("arn:aws:events:{REGION}:{ACCOUNT}:rule/{bus}/{}", rule.name);
            let event = event.clone();
            running.spawn(async move { delivery.deliver(&rule, &target, &event).await });
        }
        Ok(id)
    }
}

impl<I: Invoke> Delivery<I> {
    /// Invokes a target until it is done. EventBridge retries an event that does not reach the function, and
    /// then uses the target's dead-letter queue. Lambda retries an event on which the function failed, and
    /// then uses the function's own destination.
    async fn deliver(&self, rule: &str, target: &Target, event: &Value) {
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
                return self.give_up(&error, destination.as_deref(), (rule, &arn), event);
            }
            let pause = RETRY_PAUSE_MIN.saturating_mul(2_u32.saturating_pow(count - 1));
            tokio::time::sleep(pause.min(RETRY_PAUSE_MAX)).await;
        }
    }

    /// A rule's queue gets the event itself, with attributes that name its target. A function's destination
    /// gets a record around the event.
    fn give_up(
        &self,
        error: &InvokeError,
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
                },
                "requestPayload": event,
                "responsePayload": { "errorMessage": error.to_string() },
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

#[cfg(test)]
#[path = "bus_tests.rs"]
mod tests;
