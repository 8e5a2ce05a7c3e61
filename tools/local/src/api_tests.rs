use std::sync::Mutex;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use ringfence_token::{AUDIENCE, ISSUER, token_cases};

use super::*;

/// A function that gives every event the same answer, or no answer if that is null. It records the payloads.
struct Fake {
    answer: fn() -> Result<Value, InvokeError>,
    given: Mutex<Vec<(String, Value)>>,
}

impl Invoke for Fake {
    async fn invoke(&self, function: &str, payload: &Value) -> Result<Value, InvokeError> {
        self.given.lock().expect("a lock").push((function.to_owned(), payload.clone()));
        match (self.answer)() {
            Ok(Value::Null) => std::future::pending().await,
            answer => answer,
        }
    }
}

async fn start(answer: fn() -> Result<Value, InvokeError>) -> (String, Arc<Fake>) {
    start_with(Authorizer::default(), answer).await
}

async fn start_with(
    authorizer: Authorizer,
    answer: fn() -> Result<Value, InvokeError>,
) -> (String, Arc<Fake>) {
    let route = |method: &str, path: &str| Route {
        method: method.to_owned(),
        path: path.to_owned(),
        function: "place-order".to_owned(),
        token_scopes: Some(vec!["orders/write".to_owned()]),
    };
    let routes = [
        route("POST", "/ordering/place-order"),
        route("ANY", "/orders/{id}"),
        route("GET", "/f/{rest+}"),
        route("GET", "/{view}"),
        route("GET", "/{view}/{id+}"),
    ];
    let fake = Arc::new(Fake { answer, given: Mutex::default() });
    let router = router(&routes, &fake, &Notices::default(), &authorizer);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    (url, fake)
}

async fn post(url: String, kind: &str, body: impl Into<reqwest::Body>) -> (u16, String) {
    let client = reqwest::Client::new();
    let request = client.post(url).header("content-type", kind).header("X-A", "1");
    let answer = request.header("X-A", "2").body(body).send().await.expect("an answer");
    (answer.status().as_u16(), answer.text().await.expect("a body"))
}

fn ok() -> Result<Value, InvokeError> {
    Ok(json!({
        "statusCode": 422,
        "headers": { "content-type": "application/problem+json" },
        "body": "{}",
        "isBase64Encoded": false,
    }))
}

#[tokio::test]
async fn request_becomes_an_event_of_format_2() {
    let (url, fake) = start(ok).await;
    let path = "/ordering/place-order";
    let answer =
        post(format!("{url}{path}?a=1&b=x%20y&a=2"), "application/json", "{\"a\":1}").await;
    assert_eq!(answer, (422, "{}".to_owned()));
    let given = fake.given.lock().expect("a lock");
    let (function, event) = &given[0];
    assert_eq!(function, "place-order");
    assert_eq!(event["version"], "2.0");
    assert_eq!(event["routeKey"], "POST /ordering/place-order");
    assert_eq!(event["rawPath"], path);
    assert_eq!(event["rawQueryString"], "a=1&b=x%20y&a=2");
    assert_eq!(event["queryStringParameters"], json!({ "a": "1,2", "b": "x y" }));
    assert_eq!(event["headers"]["x-a"], "1,2");
    assert_eq!(event["requestContext"]["http"]["method"], "POST");
    assert_eq!(event["requestContext"]["http"]["sourceIp"], "127.0.0.1");
    assert_eq!(event["body"], "{\"a\":1}");
    assert_eq!(event["isBase64Encoded"], false);
}

#[tokio::test]
async fn a_path_that_is_not_utf_8_is_a_problem() {
    let (url, _) = start(ok).await;
    for path in ["/projects/%FF", "/%FF"] {
        let answer = reqwest::get(format!("{url}{path}")).await.expect("an answer");
        assert_eq!(answer.status(), 400);
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
        let problem: Value = answer.json().await.expect("JSON");
        assert_eq!(problem["detail"], "path: is not UTF-8 when it is decoded");
        assert_eq!(problem["errors"][0]["field"], "path");
    }
}

#[tokio::test]
async fn other_content_types_come_in_base64() {
    let (url, fake) = start(ok).await;
    let url = format!("{url}/ordering/place-order");
    post(url.clone(), "application/x-www-form-urlencoded", "a=1").await;
    post(url.clone(), "application/json", vec![0xff]).await;
    post(url.clone(), "application/merge-patch+json", "{}").await;
    reqwest::Client::new().post(url).body("{}").send().await.expect("an answer");
    let given = fake.given.lock().expect("a lock");
    let bodies: Vec<_> = given.iter().map(|(_, e)| (&e["body"], &e["isBase64Encoded"])).collect();
    let expected = ["YT0x", "/w==", "e30=", "e30="].map(|body| (json!(body), json!(true)));
    assert_eq!(bodies, expected.each_ref().map(|(body, is)| (body, is)));
}

#[tokio::test]
async fn path_parameters_are_filled() {
    let (url, fake) = start(ok).await;
    let client = reqwest::Client::new();
    for path in ["/orders/o%201", "/f/a/b", "/rosters", "/rosters/c%2F1/s", "/orders/a%3Fb%253F"] {
        client.get(format!("{url}{path}")).send().await.expect("an answer");
    }
    let given = fake.given.lock().expect("a lock");
    assert_eq!(given[0].1["pathParameters"], json!({ "id": "o 1" }));
    assert_eq!(given[0].1["routeKey"], "ANY /orders/{id}");
    assert_eq!(given[1].1["pathParameters"], json!({ "rest": "a/b" }));
    assert_eq!(given[2].1["pathParameters"], json!({ "view": "rosters" }));
    assert_eq!(given[3].1["pathParameters"], json!({ "view": "rosters", "id": "c/1/s" }));
    assert_eq!(given[3].1["routeKey"], "GET /{view}/{id+}");
    // AWS splits the decoded path.
    assert_eq!(given[4].1["pathParameters"], json!({ "id": "a" }));
}

