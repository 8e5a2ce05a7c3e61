//! The answers of the HTTP API that are not a success: problem documents (RFC 9457), as docs/answers.md lists them.

use serde_json::{Map, Value, json};

use crate::document::{object, reference};

/// The beginning of each problem's type.
const PROBLEM: &str = "urn:ringfence:problem:";

/// A status and its problems.
struct Answer {
    status: u16,
    /// The name of its response and of its schema.
    name: &'static str,
    kinds: &'static [&'static str],
    about: &'static str,
}

impl Answer {
    /// Whether the gateway also answers with this status. The function may still have carried out the command.
    fn is_of_gateway_too(&self) -> bool {
        matches!(self.status, 413 | 500 | 503 | 504)
    }
}

const KEY_REUSED: Answer = Answer {
    status: 422,
    name: "KeyReused",
    kinds: &["key-reused"],
    about: "The idempotency key belongs to another command.",
};
const KEY_REUSED_CODE: &str = "IdempotencyKeyReused";
/// The kind and the code of the answer to a command with personal data of somebody who is forgotten. It has the same
/// status.
const FORGOTTEN: (&str, &str) = ("subject-forgotten", "SubjectForgotten");
const MALFORMED: Answer = Answer {
    status: 400,
    name: "Malformed",
    kinds: &["malformed"],
    about: "A field or a parameter is missing, unknown, wrong or given twice.",
};
const OF_COMMANDS: [Answer; 6] = [
    MALFORMED,
    Answer {
        status: 409,
        name: "Contention",
        kinds: &["contention"],
        about: "Others kept changing what the decision read. Nothing is written; repeat the command.",
    },
    Answer {
        status: 413,
        name: "TooLarge",
        kinds: &["too-large"],
        about: "The command needs more than an event or a transaction holds.",
    },
    Answer {
        status: 500,
        name: "Internal",
        kinds: &["internal"],
        about: "A defect. The cause is in the log of the function. If the gateway answers, the command may have taken \
                effect.",
    },
    Answer {
        status: 503,
        name: "Unavailable",
        kinds: &["throttled", "unavailable", "unknown-type", "newer-version"],
        about: "The log is busy, does not answer, or has an event that this function does not know yet. Nothing is \
                written. If the gateway answers, the command may have taken effect. Repeat it with its idempotency key.",
    },
    Answer {
        status: 504,
        name: "OutcomeUnknown",
        kinds: &["outcome-unknown"],
        about: "The command may have taken effect. Repeat it with the same idempotency key.",
    },
];
const OF_QUEUE: Answer = Answer {
    status: 404,
    name: "QueueNotFound",
    kinds: &["command-not-found", "slice-not-found"],
    about: "There is no such slice, or the caller has given no command of this id.",
};
const OF_VIEWS: [Answer; 4] = [
    MALFORMED,
    Answer {
        status: 404,
        name: "NotFound",
        kinds: &["row-not-found", "view-not-found"],
        about: "There is no such row, or no such view.",
    },
    Answer {
        status: 500,
        name: "RowProblem",
        kinds: &["row-parked", "internal"],
        about: "The view could not keep the row, or a defect.",
    },
    Answer {
        status: 503,
        name: "ViewNotReady",
        kinds: &["view-behind", "view-building", "unavailable"],
        about: "The view does not show the event yet, is being built, or does not answer. Repeat the request.",
    },
];
/// The name of the schema for a problem of any type.
pub(crate) const ANY: &str = "Problem";
/// The name of the gateway's own answers.
const GATEWAY: &str = "Gateway";

/// The name of the answer to a token without a scope that the operation needs, as a response and as a schema.
pub(crate) const SCOPE_MISSING: &str = "ScopeMissing";

/// The schemas and the response for a token without a needed scope.
pub(crate) fn scope_missing() -> ([(String, Value); 2], Value) {
    let code = json!({ "code": { "const": SCOPE_MISSING } });
    let about = "The token has none of the scopes that the operation names.";
    // The gateway answers in place of the function if it knows the scopes.
    let response = of_both(about, SCOPE_MISSING);
    let schema = problem(403, &["scope-missing"], code, &[]);
    ([(SCOPE_MISSING.to_owned(), schema), both(SCOPE_MISSING)], response)
}

/// The responses that every command has, by status, without success and rejection.
pub(crate) fn of_commands() -> Map<String, Value> {
    refs(&OF_COMMANDS)
}

/// The responses that every view has, by status, without success.
pub(crate) fn of_views() -> Map<String, Value> {
    refs(&OF_VIEWS)
}

/// The responses of commands by the queue, by status, without success.
pub(crate) fn of_queue() -> Map<String, Value> {
    let of_commands =
        OF_COMMANDS.iter().filter(|answer| matches!(answer.status, 400 | 413 | 503 | 504));
    let mut responses = refs(of_commands.chain([&OF_QUEUE]));
    let reused = response(KEY_REUSED.about, &reference("schemas", KEY_REUSED.name));
    responses.insert(KEY_REUSED.status.to_string(), reused);
    responses
}

fn refs<'a>(answers: impl IntoIterator<Item = &'a Answer>) -> Map<String, Value> {
    let all = answers
        .into_iter()
        .map(|answer| (answer.status.to_string(), reference("responses", answer.name)));
    all.chain([("default".to_owned(), reference("responses", GATEWAY))]).collect()
}

