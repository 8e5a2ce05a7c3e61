//! Reads JSON that a person or another program may have written. Errors are in words of JSON: the place, and the
//! expected value.

use anyhow::{Error, Result, anyhow, bail};
use projects::Projects;
use ringfence_core::{Context, SequencedEvent, json};
use ringfence_schemas::{Mismatch, Shape, present};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use stack::SharedProjects;

/// Reads a string as a `T`.
///
/// # Errors
/// It is not JSON, or does not have the shape.
pub(crate) fn read<T: DeserializeOwned + JsonSchema>(text: &str) -> Result<T> {
    let error = match serde_json::from_str(text) {
        Ok(read) => return Ok(read),
        Err(error) => error,
    };
    let value = value(text)?;
    Shape::of::<T>().admits(&value).map_err(|wrong| anyhow!(in_words("", &wrong)))?;
    // For a string that is not a valid name.
    drop(serde_path_to_error::deserialize::<_, T>(value)?);
    bail!(error)
}

/// The members of an object that a person or another program has written.
///
/// # Errors
/// It is not JSON, or not an object, a key is given twice, or a number can't be kept as it is.
pub(crate) fn object(text: &str) -> Result<Map<String, Value>> {
    let read = json::read(text, json::LEVELS_MAX);
    match read.or_else(|wrong| value(text).and(Err(wrong.into())))? {
        Value::Object(members) => Ok(members),
        _ => bail!("must be a JSON object"),
    }
}

/// The error in the payload of an event; `None` if it has the shape of its type.
pub(crate) fn payload(event: &SequencedEvent) -> Option<Error> {
    let lock = present::<SharedProjects>().remove(Projects::NAME)?;
    let mut versions = lock.events.get(&event.event_type)?.versions.values();
    let wrong = versions.next_back()?.shape.reads(&event.data).err()?;
    Some(anyhow!(in_words("data", &wrong)))
}

fn in_words(of: &str, Mismatch { place, why }: &Mismatch) -> String {
    let steps = [of].into_iter().chain(place.split('/')).filter(|step| !step.is_empty());
    match steps.collect::<Vec<_>>().join(".") {
        field if field.is_empty() => why.clone(),
        field => format!("{field}: {why}"),
    }
}

fn value(text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|error| {
        let line = if text.trim_end().contains('\n') {
            format!("line {}, ", error.line())
        } else {
            String::new()
        };
        anyhow!("is not JSON, from {line}character {} on", error.column())
    })
}

#[test]
fn what_is_wrong_is_named_by_its_place_and_without_words_of_the_program() {
    use projects::line::Place;

    let wrong = |text: &str| read::<Place>(text).unwrap_err().to_string();
    assert_eq!(wrong("{"), "is not JSON, from character 1 on");
    assert_eq!(wrong("{\n\"a\" 1 }"), "is not JSON, from line 2, character 5 on");
    assert_eq!(wrong("[]"), "a list of 0 is not an object of checkpoint, event_id, timestamp");
    assert_eq!(
        wrong(r#"{"checkpoint":"x","event_id":"e","timestamp":"t"}"#),
        r#"checkpoint: "x" is not an integer from 0 to 9223372036854775807"#
    );
    assert_eq!(object("5").unwrap_err().to_string(), "must be a JSON object");
    let twice = object(r#"{"a":{"b":1,"b":2}}"#).unwrap_err().to_string();
    assert_eq!(twice, "a.b: is given twice");
    assert!(object("{\"a\":1584097275961.1234}").is_err());
    let mut event = projects::facts::entry(7, 1).event;
    assert!(payload(&event).is_none());
    event.data["epoch"] = "x".into();
    let of_event = r#"data.epoch: "x" is not an integer from 0 to 18446744073709551615"#;
    assert_eq!(payload(&event).unwrap().to_string(), of_event);
}
