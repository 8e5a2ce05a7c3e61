//! The bus: entries become events, rules match them, targets are invoked.

use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, SecondsFormat, Utc};
use ringfence_core::json;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    clock,
    delivery::Delivery,
    destinations::Destinations,
    invoke::Invoke,
    notices::Notices,
    template::{ACCOUNT, Model, REGION, Rule, last_part},
};

/// The most characters of an entry's DetailType and Source.
const DETAIL_TYPE_MAX: usize = 128;
const SOURCE_MAX: usize = 256;

/// An entry of PutEvents.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct BusEntry {
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
pub struct RefusedEntry {
    /// EventBridge's code.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
}

impl BusEntry {
    /// The entry's size in bytes, by EventBridge's rules.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let texts = [&self.source, &self.detail_type, &self.detail];
        let texts: usize = texts.into_iter().flatten().map(String::len).sum();
        let resources: usize = self.resources.iter().map(String::len).sum();
        texts + resources + if self.time.is_some() { 14 } else { 0 }
    }

    /// The event that targets get, and the name of its bus.
    fn event(self, now: DateTime<Utc>) -> Result<(String, Value), RefusedEntry> {
        let required = |value: Option<String>, name, max| {
            let refused = |why: String| RefusedEntry {
                code: "InvalidArgument",
                message: format!("Parameter {name} is not valid. Reason: {why}."),
            };
            match value.filter(|value| !value.is_empty()) {
                None => Err(refused("it is required".to_owned())),
                Some(value) if value.chars().count() > max => {
                    Err(refused(format!("it has more than {max} characters")))
                }
                Some(value) => Ok(value),
            }
        };
        let source = required(self.source, "Source", SOURCE_MAX)?;
        if source.starts_with("aws.") {
            let message = format!("Not authorized for the source {source}.");
            return Err(RefusedEntry { code: "NotAuthorizedForSourceException", message });
        }
        let detail_type = required(self.detail_type, "DetailType", DETAIL_TYPE_MAX)?;
        let detail = required(self.detail, "Detail", usize::MAX)?;
        let malformed = |why: &str| RefusedEntry {
            code: "MalformedDetail",
            message: format!("Detail is malformed.{why}"),
        };
        // EventBridge passes the text on unchanged. Here it becomes a value, which must be the same.
        let detail = json::read(&detail, json::LEVELS_MAX);
        let detail = detail.map_err(|error| malformed(&format!(" {error}")))?;
        if !detail.is_object() {
            return Err(malformed(""));
        }
        // Seconds since 1970 are far below the range of an i64.
        #[expect(clippy::cast_possible_truncation)]
        let time = self.time.and_then(|seconds| DateTime::from_timestamp(seconds as i64, 0));
        let mut event = json!({
            "version": "0",
            "id": clock::id(),
            "detail-type": detail_type,
            "source": source,
            "account": ACCOUNT,
            "time": time.unwrap_or(now).to_rfc3339_opts(SecondsFormat::Secs, true),
            "region": REGION,
            "resources": self.resources,
        });
        event["detail"] = detail;
        Ok((self.event_bus_name.unwrap_or_else(|| "default".to_owned()), event))
    }
}

/// The stack's buses with their rules.
pub struct Buses<I> {
    delivery: Arc<Delivery<I>>,
    buses: Vec<String>,
    rules: Vec<Rule>,
    running: Mutex<JoinSet<()>>,
}

impl<I: Invoke> Buses<I> {
    /// The buses and rules of a stack.
    #[must_use]
    pub fn new(
        model: &Model,
        functions: Arc<I>,
        destinations: Destinations,
        notices: Notices,
    ) -> Self {
        let delivery = Delivery::new(&model.functions, functions, destinations, notices);
        Self {
            delivery: Arc::new(delivery),
            buses: model.buses.clone(),
            rules: model.rules.clone(),
            running: Mutex::default(),
        }
    }

    /// The delivery to targets.
    pub(crate) fn delivery(&self) -> Arc<Delivery<I>> {
        self.delivery.clone()
    }

    /// Puts one entry on its bus and returns the event's id. Targets are invoked in the background.
    ///
    /// # Errors
    /// The entry is refused; nothing is delivered.
    pub fn put(&self, entry: BusEntry) -> Result<String, RefusedEntry> {
        let (bus, event) = entry.event(clock::now())?;
        let bus = last_part(&bus);
        if !self.buses.iter().any(|name| name == bus) {
            let message = format!("Event bus {bus} does not exist.");
            return Err(RefusedEntry { code: "InvalidArgument", message });
        }
        let id = event["id"].as_str().unwrap_or_default().to_owned();
        let event = Arc::new(event);
        self.delivery.notices().event(event.clone());

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

#[cfg(test)]
#[path = "bus_tests.rs"]
mod tests;
