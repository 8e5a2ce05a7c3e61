//! Compares endpoints, with every operation and without a server.

use aws_sdk_dynamodb::config::{AppName, BehaviorVersion, Builder, Config, Region};
use aws_smithy_runtime_api::client::http::{
    HttpConnectorFuture, SharedHttpConnector, http_client_fn,
};
use aws_types::endpoint_config::AccountIdEndpointMode;

use super::*;

/// An HTTP client that records the requests, and answers each with nothing.
#[derive(Clone, Debug, Default)]
struct Kept(Arc<Mutex<Vec<Arrived>>>);

impl HttpConnector for Kept {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let headers = request.headers().iter().map(|(name, value)| format!("{name}: {value}"));
        let mut headers: Vec<_> = headers.collect();
        headers.sort();
        let body = request.body().bytes().unwrap_or_default();
        self.0.lock().expect("no panic").push(Arrived {
            connection: 0,
            line: format!("{} {}", request.method(), request.uri()),
            headers,
            body: String::from_utf8_lossy(body).into_owned(),
        });
        let status = 200.try_into().expect("a status");
        HttpConnectorFuture::ready(Ok(HttpResponse::new(status, SdkBody::from("{}"))))
    }
}

#[tokio::test]
async fn requests_go_where_the_sdk_sends_them() {
    let plain = || Credentials::new("AKID", "secret", None, None, "test");
    let of_account = || {
        let credentials = Credentials::builder().access_key_id("AKID").secret_access_key("secret");
        credentials.account_id("123456789012").provider_name("test").build()
    };
    let arn = "arn:aws:dynamodb:eu-west-1:210987654321:table/t";
    type With = fn(Builder) -> Builder;
    let rows: [(With, Credentials, &str, Option<&str>); 12] = [
        (|it| it, plain(), "t", Some("https://dynamodb.eu-west-1.amazonaws.com/")),
        (|it| it, of_account(), "t", Some("https://123456789012.ddb.eu-west-1.amazonaws.com/")),
        (|it| it, of_account(), arn, Some("https://210987654321.ddb.eu-west-1.amazonaws.com/")),
        (
            |it| it.account_id_endpoint_mode(AccountIdEndpointMode::Disabled),
            of_account(),
            "t",
            Some("https://dynamodb.eu-west-1.amazonaws.com/"),
        ),
        (
            |it| it.use_fips(true),
            plain(),
            "t",
            Some("https://dynamodb-fips.eu-west-1.amazonaws.com/"),
        ),
        (|it| it.use_dual_stack(true), plain(), "t", Some("https://dynamodb.eu-west-1.api.aws/")),
        (
            |it| it.region(Region::from_static("cn-north-1")),
            plain(),
            "t",
            Some("https://dynamodb.cn-north-1.amazonaws.com.cn/"),
        ),
        (
            |it| it.endpoint_url("http://localhost:80/a/%7e"),
            plain(),
            "t",
            Some("http://localhost:80/a/%7e/"),
        ),
        (
            |it| it.endpoint_url("https://[::1]:8443//a/./b/../c/"),
            plain(),
            "t",
            Some("https://[::1]:8443//a/./b/../c/"),
        ),
        (|it| it.endpoint_url("http://localhost:1").use_fips(true), plain(), "t", None),
        (|it| it.account_id_endpoint_mode(AccountIdEndpointMode::Required), plain(), "t", None),
        (|it| it.region(None), plain(), "t", None),
    ];
    for (with, credentials, table, url) in rows {
        let kept = Kept::default();
        let connector = SharedHttpConnector::new(kept.clone());
        let config = Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static("eu-west-1"))
            .credentials_provider(credentials)
            .time_source(Time::at(NOW_S))
            .app_name(AppName::new("shop").expect("a name"))
            .http_client(http_client_fn(move |_, _| connector.clone()));
        let client = Client::from_conf(with(config).build());
        let sender = Sender::new(client.clone(), table.to_owned(), &Time::at(NOW_S).0);
        let case = format!("{url:?}");
        let sent = all_operations(&kept.0, &client, &sender, &case).await;
        let lines: Vec<_> = sent.into_iter().map(|request| request.line).collect();
        let expected = url.map(|url| vec![format!("POST {url}"); 10]);
        assert_eq!(lines, expected.unwrap_or_default());
    }
}

/// Runs the test above with the variables that Lambda sets. By the id of their trace, AWS finds functions that invoke
/// each other without end.
#[test]
fn requests_of_a_function_have_what_the_sdk_adds_there() {
    let program = std::env::current_exe().expect("the test");
    let status = std::process::Command::new(program)
        .args(["send::tests::endpoints::requests_go_where_the_sdk_sends_them", "--exact"])
        .env("AWS_EXECUTION_ENV", "AWS_Lambda_provided.al2023")
        .env("AWS_LAMBDA_FUNCTION_NAME", "place-order")
        .env("_X_AMZN_TRACE_ID", "Root=1-5759e988-bd862e3fe1be46a994272793; Sampled=1")
        .status();
    assert!(status.expect("a program").success());
}
