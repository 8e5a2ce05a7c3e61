//! How a command or a page shows a payload: in the newest version of its type or the stored one, and cut.

use std::ops::Deref;

use clap::{ArgAction, Args};
use ringfence_core::SequencedEvent;
use ringfence_core::personal::{self, Form, MARKED};
use serde_json::Value;

/// The flag of every command that shows payloads. `DEFAULT` is its value if it is not given.
#[derive(Args, Clone, Copy)]
pub(crate) struct Newest<const DEFAULT: bool> {
    /// Upcasts payloads to the newest version of their type. With `--newest=false` they are as they are stored.
    #[arg(
        long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_value = if DEFAULT { "true" } else { "false" }, default_missing_value = "true"
    )]
    pub(crate) newest: bool,
}

/// An event as a command or a page shows it.
#[derive(Clone, Debug)]
pub struct ShownEvent {
    /// The event, with the version of the shown payload.
    pub event: SequencedEvent,
    /// The version that is stored, if the payload was upcast.
    pub stored: Option<u32>,
}

impl ShownEvent {
    /// The version of the payload, to be written after the type. It is empty for version 1.
    #[must_use]
    pub fn version(&self) -> String {
        match (self.stored, self.event.version) {
            (Some(stored), version) => format!(" v{version} (stored as v{stored})"),
            (None, 1) => String::new(),
            (None, version) => format!(" v{version}"),
        }
    }
}

/// An event as it is stored.
impl From<SequencedEvent> for ShownEvent {
    fn from(event: SequencedEvent) -> Self {
        Self { event, stored: None }
    }
}

impl Deref for ShownEvent {
    type Target = SequencedEvent;

    fn deref(&self) -> &SequencedEvent {
        &self.event
    }
}

/// JSON for people: a personal value in words instead of its long sealed text. One that was opened is plain.
#[must_use]
pub fn for_people(data: &Value) -> Value {
    let of = || personal::subject(data).unwrap_or("nobody");
    match (personal::form(data), data) {
        (Form::Marked, _) => data[MARKED].clone(),
        (Form::Sealed, _) => format!("sealed, of {}", of()).into(),
        (Form::Forgotten, _) => format!("forgotten, of {}", of()).into(),
        (Form::Plain, Value::Array(all)) => all.iter().map(for_people).collect(),
        (Form::Plain, Value::Object(all)) => {
            let member = |(name, value): (&String, &Value)| (name.clone(), for_people(value));
            Value::Object(all.iter().map(member).collect())
        }
        (Form::Plain, scalar) => scalar.clone(),
    }
}

/// The first characters of a text, to the end of a word if that is not far.
#[must_use]
pub fn cut(text: &str, chars_max: usize) -> String {
    let Some((end, next)) = text.char_indices().nth(chars_max) else { return text.to_owned() };
    let whole = &text[..end];
    let is_part = |c: char| c.is_alphanumeric();
    let shown = match is_part(next) {
        true => whole.trim_end_matches(is_part),
        false => whole,
    };
    let shown = if shown.len() * 2 < whole.len() { whole } else { shown };
    format!("{shown}…")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn people_see_whose_a_sealed_value_is_and_an_opened_one_plain() {
        let data = json!({ "n": [{ "a": { "$sealed": "AQ", "of": "ada", "k": 1 } }, 2, null],
            "b": { "$forgotten": true, "of": "bob" }, "c": { "$personal": { "d": "x" }, "of": "ada" } });
        let shown = json!({ "n": [{ "a": "sealed, of ada" }, 2, null], "b": "forgotten, of bob", "c": { "d": "x" } });
        assert_eq!(for_people(&data), shown);
    }

    #[test]
    fn a_text_is_cut_after_a_word_unless_the_word_is_half_of_it() {
        for (text, chars_max, expected) in [
            ("one two", 7, "one two"),
            ("one two", 6, "one …"),
            ("one two", 4, "one …"),
            ("one two", 3, "one…"),
            ("é\u{301}ééééé", 3, "é\u{301}…"),
            ("a lengthy", 8, "a length…"),
        ] {
            assert_eq!(cut(text, chars_max), expected, "{text} {chars_max}");
        }
    }
}
