//! `ringfence token` makes tokens, and `ringfence token-check` tries good and bad ones on an API.
//!
//! They are signed by the key of stacks on one machine, which everybody has.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{ArgGroup, Args};
use ringfence_aws::Clock;
use ringfence_stack::Stack;
use ringfence_token::{AUDIENCE, ISSUER, TokenKey, token_cases};
use serde_json::json;

use crate::api::{self, Answer, Api};
use crate::say;

#[derive(Args)]
#[command(
    group = ArgGroup::new("of").required(true).multiple(true).args(["sub", "client_id", "jwks"]),
    after_help = "\
Examples:
  ringfence token --sub ada --scope ordering/write
  ringfence send ordering/cancel-order --data '{\"orderId\":\"o1\"}' --token \"$(ringfence token --sub ada --scope ordering/write)\""
)]
pub(crate) struct Arguments {
    /// The subject, which names the caller.
    #[arg(long)]
    sub: Option<String>,
    /// The program that the token is for.
    #[arg(long)]
    client_id: Option<String>,
    /// A scope. The flag can be repeated.
    #[arg(long = "scope")]
    scopes: Vec<String>,
    /// How long the token holds.
    #[arg(long, default_value_t = 60)]
    minutes: u64,
    #[command(flatten)]
    issuer: Issuer,
    /// Prints the public key instead, as a JSON Web Key Set.
    #[arg(long, conflicts_with_all = ["sub", "client_id", "scopes"])]
    jwks: bool,
}

/// What an API trusts.
#[derive(Args)]
struct Issuer {
    /// The issuer. Only an API for tests may trust the key under another name than this.
    #[arg(long, value_name = "URL", default_value = ISSUER)]
    issuer: String,
    /// The audience.
    #[arg(long, default_value = AUDIENCE)]
    audience: String,
}

fn now_s() -> u64 {
    Clock::system().now_ms() / 1_000
}

pub(crate) fn token(arguments: &Arguments) -> ExitCode {
    let Arguments { sub, client_id, scopes, minutes, issuer, jwks } = arguments;
    let (key, now_s) = (TokenKey::local(), now_s());
    if *jwks {
        say!("{:#}", key.jwks());
        return ExitCode::SUCCESS;
    }
    let mut claims = json!({
        "iss": issuer.issuer, "aud": issuer.audience, "iat": now_s, "exp": now_s + minutes * 60,
    });
    let scope = Some(scopes.join(" ")).filter(|scope| !scope.is_empty());
    let optional = [("sub", sub.clone()), ("client_id", client_id.clone()), ("scope", scope)];
    for (name, value) in optional {
        if let Some(value) = value {
            claims[name] = value.into();
        }
    }
    say!("{}", key.sign(&claims));
    ExitCode::SUCCESS
}

#[derive(Args)]
pub(crate) struct Check {
    /// A slice that asks for scopes, as `<context>/<slice>`. No request has a command that it takes.
    slice: String,
    /// The URL of the HTTP API, which trusts the key of `ringfence token --jwks`.
    #[arg(long, env = "API_URL", value_name = "URL", value_parser = api::url)]
    api: String,
    #[command(flatten)]
    issuer: Issuer,
}

pub(crate) async fn check(arguments: &Check, stack: &Stack) -> Result<ExitCode> {
    let Check { slice, api, issuer } = arguments;
    crate::send::check(slice, stack)?;
    let scope = crate::send::scopes(slice, stack).first();
    let scope = scope.with_context(|| format!("{slice} asks for no scopes"))?;
    let mut differ = 0;
    for case in token_cases(&issuer.issuer, &issuer.audience, scope, now_s()) {
        // The function answers that the body is no command, or the API in its place.
        let answer = Api::open(api, case.authorization)?.post(slice, "[]", &[]).await;
        let answer = answer.with_context(|| format!("{}: no answer", case.name))?;
        let Answer { status, .. } = answer;
        let is_right = match case.refused {
            None => answer.is_of_stack() && status == 400,
            Some(refused) => !answer.is_of_stack() && status == refused,
        };
        let expected = case.refused.map_or("is let in".to_owned(), |refused| refused.to_string());
        differ += u32::from(!is_right);
        let mark = if is_right { "ok   " } else { "WRONG" };
        say!("{mark} {}: {status}, expected: {expected}", case.name);
    }
    say!("{differ} differ");
    Ok(if differ == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
