//! The EventTopic of a stack as a document of AsyncAPI 3.0.
//!
//! Its schemas are valid in JSON Schema 2020-12 and in draft 7, the default of AsyncAPI. Draft 7 sees only the length
//! of a tuple.

use std::collections::BTreeSet;

use ringfence_core::personal::{FORGOTTEN, KEYWORD, OF, SEALED};
use serde_json::{Map, Value, json};

use crate::document::{object, open, reference};
use crate::variations::seal;
use crate::{Contract, LockedType, LockedVersion};

impl Contract {
    /// The messages of the EventTopic, as a document of AsyncAPI 3.0: each type of events of each context, in each of
    /// its versions.
    #[must_use]
    pub fn asyncapi(&self) -> Value {
        let mut messages = Map::new();
        for (context, lock) in &self.locks {
            for (name, event) in &lock.events {
                for (&version, locked) in &event.versions {
                    let (key, message) = message(context, name, event, version, locked);
                    messages.insert(key, message);
                }
            }
        }
        let mut schemas = json!({ "Detail": detail() });
        if is_personal(&messages) {
            schemas[PERSONAL] = personal();
        }
        let of_channel = messages.keys().map(|key| {
            let message = reference("messages", key);
            (key.clone(), message)
        });
        let contexts: Vec<_> = self.locks.keys().copied().collect();
        json!({
            "asyncapi": "3.0.0",
            "info": {
                "title": format!("Events: {}", contexts.join(", ")),
                "version": "1.0.0",
                "description": ABOUT,
            },
            "defaultContentType": "application/json",
            "channels": { "eventTopic": {
                "address": "{stack}-events",
                "title": "The EventTopic",
                "description": "An EventBridge bus: the output `EventTopicName` of the stack.",
                "parameters": { "stack": { "description": "The name of the CloudFormation stack." } },
                "messages": of_channel.collect::<Map<_, _>>(),
            } },
            "operations": { "publishEvents": {
                "action": "send",
                "channel": { "$ref": "#/channels/eventTopic" },
                "summary": "Every new event, at least once and in any order.",
            } },
            "components": { "messages": messages, "schemas": schemas },
        })
    }
}

const ABOUT: &str = "Every event is an entry of the bus. Its `source` is the context of the event, and its `detail-type` \
                     the type. The payload of a message here is the entry's `detail`. Entries come at least once and in \
                     any order: `id` tells duplicates, and `slot` orders the events of a `partition`. An event keeps the \
                     version with which it was written, so an old one that is sent again has its old shape. Objects can \
                     get more members.";

/// The key and the message of a version of a type. The key of the first version is the key of the type, so a new
/// version changes no other message.
fn message(
    context: &str,
    name: &str,
    event: &LockedType,
    version: u32,
    locked: &LockedVersion,
) -> (String, Value) {
    let newest = event.versions.keys().max();
    let of_version = if version == 1 { String::new() } else { format!(".{version}") };
    let key = format!("{context}.{name}{of_version}").replace(|c: char| !is_of_key(c), "_");
    let mut summary = format!("{name} of {context}");
    if newest.is_some_and(|newest| *newest > 1) {
        summary += &format!(", version {version}");
    }
    if event.retired || version < event.written() {
        summary += "; no slice writes it any more";
    } else if version > event.written() {
        summary += "; no slice writes it yet";
    }
    let mut data = sealed(open(locked.shape.schema()));
    let mut examples = locked.samples.clone();
    examples.iter_mut().for_each(|example| seal(&locked.shape, example));
    data["examples"] = examples.into();
    // Two fields can have one key.
    let keys: BTreeSet<_> = event.tags.iter().map(|tag| &tag.key).collect();
    let tag = json!({ "key": { "enum": keys }, "value": { "type": "string" } });
    let mut own = json!({ "type": { "const": name }, "data": data });
    if !keys.is_empty() {
        own["tags"] = json!({ "type": "array", "items": object(&tag, &[]) });
    }
    if version > 1 {
        own["schema"] = json!({ "const": version });
    }
    let headers = json!({
        "source": { "enum": [context, format!("replay.{context}")] },
        "detail-type": { "const": name },
    });
    let mut tags = vec![json!({ "name": context })];
    tags.extend(event.public.then(|| json!({ "name": "public" })));
    let message = json!({
        "name": name,
        "summary": summary,
        "tags": tags,
        "headers": object(&headers, &[]),
        "payload": { "allOf": [reference("schemas", "Detail"), object(&own, &[])] },
        "correlationId": { "location": "$message.payload#/meta/correlationId" },
    });
    (key, message)
}

