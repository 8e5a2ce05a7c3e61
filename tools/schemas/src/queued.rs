//! Commands by the queue, in the document of the HTTP API.

use serde_json::{Map, Value, json};

use crate::document::{object, reference};
use crate::problems;

/// The name of the schema for the state of a queued command.
const QUEUED: &str = "QueuedCommand";

/// The tag of the operations.
const TAG: &str = "queue";

/// The longest id of a command.
pub(crate) const ID_CHARS_MAX: usize = 128;

/// The tag, with what it is for.
pub(crate) fn tag() -> Value {
    json!({ "name": TAG, "description": "Gives a command without waiting for it, and asks what became of it." })
}

/// The name and the schema for the state of a queued command.
pub(crate) fn schema() -> (String, Value) {
    let time = json!({ "type": "string", "format": "date-time" });
    let members = json!({
        "commandId": { "type": "string", "maxLength": ID_CHARS_MAX },
        "slice": { "type": "string", "description": "The slice, as `<context>/<slice>`." },
        "queuedAt": time,
        "state": {
            "enum": ["pending", "accepted", "rejected", "failed"],
            "description": "A command that `failed` had no answer after several tries, and `problem` says why. People may \
                            try it again.",
        },
        "answer": {
            "anyOf": [reference("schemas", "Accepted"), reference("schemas", problems::ANY)],
            "description": "What the slice has answered, of a command that is accepted or rejected.",
        },
        "tries": { "type": "integer", "minimum": 1, "description": "How often it had no answer." },
        "firstFailed": time,
        "problem": reference("schemas", problems::ANY),
    });
    (QUEUED.to_owned(), object(&members, &["answer", "tries", "firstFailed", "problem"]))
}

/// The paths of the queue. If any operation asks tokens for scopes, these may ask too.
pub(crate) fn paths(headers: &[Value], has_scopes: bool) -> Map<String, Value> {
    let part = |name: &str, chars_max: Option<usize>, about: &str| {
        let mut schema = json!({ "type": "string", "minLength": 1 });
        if let Some(max) = chars_max {
            schema["maxLength"] = max.into();
        }
        json!({ "name": name, "in": "path", "required": true, "schema": schema, "description": about })
    };
    let context = part("context", None, "The context of the slice.");
    let slice = part("slice", None, "The slice.");
    let known = |about: &str| {
        let content = json!({ "application/json": { "schema": reference("schemas", QUEUED) } });
        json!({ "description": about, "content": content })
    };
    let mut responses = problems::of_queue();
    if has_scopes {
        let missing = reference("responses", problems::SCOPE_MISSING);
        responses.insert("403".to_owned(), missing);
    }
    let mut given = responses.clone();
    given.insert("200".to_owned(), known("The command has its answer already."));
    let mut queued = known("The command is in the queue.");
    queued["headers"]["Location"] =
        json!({ "description": "Where to ask what became of it.", "schema": { "type": "string" } });
    given.insert("202".to_owned(), queued);
    let mut asked = responses;
    for status in ["413", "422", "504"] {
        asked.remove(status);
    }
    asked.insert("200".to_owned(), known("What is known of the command."));
    let parameters = [&[context, slice][..], headers].concat();
    let give = json!({
        "operationId": "queue-command",
        "tags": [TAG],
        "summary": "Puts a command into the queue, and does not wait until it is carried out.",
        "parameters": parameters,
        "requestBody": {
            "required": true,
            "content": { "application/json": { "schema": {
                "type": "object",
                "description": "What the slice takes at `/<context>/<slice>`.",
            } } },
        },
        "responses": given,
    });
    let id = part(
        "id",
        // Each character of the id can become three.
        Some(3 * ID_CHARS_MAX),
        "The id of the command: its `Idempotency-Key`, or the `commandId` of the answer. It is percent-encoded, and \
         then encoded once more as a part of the path, because the gateway decodes the path. `Location` has it so.",
    );
    let ask = json!({
        "operationId": "get-command",
        "tags": [TAG],
        "summary": "Says what became of a command that was put into the queue, to the caller who gave it.",
        "parameters": [id],
        "responses": asked,
    });
    let paths = [
        ("/commands/{context}/{slice}", json!({ "post": give })),
        ("/commands/{id}", json!({ "get": ask })),
    ];
    paths.map(|(path, item)| (path.to_owned(), item)).into_iter().collect()
}
