//! Personal data of cases on DynamoDB: with the canary in each value, no place shows it, and a command about forgotten
//! persons has an answer.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::{self, Read, Seek};
use std::sync::Mutex;

use aws_smithy_types::base64;
use ringfence_aws::wire::Exchange;
use ringfence_core::kit::{CANARY, Case, fail};
use ringfence_core::{
    Context, Envelope, HandleError, LogError, LogName, LogOf, OnLog, Slice, VaultError, chain,
    refuses,
};
use ringfence_document_log::{Body, TipLimits};
use ringfence_lambda::slice::{Hosted, QueuedCommand};
use ringfence_lambda::{Issuers, Problem};
use ringfence_local::template::Template;
use ringfence_log::Log;
use ringfence_subjects::KeyTable;
use ringfence_template::written::table_of;
use serde_json::{Value, json};
use tracing::{Level, instrument::WithSubscriber};

use crate::dynamo::KEYS;
use crate::prepared::{open, prepared, tips_of};

/// A command has this long, in milliseconds.
const TIME_MS: u64 = 60_000;

/// The number of texts that were searched, by their kinds.
type Places = BTreeMap<&'static str, usize>;

/// Checks the personal data of a slice's cases, and prints what was searched.
pub(crate) async fn check_personal<S: Slice<Context: Context<Log: Log<S>>>>(template: &Template) {
    let (mut cases, mut searched, mut values, mut places) = (0, 0, 0, Places::new());
    for tips in tips_of(LogOf::<S>::KIND) {
        for case in S::cases().iter().filter(|case| case.personal_values() > 0) {
            (cases, values) = (cases + 1, values + case.personal_values());
            if let Some(case) = case.with_canary() {
                search(template, tips, &case, &mut places).await;
                searched += 1;
            }
            decide_forgotten(template, tips, case).await;
        }
    }
    if cases == 0 {
        return;
    }
    let found: Vec<_> = places.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    println!(
        "{}: {values} personal values in {cases} cases; {searched} cases show none in {}",
        S::NAME,
        found.join(", ")
    );
}

/// Sends the command of the case through the queue to its function. Panics if a place shows the canary. The bus and the
/// index get the items' images and nothing else.
async fn search<S: Slice<Context: Context<Log: Log<S>>>>(
    template: &Template,
    tips: Option<TipLimits>,
    case: &Case<S>,
    places: &mut Places,
) {
    let (dynamo, _) = prepared(template, tips, case).await;
    let mut search = |kind: &'static str, json: &Value| {
        *places.entry(kind).or_default() += 1;
        let text = readable(json);
        assert!(!text.contains(CANARY), "{}: {kind} with a personal value: {text}", case.at());
    };
    let hosted = Hosted::open::<S>(&dynamo.logs());
    let hosted = hosted.unwrap_or_else(|error| fail(S::NAME, error as Box<dyn std::error::Error>));
    let command = serde_json::to_value(case.command()).unwrap_or_else(|error| fail(S::NAME, error));
    let queued = match take(&hosted, command.clone()).await {
        Ok(queued) => {
            search("queued commands", &json!(queued));
            queued
        }
        // Only the stack itself sends it, with the form that its reactions make.
        Err(_) => {
            let queued =
                json!({ "slice": S::NAME, "commandId": "c", "group": "g", "command": command });
            serde_json::from_value(queued).unwrap_or_else(|error| fail(S::NAME, error))
        }
    };
    let until_ms = dynamo.clock.machine_ms() + TIME_MS;
    // The second run finds the record of the first.
    for _ in 0..2 {
        let run = traced(hosted.run(&queued, until_ms, "request")).await;
        let ((answer, line), traced) = run.unwrap_or_else(|error| fail("tracing", error));
        search("answers", &answer.unwrap_or_else(Problem::document));
        search("lines of the log", &line.json);
        traced.lines().for_each(|line| search("traced lines", &json!(line)));
    }
    for table in [table_of(LogOf::<S>::KIND), KEYS] {
        dynamo.items(table).await;
    }
    for Exchange { request, answer, .. } in dynamo.wire.take() {
        search("requests", &request);
        search("answers of DynamoDB", &answer);
    }
}

/// Does the work. Returns also what it and its dependencies write by `tracing`, at each level.
async fn traced<T>(work: impl Future<Output = T>) -> io::Result<(T, String)> {
    let (mut file, mut text) = (tempfile::tempfile()?, String::new());
    let writer = Mutex::new(file.try_clone()?);
    let lines = tracing_subscriber::fmt().with_max_level(Level::TRACE).with_writer(writer);
    let done = work.with_subscriber(lines.finish()).await;
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok((done, text))
}

/// The command as run-commands puts it into the queue.
async fn take(hosted: &Hosted, mut command: Value) -> Result<QueuedCommand, Problem> {
    ringfence_core::personal::show(&mut command);
    let request = json!({
        "version": "2.0", "headers": { "Idempotency-Key": "c" }, "body": command.to_string(),
        "requestContext": { "http": { "method": "POST", "path": "/" } }, "isBase64Encoded": false,
    });
    let request = serde_json::from_value(request).unwrap_or_else(|error| fail("a request", error));
    hosted.take(request, &Issuers::default(), "request").await
}

/// JSON of DynamoDB as text. A document's body can be compressed.
fn readable(json: &Value) -> String {
    let mut text = json.to_string();
    let mut open = vec![json];
    while let Some(json) = open.pop() {
        if let Some(bytes) = json["B"].as_str().and_then(|text| base64::decode(text).ok()) {
            for encoding in 0..3 {
                let unpacked = Body { encoding, bytes: bytes.clone() }.unpacked();
                let _ = write!(text, " {}", String::from_utf8_lossy(&unpacked.unwrap_or_default()));
            }
        }
        match json {
            Value::Object(fields) => open.extend(fields.values()),
            Value::Array(values) => open.extend(values),
            _ => {}
        }
    }
    text
}

/// Decides the case after all persons of its facts were forgotten: the answer is a rejection, events, or that the
/// command is about a forgotten person.
async fn decide_forgotten<S: Slice<Context: Context<Log: Log<S>>>>(
    template: &Template,
    tips: Option<TipLimits>,
    case: &Case<S>,
) {
    let (dynamo, table) = prepared(template, tips, case).await;
    let keys = KeyTable::new(dynamo.client.clone(), KEYS, dynamo.clock.clone());
    for item in dynamo.items(KEYS).await {
        let subject = item["p"].as_s().ok().and_then(|p| p.strip_prefix("subject#"));
        if let Some(subject) = subject {
            let forgotten = keys.forget(subject, dynamo.clock.now_ms(), "a case").await;
            forgotten.unwrap_or_else(|error| fail(KEYS, error));
        }
    }
    let envelope = Envelope { context: case.context().clone(), ..Envelope::default() };
    match open::<S>(&table, 0).handle(case.command(), &envelope).await {
        Ok(_) => {}
        Err(HandleError::Log(LogError::Vault(VaultError::Forgotten(of))))
            if refuses(case.command(), case.context(), &of) => {}
        Err(error) => panic!("{}: with forgotten persons: {}", case.at(), chain(&error)),
    }
}

#[cfg(test)]
mod tests;
