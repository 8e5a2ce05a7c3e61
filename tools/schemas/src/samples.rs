//! Which payloads are samples of a shape.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::Shape;
use crate::probe::list_lengths;

/// How many samples are kept of a version.
pub(crate) const SAMPLES_MAX: usize = 8;

/// Adds those of the payloads that show what no sample before them shows: a member that is there or is absent, one of
/// the names of a choice, a list or a map with something or nothing in it. What texts and numbers they have does not matter, so
/// samples stay as they are if a case gets other values.
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

/// Finds members that may be absent, by what is taken without them of a payload that is taken: asking a type alone, they are
/// not always seen.
pub(crate) fn see_optional(shape: &mut Shape, payload: &Value, takes: &dyn Fn(&Value) -> bool) {
    see(shape, payload, "", &mut |shape, place| {
        let Shape::Object(members) = shape else { return };
        for (name, member) in members.iter_mut().filter(|(_, member)| !member.is_optional) {
            let mut without = payload.clone();
            let object = without.pointer_mut(place).and_then(Value::as_object_mut);
            let Some(object) = object else { return };
            object.remove(name);
            member.is_optional = takes(&without);
        }
    });
}

/// Finds how long lists may be whose items the payload has, if no limit is known: where items have a form that a type does
/// not tell, it is not seen by asking the type alone.
pub(crate) fn see_limits(shape: &mut Shape, payload: &Value, takes: &dyn Fn(&Value) -> bool) {
    see(shape, payload, "", &mut |shape, place| {
        let Shape::List { min, max: max @ None, .. } = shape else { return };
        let Some([item, ..]) = payload.pointer(place).and_then(Value::as_array).map(|all| &all[..])
        else {
            return;
        };
        let found = list_lengths(|length| {
            let mut other = payload.clone();
            let list = other.pointer_mut(place).and_then(Value::as_array_mut);
            let Some(list) = list else { return false };
            *list = vec![item.clone(); length];
            takes(&other)
        });
        if let Some((least, most)) = found {
            (*min, *max) = (least, most);
        }
    });
}

/// Visits each part of the shape that the payload has, with its place: a JSON pointer.
fn see(shape: &mut Shape, payload: &Value, place: &str, visit: &mut dyn FnMut(&mut Shape, &str)) {
    visit(shape, place);
    let mut inside = |shape: &mut Shape, step: &str| {
        let step = step.replace('~', "~0").replace('/', "~1");
        see(shape, payload, &format!("{place}/{step}"), visit);
    };
    match (shape, payload.pointer(place)) {
        (Shape::Nullable(shape), Some(value)) if !value.is_null() => {
            see(shape, payload, place, visit);
        }
        (Shape::List { item, .. }, Some(Value::Array(list))) => {
            (0..list.len()).for_each(|n| inside(item, &n.to_string()));
        }
        (Shape::Map(value), Some(Value::Object(map))) => {
            map.keys().for_each(|key| inside(value, key));
        }
        (Shape::Object(members), Some(Value::Object(_))) => {
            for (name, member) in members {
                inside(&mut member.shape, name);
            }
        }
        (Shape::OneOf { tag: Some(tag), members }, Some(value)) => {
            let name = value.get(&*tag).and_then(Value::as_str);
            if let Some(rest) = name.and_then(|name| members.get_mut(name)) {
                // What the tag says is in the same object.
                see(rest, payload, place, visit);
            }
        }
        (Shape::OneOf { tag: None, members }, Some(Value::Object(object))) => {
            for name in object.keys() {
                members.get_mut(name).into_iter().for_each(|shape| inside(shape, name));
            }
        }
        _ => {}
    }
}

/// Notes what a payload shows, each with its path.
fn show(shape: &Shape, json: &Value, path: &str, shown: &mut BTreeSet<String>) {
    let inside = format!("{path}/*");
    match (shape, json) {
        (Shape::Nullable(shape), _) => {
            shown.insert(format!("{path} {}", if json.is_null() { "null" } else { "not null" }));
            if !json.is_null() {
                show(shape, json, path, shown);
            }
        }
        (Shape::Choice(_), Value::String(name)) => drop(shown.insert(format!("{path} {name}"))),
        (Shape::List { item, .. }, Value::Array(list)) => {
            shown.insert(format!("{path} {}", if list.is_empty() { "empty" } else { "not empty" }));
            list.iter().for_each(|json| show(item, json, &inside, shown));
        }
        (Shape::Map(value), Value::Object(map)) => {
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
    fn a_member_is_optional_if_a_payload_lacks_it_or_is_taken_without_it() {
        let text = json!({ "type": "string" });
        let line = json!({
            "type": "object", "properties": { "ref": text, "notes": text }, "required": ["ref", "notes"],
        });
        let shape = json!({
            "type": "object",
            "properties": { "id": text, "lines": { "type": "array", "items": line }, "time": text },
            "required": ["id", "lines", "time"],
        });
        let mut shape = Shape::from_schema(&shape).expect("a shape");
        let payload = json!({ "id": "7", "lines": [{ "ref": "AB-1", "notes": "" }] });
        // It takes lines without notes.
        let takes = |payload: &Value| {
            payload.get("id").is_some() && payload.pointer("/lines/0/ref").is_some()
        };
        see_optional(&mut shape, &payload, &takes);
        let schema = shape.schema();
        assert_eq!(schema["required"], json!(["id", "lines"]));
        assert_eq!(schema["properties"]["lines"]["items"]["required"], json!(["ref"]));
    }

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
            (json!({ "note": "b", "ways": ["air", "air"] }), false), // other values, nothing more
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
        // What is there stays, in whatever order cases come later.
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
            &Shape::Choice(names.clone()),
            names.into_iter().map(Value::from),
        );
        assert_eq!(samples.len(), SAMPLES_MAX);
    }
}