#[tokio::test]
async fn unknown_path_or_method_is_not_found() {
    let (url, fake) = start(ok).await;
    let not_found = (404, "{\"message\":\"Not Found\"}".to_owned());
    assert_eq!(post(format!("{url}/nowhere"), "text/plain", "").await, not_found);
    assert_eq!(post(format!("{url}/f/x"), "text/plain", "").await, not_found);
    let head = reqwest::Client::new().head(format!("{url}/rosters")).send().await;
    assert_eq!(head.expect("an answer").status().as_u16(), 404);
    // An id has at least one byte.
    let of_no_row = reqwest::get(format!("{url}/rosters/")).await.expect("an answer");
    assert_eq!(of_no_row.status().as_u16(), 404);
    assert!(fake.given.lock().expect("a lock").is_empty());
}

#[track_caller]
fn check_error(answer: (u16, String), status: u16, text: &str) {
    assert_eq!(answer, (status, format!("{{\"message\":\"{text}\"}}")));
}

/// Sends these bytes, and checks the status of the answer.
async fn check_sent(url: &str, bytes: &str, status: &str) {
    let address = url.strip_prefix("http://").expect("a URL");
    let mut to = tokio::net::TcpStream::connect(address).await.expect("a connection");
    to.write_all(bytes.as_bytes()).await.expect("sent");
    let mut answer = [0; 12];
    to.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(&answer[9..], status.as_bytes());
}

#[tokio::test]
async fn failures_have_the_answers_of_api_gateway() {
    let function = || "place-order".to_owned();
    let fail = || Err(InvokeError::Function { function: "f".to_owned(), error: json!({}) });
    let hang = || {
        let timeout = std::time::Duration::ZERO;
        Err(InvokeError::TimedOut { function: "f".to_owned(), timeout })
    };
    let bad = || Ok(json!({ "statusCode": "no" }));
    let path = format!("/ordering/{}", function());
    let (url, _) = start(fail).await;
    check_error(
        post(format!("{url}{path}"), "text/plain", "x").await,
        500,
        "Internal Server Error",
    );
    let (url, _) = start(hang).await;
    check_error(post(format!("{url}{path}"), "text/plain", "x").await, 503, "Service Unavailable");
    // API Gateway waits for 30 seconds, whatever the function's timeout is.
    let (url, _) = start(|| Ok(Value::Null)).await;
    tokio::time::pause();
    let answer = post(format!("{url}{path}"), "text/plain", "x");
    let answer = timeout(2 * ANSWER_WAIT_MAX, answer).await.expect("the API has answered");
    check_error(answer, 503, "Service Unavailable");
    tokio::time::resume();
    let (url, _) = start(bad).await;
    check_error(
        post(format!("{url}{path}"), "text/plain", "x").await,
        500,
        "Internal Server Error",
    );
    let (url, fake) = start(ok).await;
    let long = vec![b'x'; BODY_BYTES_MAX + 1];
    let answer = post(format!("{url}{path}"), "text/plain", long).await;
    check_error(answer, 413, "Request Entity Too Large");
    let twice = reqwest::Client::new().post(format!("{url}{path}"));
    let twice = twice.header("authorization", "Bearer a").header("authorization", "Bearer b");
    assert_eq!(twice.send().await.expect("an answer").status(), 400);
    check_sent(
        &url,
        &format!("POST {path} HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
        "400",
    )
    .await;
    assert!(fake.given.lock().expect("a lock").is_empty());
}

#[tokio::test]
async fn answer_without_status_is_the_body() {
    let (url, _) = start(|| Ok(json!({ "a": 1 }))).await;
    let answer = post(format!("{url}/ordering/place-order"), "text/plain", "").await;
    assert_eq!(answer, (200, "{\"a\":1}".to_owned()));
}

#[tokio::test]
async fn with_tokens_the_api_answers_each_of_the_table_as_api_gateway_does() {
    let (url, fake) = start_with(Authorizer::of_tokens(), ok).await;
    let url = format!("{url}/ordering/place-order");
    let now_s = u64::try_from(clock::now().timestamp()).expect("after 1970");
    let client = reqwest::Client::new();
    for case in token_cases(ISSUER, AUDIENCE, "orders/write", now_s) {
        let request = client.post(&url).body("{}");
        let request = match &case.authorization {
            Some(header) => request.header("authorization", header),
            None => request,
        };
        let answer = request.send().await.expect("an answer");
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let body: Value = answer.json().await.expect("JSON");
        let name = case.name;
        let given = std::mem::take(&mut *fake.given.lock().expect("a lock"));
        assert_eq!(status, case.refused.unwrap_or(422), "{name}: {headers:?}");
        assert_eq!(given.len(), usize::from(case.refused.is_none()), "{name}");
        let expected = match status {
            401 => json!({ "message": "Unauthorized" }),
            403 => json!({ "message": "Forbidden" }),
            431 => json!({ "message": "Request Header Fields Too Large" }),
            _ => json!({}),
        };
        assert_eq!(body, expected, "{name}");
        assert_eq!(headers.contains_key("www-authenticate"), status == 401, "{name}");
        for (_, event) in given {
            let jwt = &event["requestContext"]["authorizer"]["jwt"];
            assert_eq!(
                (&jwt["claims"]["sub"], &jwt["claims"]["iss"]),
                (&json!("ada"), &json!(ISSUER))
            );
            assert_eq!(jwt["scopes"], json!(["orders/write"]));
        }
    }
}
