//! `ringfence token` makes tokens for stacks on one machine, whose key everybody has, and gets tokens from the user pool
//! of a stack on AWS.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use ringfence_aws::Clock;
use ringfence_token::{AUDIENCE, ISSUER, TokenKey};
use serde_json::{Value, json};

use crate::machine::sdk_config;
use crate::say;
use crate::service::{Answer, COGNITO, Service, encoded};

/// A token of this machine is valid for this many seconds.
const HOLDS_S: u64 = 3_600;

#[derive(Args)]
#[command(after_help = "\
Examples:
  ringfence token --sub ada --scope ordering/write
  ringfence send ordering/cancel-order --data '{\"orderId\":\"o1\"}' --token \"$(ringfence token --sub ada --scope ordering/write)\"
  ringfence token --stack ringfence-dev")]
pub(crate) struct Arguments {
    /// The subject, which names the caller of a stack on this machine.
    #[arg(long)]
    sub: Option<String>,
    /// The id of the program that uses the token, on this machine.
    #[arg(long)]
    client_id: Option<String>,
    /// A scope. Repeat the flag for several scopes. Without one, a user pool gives all scopes of the stack.
    #[arg(long = "scope")]
    scopes: Vec<String>,
    /// The user pool of a stack on AWS.
    #[arg(long, env = "USER_POOL_ID", hide = true)]
    user_pool: Option<String>,
    /// The program in the user pool.
    #[arg(long, env = "USER_POOL_CLIENT_ID", hide = true)]
    user_pool_client: Option<String>,
    /// The URL where programs get tokens of the user pool.
    #[arg(long, env = "TOKEN_URL", hide = true)]
    token_url: Option<String>,
}

pub(crate) async fn token(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { sub, client_id, scopes, user_pool, user_pool_client, token_url } = arguments;
    let is_named = sub.is_some() || client_id.is_some();
    let token = match (user_pool, user_pool_client, token_url) {
        (Some(_), Some(_), Some(_)) if is_named => bail!(
            "--sub and --client-id are for a stack on this machine: leave them out, because the user pool gives the token \
             of its program"
        ),
        (Some(pool), Some(client), Some(url)) => {
            let service = Service::of(&sdk_config().await?, COGNITO).await?;
            of_pool(&service, pool, client, url, scopes).await?
        }
        _ if is_named => of_machine(sub.as_deref(), client_id.as_deref(), scopes),
        _ => bail!(
            "give --sub or --client-id for a stack on this machine, or --stack for one on AWS that makes a user pool; if \
             JwtIssuer names the issuer of a stack, ask that issuer"
        ),
    };
    say!("{token}");
    Ok(ExitCode::SUCCESS)
}

fn of_machine(sub: Option<&str>, client_id: Option<&str>, scopes: &[String]) -> String {
    let now_s = Clock::system().now_ms() / 1_000;
    let mut claims = json!({
        "iss": ISSUER, "aud": AUDIENCE, "iat": now_s, "exp": now_s + HOLDS_S,
    });
    let scope = scopes.join(" ");
    let scope = Some(&*scope).filter(|scope| !scope.is_empty());
    for (name, value) in [("sub", sub), ("client_id", client_id), ("scope", scope)] {
        if let Some(value) = value {
            claims[name] = value.into();
        }
    }
    TokenKey::local().sign(&claims)
}

/// A token for the program of a user pool. Everybody who may read the program's secret can get one.
async fn of_pool(
    cognito: &Service,
    pool: &str,
    client: &str,
    url: &str,
    scopes: &[String],
) -> Result<String> {
    let reading = || format!("reading the secret of the client {client} of the user pool {pool}");
    let headers = [
        ("content-type", "application/x-amz-json-1.1"),
        ("x-amz-target", "AWSCognitoIdentityProviderService.DescribeUserPoolClient"),
    ];
    let body = json!({ "UserPoolId": pool, "ClientId": client }).to_string();
    let described = cognito.call("POST", "/", &headers, &body).await;
    let described = described.and_then(Answer::accepted).with_context(reading)?;
    let described: Value = serde_json::from_str(&described).with_context(reading)?;
    let secret = described["UserPoolClient"]["ClientSecret"].as_str();
    let secret = secret.context("it has none").with_context(reading)?;

    let mut form = format!(
        "grant_type=client_credentials&client_id={}&client_secret={}",
        encoded(client),
        encoded(secret)
    );
    if !scopes.is_empty() {
        form += &format!("&scope={}", encoded(&scopes.join(" ")));
    }
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let answer = Service::unsigned(url)?.call("POST", "", &headers, &form).await?;
    let text = answer.accepted().with_context(|| format!("getting a token from {url}"))?;
    let answer: Value = serde_json::from_str(&text).with_context(|| format!("{url}: not JSON"))?;
    let token = answer["access_token"].as_str();
    token.map(str::to_owned).with_context(|| format!("{url}: the answer has no access_token"))
}

#[tokio::test]
async fn a_user_pool_gives_a_token_for_the_secret_of_its_program() {
    use axum::{Router, extract::Request, http::StatusCode, routing::post};

    let text = async |request: Request| {
        let bytes = axum::body::to_bytes(request.into_body(), 10_000).await.expect("a body");
        String::from_utf8(bytes.to_vec()).expect("a text")
    };
    let describe = async move |request: Request| {
        assert_eq!(request.headers()["content-type"], "application/x-amz-json-1.1");
        let target = request.headers()["x-amz-target"].to_str().expect("a text").to_owned();
        let asked: Value = serde_json::from_str(&text(request).await).expect("JSON");
        assert_eq!(asked, json!({ "UserPoolId": "eu_1", "ClientId": "c1" }));
        assert_eq!(target, "AWSCognitoIdentityProviderService.DescribeUserPoolClient");
        r#"{"UserPoolClient":{"ClientSecret":"a+b/c&"}}"#
    };
    let give = async move |request: Request| {
        let form = text(request).await;
        let all = "grant_type=client_credentials&client_id=c1&client_secret=a%2Bb/c%26";
        match form.strip_prefix(all) {
            Some("") => (StatusCode::OK, r#"{"access_token":"all"}"#),
            Some("&scope=a/read%20a/write") => (StatusCode::OK, r#"{"access_token":"two"}"#),
            _ => (StatusCode::BAD_REQUEST, r#"{"error":"invalid_scope"}"#),
        }
    };
    let router = Router::new().route("/", post(describe)).route("/oauth2/token", post(give));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });

    let cognito = Service::unsigned(&url).expect("a client");
    let token_url = format!("{url}/oauth2/token");
    let get = async |scopes: &[&str]| {
        let scopes: Vec<_> = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        of_pool(&cognito, "eu_1", "c1", &token_url, &scopes)
            .await
            .map_err(|error| format!("{error:#}"))
    };
    assert_eq!(get(&[]).await.as_deref(), Ok("all"));
    assert_eq!(get(&["a/read", "a/write"]).await.as_deref(), Ok("two"));
    let refused = format!("getting a token from {token_url}: 400: {{\"error\":\"invalid_scope\"}}");
    assert_eq!(get(&["other"]).await, Err(refused));
}
