//! `ringfence token` makes tokens. The key of stacks on one machine signs them, and everybody has that key.

use std::process::ExitCode;

use clap::{ArgGroup, Args};
use ringfence_aws::Clock;
use ringfence_token::{AUDIENCE, ISSUER, TokenKey};
use serde_json::json;

use crate::say;

/// A token is valid for this many seconds.
const HOLDS_S: u64 = 3_600;

#[derive(Args)]
#[command(
    group = ArgGroup::new("of").required(true).multiple(true).args(["sub", "client_id"]),
    after_help = "\
Examples:
  ringfence token --sub ada --scope ordering/write
  ringfence send ordering/cancel-order --data '{\"orderId\":\"o1\"}' --token \"$(ringfence token --sub ada --scope ordering/write)\""
)]
pub(crate) struct Arguments {
    /// The subject, which names the caller.
    #[arg(long)]
    sub: Option<String>,
    /// The id of the program that uses the token.
    #[arg(long)]
    client_id: Option<String>,
    /// A scope. Repeat the flag for several scopes.
    #[arg(long = "scope")]
    scopes: Vec<String>,
}

pub(crate) fn token(arguments: &Arguments) -> ExitCode {
    let Arguments { sub, client_id, scopes } = arguments;
    let now_s = Clock::system().now_ms() / 1_000;
    let mut claims = json!({
        "iss": ISSUER, "aud": AUDIENCE, "iat": now_s, "exp": now_s + HOLDS_S,
    });
    let scope = Some(scopes.join(" ")).filter(|scope| !scope.is_empty());
    let optional = [("sub", sub.clone()), ("client_id", client_id.clone()), ("scope", scope)];
    for (name, value) in optional {
        if let Some(value) = value {
            claims[name] = value.into();
        }
    }
    say!("{}", TokenKey::local().sign(&claims));
    ExitCode::SUCCESS
}
