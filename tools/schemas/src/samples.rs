//! Chooses the payloads that are samples of a shape.

use std::collections::BTreeSet;

use ringfence_core::personal::{Form, MARKED, values};
use serde_json::Value;

use crate::Shape;

/// The most samples of a version.
pub(crate) const SAMPLES_MAX: usize = 8;

/// Adds the payloads that show more than the samples before them: a present or absent member, a name of a choice, an
/// empty or filled list or map. The values of texts and numbers do not matter, so samples stay if a case gets other
/// values.
pub(crate) fn add_samples(
    samples: &mut Vec<Value>,
    shape: &Shape,
    payloads: impl IntoIterator<Item = Value>,
) {
    let mut shown = BTreeSet::new();
    samples.iter().for_each(|sample| show(shape, sample, "", &mut shown));
    for payload in payloads {
        let before = shown.len();
        show(shape, &payload, "", &mut shown);
        if samples.len() < SAMPLES_MAX && (samples.is_empty() || shown.len() > before) {
            samples.push(payload);
        }
    }
}

/// Puts the plain value in the place of each personal one, as a lock has it.
pub(crate) fn plain(data: &mut Value) {
    for value in values(data, Form::Marked) {
        *value = value[MARKED].take();
    }
}

/// Notes everything that a payload shows, each with its path.
fn show(shape: &Shape, json: &Value, path: &str, shown: &mut BTreeSet<String>) {
    let inside = format!("{path}/*");
    match (shape, json) {
        (Shape::Nullable(shape), _) => {
            shown.insert(format!("{path} {}", if json.is_null() { "null" } else { "not null" }));
            if !json.is_null() {
                show(shape, json, path, shown);
            }
        }
        (Shape::Personal(shape), _) => show(shape, json, path, shown),
        (Shape::Choice(_), Value::String(name)) => drop(shown.insert(format!("{path} {name}"))),
        (Shape::List { item, .. }, Value::Array(list)) => {
            shown.insert(format!("{path} {}", if list.is_empty() { "empty" } else { "not empty" }));
            list.iter().for_each(|json| show(item, json, &inside, shown));
        }
        (Shape::Tuple(items), Value::Array(list)) => {
            let items = items.iter().zip(list).enumerate();
            items.for_each(|(n, (item, json))| show(item, json, &format!("{path}/{n}"), shown));
        }
        (Shape::AnyOf(shapes), _) => {
            let of = shapes.iter().enumerate().find(|(_, shape)| shape.admits(json).is_ok());
            if let Some((n, shape)) = of {
                let path = format!("{path} {n}");
                show(shape, json, &path, shown);
                shown.insert(path);
            }
        }
        (Shape::Map { value, .. }, Value::Object(map)) => {
            shown.insert(format!("{path} {}", if map.is_empty() { "empty" } else { "not empty" }));
            map.values().for_each(|json| show(value, json, &inside, shown));
        }
        (Shape::Object(members), Value::Object(object)) => {
            for (name, member) in members {
                let (path, json) = (format!("{path}/{name}"), object.get(name));
                shown.insert(format!("{path} {}", if json.is_some() { "there" } else { "absent" }));
                json.into_iter().for_each(|json| show(&member.shape, json, &path, shown));
            }
        }
        (Shape::OneOf { tag, members }, _) => {
            let (name, rest) = match (tag, json) {
                (Some(tag), _) => (json[tag].as_str(), Some(json)),
                (None, Value::String(name)) => (Some(&**name), None),
                (None, _) => match json.as_object().and_then(|object| object.iter().next()) {
                    Some((name, rest)) => (Some(&**name), Some(rest)),
                    None => (None, None),
                },
            };
            let path = format!("{path} {}", name.unwrap_or_default());
            if let Some((shape, rest)) = name.and_then(|name| members.get(name)).zip(rest) {
                show(shape, rest, &path, shown);
            }
            shown.insert(path);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn samples_are_the_first_that_show_something_more() {
        let shape = json!({ "type": "object", "properties": {
            "note": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
            "ways": { "type": "array", "items": { "enum": ["air", "sea"], "type": "string" } },
            "kind": { "oneOf": [
                { "const": "None" },
                { "type": "object", "properties": { "Of": { "type": "integer" } }, "required": ["Of"] },
            ] },
        } });
        let shape = Shape::from_schema(&shape).expect("a shape");
        let payloads = [
            (json!({ "note": "a", "ways": ["air"] }), true),
            (json!({ "note": "b", "ways": ["air", "air"] }), false), // only other values
            (json!({ "note": null, "ways": ["air"] }), true),
            (json!({ "ways": ["air"] }), true),
            (json!({ "note": "a", "ways": [] }), true),
            (json!({ "note": "a", "ways": ["air", "sea"] }), true),
            (json!({ "note": null, "ways": [] }), false), // each was shown by one before
            (json!({ "note": "a", "ways": ["sea"], "kind": "None" }), true),
            (json!({ "note": "a", "ways": ["sea"], "kind": { "Of": 1 } }), true),
            (json!({ "note": "a", "ways": ["sea"], "kind": { "Of": 2 } }), false),
        ];
        let all = || payloads.iter().map(|(payload, _)| payload.clone());
        let mut samples = Vec::new();
        add_samples(&mut samples, &shape, all());
        let kept = payloads.iter().filter(|(_, is_kept)| *is_kept).map(|(payload, _)| payload);
        assert!(samples.iter().eq(kept), "{samples:#?}");
        // The samples stay, whatever the order of later cases.
        let before = samples.clone();
        add_samples(&mut samples, &shape, all().rev());
        assert_eq!(samples, before);
    }

    #[test]
    fn few_samples_are_kept() {
        let names: Vec<String> = (0..20).map(|n| format!("n{n}")).collect();
        let mut samples = Vec::new();
        add_samples(
            &mut samples,
            &Shape::Choice(names.iter().cloned().collect()),
            names.into_iter().map(Value::from),
        );
        assert_eq!(samples.len(), SAMPLES_MAX);
    }
}
