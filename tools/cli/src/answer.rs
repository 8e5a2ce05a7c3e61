//! `ringfence answer`: shows the answer of a queued command.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::api::{self, Api};
use crate::out::FAILED;
use crate::say;
use crate::service::encoded;

#[derive(Args)]
#[command(after_help = "\
The stack shows the answer only to the caller who gave the command.

Examples:
  ringfence answer import-17
  ringfence answer --stack ringfence-dev import-17")]
pub(crate) struct Arguments {
    /// The command's id: its key, or the `commandId` of the answer if it had no key.
    id: String,
    /// The URL of the HTTP API. Without a token, a request to `https://` is signed with the credentials of the
    /// environment.
    #[arg(long, env = "API_URL", value_name = "URL", value_parser = api::url)]
    api: String,
    /// The caller's token, if the API asks for one.
    #[arg(long, env = "API_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

pub(crate) async fn answer(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { id, api, token } = arguments;
    let api = Api::at(api, token.as_deref()).await?;
    let part = |text: &str| encoded(text).replace('/', "%2F");
    // API Gateway decodes the path once, and the stack decodes it again.
    let answer = api.get(&format!("commands/{}", part(&part(id)))).await?;
    say!("{}", answer.document);
    let waits = answer.state() == Some("pending");
    Ok(if waits { ExitCode::from(FAILED) } else { answer.code() })
}
