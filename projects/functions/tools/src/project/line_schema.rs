//! The JSON Schema of a line of `events.jsonl`, as `docs/api/events.jsonl.json` has it for other programs.

use std::{env, fs};

use projects::{ProjectId, Projects};
use ringfence_core::Context;
use ringfence_local::stack_root;
use ringfence_schemas::{Lock, LockedVersion, Shape};
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::folder::Snapshot;
use projects::line::{Line, snake_case, to_text};

const PATH: &str = "docs/api/events.jsonl.json";

/// An object as [`to_text`] writes it: with its sum.
fn summed<T: JsonSchema>() -> Value {
    let mut schema = Shape::of::<T>().schema();
    schema["properties"]["sum"] = json!({ "type": "string", "minLength": 16, "maxLength": 16 });
    schema["required"].as_array_mut().expect("some members are required").push("sum".into());
    schema
}

/// The schema of a line with this type and version, whose payload has this definition. A payload of version 1 has no
/// `schema`.
fn payload(event_type: &str, version: u32, name: &str) -> Value {
    let event_type = json!({ "const": snake_case(event_type) });
    let of_version = match version {
        1 => json!({ "properties": { "event_type": event_type, "schema": false } }),
        _ => json!({
            "properties": { "event_type": event_type, "schema": { "const": version } },
            "required": ["schema"],
        }),
    };
    json!({
        "if": of_version,
        "then": { "properties": { "data": { "$ref": format!("#/$defs/{name}") } } },
    })
}

fn schema(lock: &Lock) -> Value {
    let (mut definitions, mut payloads) = (Map::new(), Vec::new());
    for (event_type, locked) in &lock.events {
        for (version, LockedVersion { shape, .. }) in &locked.versions {
            let name =
                if *version == 1 { event_type.clone() } else { format!("{event_type}.{version}") };
            definitions.insert(name.clone(), shape.schema());
            payloads.push(payload(event_type, *version, &name));
        }
    }
    let mut event = summed::<Line>();
    // Lines of types that a version does not know are kept as they are.
    event["allOf"] = payloads.into();
    definitions.insert("event".to_owned(), event);
    definitions.insert("snapshot".to_owned(), summed::<Snapshot>());
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of events.jsonl",
        "description": "An event of a project, with sorted keys. The first line of a compacted copy is a snapshot of the \
                        events that are gone. sum is the first 16 hexadecimal digits of the SHA-256 of the bytes before \
                        ,\"sum\".",
        "anyOf": [{ "$ref": "#/$defs/event" }, { "$ref": "#/$defs/snapshot" }],
        "$defs": definitions,
    })
}

/// Panics if a definition of the schema does not admit a value. Keywords that shapes lack are left out.
fn admits(schema: &Value, name: &str, value: &Value) {
    let mut definition = schema["$defs"][name].clone();
    definition.as_object_mut().expect("it is defined").remove("allOf");
    let shape = Shape::from_schema(&definition).expect("a shape");
    shape.admits(value).unwrap_or_else(|wrong| panic!("{name}: {wrong}: {value}"));
}

#[test]
fn the_published_schema_is_that_of_the_code_and_admits_a_line_of_each_type() {
    let root = stack_root();
    let lock = Lock::read(&root, Projects::NAME).unwrap();
    let (path, schema) = (root.join(PATH), schema(&lock));
    let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let published = fs::read_to_string(&path).unwrap_or_default();
    assert!(published == text, "{PATH} differs from the code: `UPDATE=1 cargo test` writes it");

    let of = projects::facts::entry(7, 1);
    let project: ProjectId = "shop".parse().unwrap();
    let mut lines = 0;
    for (event_type, locked) in lock.events {
        for (version, LockedVersion { samples, .. }) in locked.versions {
            for data in samples {
                let mut entry = of.clone();
                (entry.event.event_type, entry.event.version, entry.event.data) =
                    (event_type.clone(), version, data);
                let line = Line { rest: Some(0), ..Line::of(entry).unwrap() };
                assert!(line.project == project || line.project.to_string() == "other");
                let value: Value = serde_json::from_str(&to_text(&line)).unwrap();
                admits(&schema, "event", &value);
                admits(&schema, &event_type, &value["data"]);
                lines += 1;
            }
        }
    }
    assert!(lines > 25, "{lines}");
}
