//! Why a personal value can't be read.

use std::collections::BTreeSet;

use serde_json::{Error, Value};

/// The error's message, if that has no word of the value, and the value has no escapes: messages get into logs.
pub(super) fn why_invalid(error: &Error, value: &Value) -> String {
    let words = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let (message, value) = (error.to_string(), value.to_string());
    match !value.contains('\\') && words(&value).is_disjoint(&words(&message)) {
        true => message,
        false => "the personal value is not valid".to_owned(),
    }
}
