//! `ringfence answer`: says what became of a command that was put into the queue.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::api::{self, Api};
use crate::out::FAILED;
use crate::say;
use crate::service::encoded;

#[derive(Args)]
#[command(after_help = "\
The stack says it only to the caller who gave the command.

Examples:
  ringfence answer import-17
  ringfence answer --stack ringfence-dev import-17")]
pub(crate) struct Arguments {
    /// The id of the command: its key, or else the `commandId` that was answered.
    id: String,
    /// The URL of the HTTP API. Without a token, a request to `https://` is signed with the credentials of the
    /// environment.
    #[arg(long, env = "API_URL", value_name = "URL", value_parser = api::url)]
    api: String,
    /// A token of the caller, for an API that asks for tokens.
    #[arg(long, env = "API_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

pub(crate) async fn answer(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { id, api, token } = arguments;
    let api = Api::at(api, token.as_deref()).await?;
    let part = |text: &str| encoded(text).replace('/', "%2F");
    // API Gateway decodes it once, and the stack decodes what is left.
    let answer = api.get(&format!("commands/{}", part(&part(id)))).await?;
    say!("{}", answer.document);
    let waits = answer.state() == Some("pending");
    Ok(if waits { ExitCode::from(FAILED) } else { answer.code() })
}
