//! What an import compares with events that exist already.

use std::hash::{DefaultHasher, Hash, Hasher};

use ringfence_core::SequencedEvent;
use ringfence_core::json::{Digits, kept_number};
use serde_json::Value;

/// Distinguishes an event from another one in its place.
pub(super) struct There {
    /// When it was recorded, in milliseconds since 1970.
    pub(super) at: u64,
    /// A hash of its type, version, tags and payload.
    pub(super) content: u64,
}

impl There {
    pub(super) fn of(event: &SequencedEvent) -> Self {
        let SequencedEvent { event_type, version, tags, data, .. } = event;
        let (mut hasher, mut data) = (DefaultHasher::new(), data.clone());
        shorten_numbers(&mut data);
        (event_type, version, tags, data).hash(&mut hasher);
        Self { at: event.at, content: hasher.finish() }
    }
}

/// DynamoDB returns the number 1.0 as 1, and writes out an exponent.
fn shorten_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let text = Digits::of(&number.to_string()).plain();
            let whole = text.parse().map(i64::into).or_else(|_| text.parse().map(u64::into));
            whole.into_iter().for_each(|whole| *number = whole);
        }
        value if kept_number(value).is_some() => {
            let digits = kept_number(value).map(Digits::of);
            *value = format!("{digits:?}").into();
        }
        Value::Array(values) => values.iter_mut().for_each(shorten_numbers),
        Value::Object(fields) => fields.values_mut().for_each(shorten_numbers),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