/// The responses to which paths refer.
pub(crate) fn responses() -> Map<String, Value> {
    let all = OF_COMMANDS.iter().chain(&OF_VIEWS).chain([&OF_QUEUE]).map(|answer| {
        let mut response = match answer.is_of_gateway_too() {
            true => of_both(answer.about, answer.name),
            false => response(answer.about, &reference("schemas", answer.name)),
        };
        if matches!(answer.status, 409 | 503) {
            let seconds = json!({ "type": "integer", "minimum": 1 });
            response["headers"]["Retry-After"] =
                json!({ "description": "Seconds until the next try.", "schema": seconds });
        }
        (answer.name.to_owned(), response)
    });
    let gateway = json!({
        "description": "The gateway answers in place of a function: 401 without a right token, 403 without a scope or a \
                        right signature, 429 if there are too many requests.",
        "content": { "application/json": { "schema": reference("schemas", GATEWAY) } },
    });
    all.chain([(GATEWAY.to_owned(), gateway)]).collect()
}

/// A response with a problem document of this schema.
pub(crate) fn response(about: &str, schema: &Value) -> Value {
    json!({ "description": about, "content": { "application/problem+json": { "schema": schema } } })
}

/// A response of the function, which is a problem with the schema of this name, or of the gateway. Many clients have
/// one type for each status, from the first content. So both contents have one schema.
fn of_both(about: &str, name: &str) -> Value {
    let schema = reference("schemas", &or_gateway(name));
    let mut both = response(about, &schema);
    both["content"]["application/json"] = json!({ "schema": schema });
    both
}

/// The name of the schema that [`both`] makes.
fn or_gateway(name: &str) -> String {
    format!("{name}Or{GATEWAY}")
}

/// The name and the schema of a problem, or of the gateway's answer in its place.
fn both(name: &str) -> (String, Value) {
    let schema = json!({ "anyOf": [reference("schemas", name), reference("schemas", GATEWAY)] });
    (or_gateway(name), schema)
}

/// The schemas of all problems except rejections. `is_personal` says whether a command has personal data.
pub(crate) fn schemas(is_personal: bool) -> Map<String, Value> {
    let text = json!({ "type": "string" });
    let place = reference("schemas", "Checkpoint");
    let all = OF_COMMANDS.iter().chain(&OF_VIEWS).chain([&OF_QUEUE, &KEY_REUSED]).map(|answer| {
        let (more, optional): (Value, &[&str]) = match answer.name {
            "Malformed" => {
                let error = object(&json!({ "field": text, "message": text }), &[]);
                (json!({ "errors": { "type": "array", "items": error } }), &[])
            }
            "KeyReused" if is_personal => {
                (json!({ "code": { "enum": [KEY_REUSED_CODE, FORGOTTEN.1] } }), &[])
            }
            "KeyReused" => (json!({ "code": { "const": KEY_REUSED_CODE } }), &[]),
            "RowProblem" => (json!({ "id": text, "asOf": place }), &["id", "asOf"]),
            "ViewNotReady" => {
                let place = json!({ "anyOf": [place, { "type": "null" }] });
                (json!({ "view": text, "asOf": place, "until": place }), &["view", "asOf", "until"])
            }
            _ => (json!({}), &[]),
        };
        let forgotten = (is_personal && answer.name == "KeyReused").then_some(FORGOTTEN.0);
        let kinds: Vec<_> = answer.kinds.iter().copied().chain(forgotten).collect();
        (answer.name.to_owned(), problem(answer.status, &kinds, more, optional))
    });
    let gateway = object(&json!({ "message": text }), &[]);
    let of_both = OF_COMMANDS.iter().chain(&OF_VIEWS).filter(|answer| answer.is_of_gateway_too());
    let of_both = of_both.map(|answer| both(answer.name));
    all.chain(of_both).chain([(GATEWAY.to_owned(), gateway)]).collect()
}

/// The schema of a rejection with one of these codes, and of the answer to a key that belongs to another command. Both
/// have one status, and the code says which it is. So has the answer about a forgotten person.
pub(crate) fn rejection<'a>(codes: impl Iterator<Item = &'a str>, is_personal: bool) -> Value {
    let event = reference("schemas", "EventRef");
    let (kind, code) = is_personal.then_some(FORGOTTEN).unzip();
    let codes: Vec<_> = codes.chain([KEY_REUSED_CODE]).chain(code).collect();
    let kinds: Vec<_> = ["rejected", KEY_REUSED.kinds[0]].into_iter().chain(kind).collect();
    let more = json!({
        "code": { "enum": codes },
        "events": { "type": "array", "items": event, "description": "The events that the rejection left." },
        "repeated": { "const": true, "description": "The answer of the first run under the idempotency key." },
    });
    problem(422, &kinds, more, &["events", "repeated"])
}

/// The name and the schema of a problem of any type.
pub(crate) fn any() -> (String, Value) {
    let text = json!({ "type": "string" });
    let members = json!({
        "type": text, "title": text, "status": { "type": "integer" }, "detail": text, "code": text,
        "events": { "type": "array", "items": reference("schemas", "EventRef") },
    });
    (ANY.to_owned(), object(&members, &["code", "events"]))
}

/// The schema of a problem document with these members besides the common ones.
fn problem(status: u16, kinds: &[&str], mut members: Value, optional: &[&str]) -> Value {
    let types: Vec<_> = kinds.iter().map(|kind| format!("{PROBLEM}{kind}")).collect();
    members["type"] = json!({ "enum": types });
    members["title"] = json!({ "type": "string" });
    members["status"] = json!({ "const": status });
    members["detail"] = json!({ "type": "string", "description": "What is wrong, for a person." });
    object(&members, optional)
}
