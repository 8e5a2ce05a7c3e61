//! `ringfence send`: gives a command to a slice.

use std::collections::BTreeSet;
use std::io::Read;
use std::process::ExitCode;
use std::{fs, io};

use anyhow::{Context, Result, ensure};
use clap::Args;
use ringfence_new::near;
use ringfence_stack::{ContextInfo, SliceInfo, Stack};

use crate::api::{self, Api, IDEMPOTENCY_KEY};
use crate::say;

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
    /// The idempotency key: however often the command is sent with it, it takes effect once.
    #[arg(long)]
    key: Option<String>,
    /// Puts the command into the queue, and does not wait until it is carried out. `ringfence answer` says what became of
    /// it.
    #[arg(long = "queue")]
    by_queue: bool,
    /// The URL of the HTTP API. Without a token, a request to `https://` is signed with the credentials of the
    /// environment.
    #[arg(long, env = "API_URL", value_name = "URL", value_parser = api::url)]
    api: String,
    /// A token of the caller, for an API that asks for tokens.
    #[arg(long, env = "API_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

pub(crate) async fn send(arguments: &Arguments, stack: &Stack) -> Result<ExitCode> {
    let Arguments { slice, data, key, by_queue, api, token } = arguments;
    check(slice, stack)?;
    let path = if *by_queue { format!("commands/{slice}") } else { slice.clone() };
    let key = key.iter().map(|key| (IDEMPOTENCY_KEY, &**key));
    let api = Api::at(api, token.as_deref()).await?;
    let answer = api.post(&path, &text(data)?, &key.collect::<Vec<_>>()).await?;
    say!("{}", answer.document);
    Ok(answer.code())
}

/// What `--data` gives: the text itself, `@<file>` or `@-`.
///
/// # Errors
/// The file can't be read.
pub fn text(data: &str) -> Result<String> {
    match data.strip_prefix('@') {
        None => Ok(data.to_owned()),
        Some("-") => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).context("reading standard input")?;
            Ok(text)
        }
        Some(file) => fs::read_to_string(file).with_context(|| format!("reading {file}")),
    }
}

/// Fails if no context has the slice.
pub(crate) fn check(slice: &str, stack: &Stack) -> Result<()> {
    let name =
        |(context, slice): (&ContextInfo, &SliceInfo)| format!("{}/{}", context.name, slice.name);
    let known: Vec<_> = stack.slices().map(name).collect();
    let known: BTreeSet<_> = known.iter().map(String::as_str).collect();
    ensure!(known.contains(slice), "no context has the slice {slice}{}", near(slice, &known));
    Ok(())
}
