//! `ringfence send`: sends a command to a slice.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::ExitCode;
use std::{fs, io};

use anyhow::{Context, Result};
use clap::Args;
use ringfence_new::near;
use ringfence_stack::{ContextInfo, SliceInfo, Stack};

use crate::api::{self, Answer, Api, IDEMPOTENCY_KEY};
use crate::{remark, say};

#[derive(Args)]
#[command(after_help = "\
Examples:
  ringfence send catalog/add-product --data @events/add-product/direct.json
  ringfence send --queue catalog/add-product --data @command.json --key import-17
  ringfence send --stack ringfence-dev catalog/add-product --data @command.json --key import-17")]
pub(crate) struct Arguments {
    /// The slice, as `<context>/<slice>`.
    slice: String,
    /// The command in JSON; `@<file>` reads it from a file, `@-` from standard input.
    #[arg(long, value_name = "JSON")]
    data: String,
    /// The idempotency key. Sent several times with the same key, the command takes effect once.
    #[arg(long)]
    key: Option<String>,
    /// Puts the command into the queue, and does not wait until it is carried out. `ringfence answer` shows its answer.
    #[arg(long = "queue")]
    by_queue: bool,
    /// The URL of the HTTP API. Without a token, a request to `https://` is signed with the credentials of the
    /// environment.
    #[arg(long, env = "API_URL", value_name = "URL", value_parser = api::url)]
    api: String,
    /// The caller's token, if the API asks for one.
    #[arg(long, env = "API_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

pub(crate) async fn send(arguments: &Arguments, stack: &Stack) -> Result<ExitCode> {
    let Arguments { slice, data, key, by_queue, api, token } = arguments;
    let scopes = route(slice, stack)?;
    let path = if *by_queue { format!("commands/{slice}") } else { slice.clone() };
    let key = key.iter().map(|key| (IDEMPOTENCY_KEY, &**key));
    let api = Api::at(api, token.as_deref()).await?;
    let answer = api.post(&path, &text(data)?, &key.collect::<Vec<_>>()).await?;
    say!("{}", answer.document);
    if let Some(why) = refused(&answer, scopes, token.is_some()) {
        remark!("{why}");
    }
    Ok(answer.code())
}

/// The scopes of a slice's route.
fn route(slice: &str, stack: &Stack) -> Result<&'static [&'static str]> {
    let SliceInfo { name, scopes, .. } = find(slice, stack)?;
    scopes.with_context(|| {
        format!(
            "{slice} has no route, because its CALLERS are Nobody: invoke the function {name} with the command, such as by \
             `sam remote invoke`"
        )
    })
}

/// Why the API refused a command before the slice saw it. API Gateway says it in a header, or not at all.
fn refused(answer: &Answer, scopes: &[&str], has_token: bool) -> Option<String> {
    let way = "`ringfence token` makes one for a stack on this machine, and gets one from a user pool with --stack";
    match (answer.status, has_token) {
        _ if answer.is_of_stack() => None,
        (401, false) => Some(format!("the API asks for a token: give --token or API_TOKEN; {way}")),
        (401, true) => {
            let why = answer.challenge.as_deref().unwrap_or("it does not say why");
            Some(format!("the API does not take the token: {why}"))
        }
        (403, true) => {
            let of_these = format!("one of these scopes: {}", scopes.join(" "));
            let needed = if scopes.is_empty() { "the scopes of its route" } else { &*of_these };
            Some(format!("the API does not let this token in: it needs {needed}"))
        }
        (403, false) => Some(
            "the API does not let these credentials in: they need execute-api:Invoke on the route"
                .to_owned(),
        ),
        _ => None,
    }
}

/// The text of `--data`: the value itself, the file of `@<file>`, or standard input for `@-`.
///
/// # Errors
/// The file can't be read.
pub fn text(data: &str) -> Result<String> {
    let mut text = match data.strip_prefix('@') {
        None => return Ok(data.to_owned()),
        Some("-") => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).context("reading standard input")?;
            text
        }
        Some(file) => fs::read_to_string(file).with_context(|| format!("reading {file}"))?,
    };
    // Editors of some systems write a byte order mark, which is not JSON.
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    Ok(text)
}

/// The slice of this name.
///
/// # Errors
/// No context has it.
pub(crate) fn find<'s>(slice: &str, stack: &'s Stack) -> Result<&'s SliceInfo> {
    let name = |context: &ContextInfo, of: &SliceInfo| format!("{}/{}", context.name, of.name);
    let all: BTreeMap<_, _> = stack.slices().map(|(context, of)| (name(context, of), of)).collect();
    let known = || all.keys().map(String::as_str).collect();
    let found = all.get(slice).copied();
    found.with_context(|| format!("no context has the slice {slice}{}", near(slice, &known())))
}

#[test]
fn the_reason_of_an_api_that_lets_nobody_in_is_said() {
    let answer = |status, challenge: Option<&str>| Answer {
        status,
        document: serde_json::json!({ "message": "Unauthorized" }),
        challenge: challenge.map(str::to_owned),
    };
    for (status, challenge, has_token, why) in [
        (401, None, false, "the API asks for a token: give --token or API_TOKEN"),
        (
            401,
            Some("Bearer error=\"x\""),
            true,
            "the API does not take the token: Bearer error=\"x\"",
        ),
        (403, None, true, "it needs one of these scopes: a/write b/write"),
        (403, None, false, "they need execute-api:Invoke"),
    ] {
        let said = refused(&answer(status, challenge), &["a/write", "b/write"], has_token);
        assert!(said.is_some_and(|said| said.contains(why)), "{status}");
    }
    assert_eq!(refused(&answer(500, None), &[], true), None);
}