/// The name of the schema of a personal value.
const PERSONAL: &str = "PersonalValue";

/// The schema of a payload whose personal values are as the log stores them. Null is not sealed where it means that
/// there is no value.
fn sealed(mut schema: Value) -> Value {
    let null = json!({ "type": "null" });
    match &mut schema {
        Value::Object(words) if words.get(KEYWORD) == Some(&true.into()) => {
            let can_be_null = words.get("anyOf").and_then(Value::as_array);
            let can_be_null = can_be_null.is_some_and(|any_of| any_of.contains(&null));
            let value = reference("schemas", PERSONAL);
            return if can_be_null { json!({ "anyOf": [value, null] }) } else { value };
        }
        Value::Object(words) => words.values_mut().for_each(|inner| *inner = sealed(inner.take())),
        Value::Array(all) => all.iter_mut().for_each(|inner| *inner = sealed(inner.take())),
        _ => {}
    }
    schema
}

fn is_personal(messages: &Map<String, Value>) -> bool {
    let name = json!(reference("schemas", PERSONAL)["$ref"]);
    messages.values().any(|message| message.to_string().contains(&name.to_string()))
}

/// The schema of a personal value.
fn personal() -> Value {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let of = text("The id of the person.");
    let sealed = json!({
        SEALED: text("The value, encrypted under a key of the person, in base64url."),
        OF: of,
        "k": { "type": "integer", "minimum": 1, "description": "The number of the person's key." },
    });
    let forgotten = json!({ FORGOTTEN: { "const": true }, OF: of });
    json!({
        "description": "A value about a person, sealed: only functions of the stack can read it, until the person is \
                        forgotten. It is forgotten if the event was written later.",
        "anyOf": [object(&sealed, &[]), object(&forgotten, &[])],
    })
}

/// Whether the keys of a document may have this character.
fn is_of_key(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')
}

/// The members that every event has.
fn detail() -> Value {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let name = json!({ "type": "string" });
    let meta = json!({
        "commandId": text("The command: its idempotency key, if it had one."),
        "correlationId": text("The flow of which the event is a part."),
        "causationId": text("The command or the event that led to it."),
        "traceparent": text("The span of the command, as the W3C's Trace Context writes it."),
        "principal": text("Who gave the command."),
        "slice": text("The slice that wrote it."),
        "by": text("What gave the command, if the stack gave it itself: a slice or a function."),
        "effectiveAt": text("When the command was made, if it was sent later."),
        "commandSha256": text("Tells another command under the same idempotency key."),
        "itemSha256": text("The same, if an item of the table is the record of the command."),
        "refusal": text("Why the command was rejected, as JSON, if its rejection left the event."),
    });
    // An event of another program or of an older version may lack any of them.
    let keys: Vec<_> = meta.as_object().into_iter().flatten().map(|(key, _)| &**key).collect();
    let mut recorded_at = text("When it was recorded, in UTC.");
    recorded_at["format"] = "date-time".into();
    let properties = json!({
        "id": text("Unique to the event, for deduplication."),
        "type": name,
        "partition": text("The partition that stores it."),
        "slot": { "type": "integer", "minimum": 0, "description": "Its number in the partition." },
        "recordedAt": recorded_at,
        "tags": { "type": "array", "items": object(&json!({ "key": name, "value": name }), &[]), "description": "What it is about." },
        "schema": { "type": "integer", "minimum": 2, "description": "The version of its payload; absent from version 1." },
        "data": { "description": "The payload." },
        "meta": object(&meta, &keys),
        "replay": text("The name of the replay that sends it again; absent from a new event."),
    });
    object(&properties, &["schema", "replay"])
}
