//! The HTTP API of a stack, for programs that send commands.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use ringfence_aws::http::{Http, HttpError, Signer};
use serde_json::Value;
use tokio::time::timeout;

use crate::machine::{http, sdk_config};

/// The time limit for a request and its whole answer. It is longer than API Gateway waits for a function.
const ANSWER_TIME: Duration = Duration::from_secs(35);
/// The longest answer in bytes: API Gateway passes on no more.
const ANSWER_BYTES_MAX: usize = 10_000_000;
/// The header that lets a command take effect once.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The HTTP status of a rejection.
const REJECTED: u16 = 422;
/// The service that checks the signatures of requests to API Gateway.
const SERVICE: &str = "execute-api";
/// Each type of problem that a function answers begins with this.
const PROBLEM: &str = "urn:ringfence:problem:";

/// An HTTP API. With a token, each request carries it. Without one, requests to `https://` are signed. Requests to
/// `http://` are not signed: they go to a stack on this machine, which checks nothing unless it is started with
/// `--auth`.
pub struct Api {
    url: String,
    http: Http,
    /// The header with the token.
    authorization: Option<String>,
}

/// An answer of an API.
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub document: Value,
    /// Why the API did not let the caller in: its header `www-authenticate`.
    pub challenge: Option<String>,
}

impl Answer {
    /// Whether the stack has answered, and not a gateway or a proxy in front of it.
    #[must_use]
    pub fn is_of_stack(&self) -> bool {
        match self.status {
            200..300 => self.document["accepted"] == true || self.state().is_some(),
            _ => self.document["type"].as_str().is_some_and(|it| it.starts_with(PROBLEM)),
        }
    }

    /// Where to find a queued command; `None` if the answer does not say it.
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.document["state"].as_str()
    }

    /// The exit status of the program: 0 if the command is accepted or waits in the queue, 1 if it is rejected, 2
    /// otherwise.
    #[must_use]
    pub fn code(&self) -> ExitCode {
        match self.status {
            200..300 if self.state() == Some("rejected") => ExitCode::FAILURE,
            200..300 if self.is_of_stack() && self.state() != Some("failed") => ExitCode::SUCCESS,
            REJECTED if self.is_of_stack() => ExitCode::FAILURE,
            _ => ExitCode::from(crate::out::FAILED),
        }
    }
}

impl Api {
    /// The API at a URL. Requests carry the token, or are signed with the Region and the credentials of the
    /// environment.
    ///
    /// # Errors
    /// The URL belongs to AWS, and the environment has no Region or no credentials.
    pub async fn at(url: &str, token: Option<&str>) -> Result<Self> {
        let signer = match is_far(url) && token.is_none() {
            true => Some(Signer::of(&sdk_config().await?, SERVICE).await?),
            false => None,
        };
        let http = http(signer, is_far(url), ANSWER_BYTES_MAX)?;
        let authorization = token.map(|token| format!("Bearer {token}"));
        Ok(Self { url: url.trim_end_matches('/').to_owned(), http, authorization })
    }

    /// Posts a JSON body with these headers, whose names are in lower case.
    ///
    /// # Errors
    /// The answer is late, incomplete, too long or not JSON. The command may have taken effect, unless the request
    /// [was not sent](was_not_sent).
    pub async fn post(&self, path: &str, body: &str, with: &[(&str, &str)]) -> Result<Answer> {
        let headers = [&[("content-type", "application/json")], with].concat();
        self.send("POST", path, headers, body).await
    }

    /// Gets a document.
    ///
    /// # Errors
    /// As [`Api::post`].
    pub async fn get(&self, path: &str) -> Result<Answer> {
        self.send("GET", path, Vec::new(), "").await
    }

    async fn send<'a>(
        &'a self,
        method: &str,
        path: &str,
        mut headers: Vec<(&'a str, &'a str)>,
        body: &str,
    ) -> Result<Answer> {
        let url = format!("{}/{path}", self.url);
        headers.extend(self.authorization.as_deref().map(|header| ("authorization", header)));
        let sent = self.http.send(method, &url, &headers, body.as_bytes());
        let answer = timeout(ANSWER_TIME, sent).await;
        let answer = answer.with_context(|| format!("{url}: no answer in {ANSWER_TIME:?}"))?;
        let reply = answer.map_err(|error| {
            let what = match &error {
                HttpError::Connection(_) if !error.was_sent() => {
                    "no connection, so nothing was sent"
                }
                _ => "no answer",
            };
            anyhow::Error::new(error).context(format!("{url}: {what}"))
        })?;
        let status = reply.status;
        let challenge = reply.header("www-authenticate").map(str::to_owned);
        let document = serde_json::from_slice(&reply.body);
        let document = document.with_context(|| format!("{url}: {status} without JSON"))?;
        Ok(Answer { status, document, challenge })
    }
}

/// Whether a URL belongs to AWS. Otherwise it belongs to a stack on this machine.
fn is_far(url: &str) -> bool {
    url.starts_with("https://")
}

/// Whether a request failed before there was a connection. Then it took no effect.
#[must_use]
pub fn was_not_sent(error: &anyhow::Error) -> bool {
    error.downcast_ref().is_some_and(|error: &HttpError| !error.was_sent())
}

/// The URL of an API, from a flag.
///
/// # Errors
/// The text is not an HTTP URL.
pub fn url(text: &str) -> Result<String, &'static str> {
    let is_url = text.starts_with("https://") || text.starts_with("http://");
    let is_url = is_url && text.parse::<http::Uri>().is_ok();
    let wrong = "give the URL of an API, or name the stack with --stack";
    if is_url { Ok(text.to_owned()) } else { Err(wrong) }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use serde_json::json;

    use super::*;

    /// An API that gives one answer. Its thread returns the request.
    fn answering(
        status: &'static str,
        body: &'static str,
    ) -> (String, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"}") {
                let mut part = [0; 1_024];
                let read = stream.read(&mut part).unwrap();
                assert!(read > 0, "the client closed before the end of its request");
                request.extend_from_slice(&part[..read]);
            }
            let length = body.len();
            write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
            String::from_utf8(request).unwrap()
        });
        (url, thread)
    }

    #[tokio::test]
    async fn a_command_is_posted_with_its_key_and_is_not_signed_on_this_machine() {
        let (url, thread) = answering("422 x", r#"{"code":"Taken"}"#);
        let api = Api::at(&url, None).await.unwrap();
        let key = [("idempotency-key", "k1")];
        let answer = api.post("rooms/book", r#"{"roomId":"r1"}"#, &key).await.unwrap();
        assert_eq!((answer.status, answer.document), (422, json!({ "code": "Taken" })));
        let request = thread.join().unwrap();
        assert!(request.starts_with("POST /rooms/book HTTP/1.1\r\n"), "{request}");
        for line in ["content-type: application/json", "idempotency-key: k1"] {
            assert!(request.contains(&format!("{line}\r\n")), "{request}");
        }
        assert!(request.ends_with("\r\n\r\n{\"roomId\":\"r1\"}") && !request.contains("auth"));
        let (url, thread) = answering("200 x", "{}");
        let api = Api::at(&url, Some("a.b.c")).await.unwrap();
        api.post("rooms/book", "{}", &[]).await.unwrap();
        let request = thread.join().unwrap();
        assert!(request.contains("authorization: Bearer a.b.c\r\n"), "{request}");
    }

    #[tokio::test]
    async fn an_answer_without_json_and_no_answer_are_errors_that_name_the_url() {
        let (url, thread) = answering("502 x", "<html>");
        let api = Api::at(&url, None).await.unwrap();
        let error = api.post("rooms/book", "{}", &[]).await.err().unwrap();
        assert_eq!(error.to_string(), format!("{url}rooms/book: 502 without JSON"));
        thread.join().unwrap();
        let error = api.post("rooms/book", "{}", &[]).await.err().unwrap();
        assert_eq!(
            error.to_string(),
            format!("{url}rooms/book: no connection, so nothing was sent")
        );
        assert!(was_not_sent(&error));
    }

    #[tokio::test]
    async fn an_answer_that_does_not_end_is_as_good_as_none() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (begun, mut has_begun) = tokio::sync::mpsc::unbounded_channel();
        std::thread::spawn(move || {
            let head = b"HTTP/1.1 200 x\r\ncontent-length: 99000000\r\n\r\n ";
            let mut streams = Vec::new();
            for body in [0, ANSWER_BYTES_MAX] {
                let (mut stream, _) = listener.accept().unwrap();
                assert!(stream.read(&mut [0; 1_024]).unwrap() > 0);
                stream.write_all(head).unwrap();
                begun.send(()).unwrap();
                // The client closes the connection when it has read enough.
                drop(stream.write_all(&vec![b' '; body]));
                streams.push(stream);
            }
        });
        let api = Api::at(&url, None).await.unwrap();
        let mut post = Box::pin(api.post("rooms/book", "{}", &[]));
        tokio::select! {
            biased;
            _ = &mut post => panic!("it has no answer"),
            _ = has_begun.recv() => {}
        }
        // With paused time an hour passes at once, as soon as nothing else can happen.
        tokio::time::pause();
        let ended = timeout(Duration::from_secs(3_600), post).await;
        let error = ended.expect("it has its own time-out").err().unwrap();
        assert_eq!(error.to_string(), format!("{url}/rooms/book: no answer in 35s"));
        tokio::time::resume();
        let error = api.post("rooms/book", "{}", &[]).await.err().unwrap();
        let expected = format!(
            "{url}/rooms/book: no answer: the answer, of status 200, has more than 10000000 bytes"
        );
        assert_eq!(format!("{error:#}"), expected);
    }

    #[test]
    fn an_answer_of_a_proxy_is_neither_a_yes_nor_a_rejection() {
        let answer = |status, document| Answer { status, document, challenge: None };
        let code = |status, document| format!("{:?}", answer(status, document).code());
        let [accepted, rejected, failed] =
            [0, 1, crate::out::FAILED].map(|code| format!("{:?}", ExitCode::from(code)));
        assert_eq!(code(200, json!({ "accepted": true, "events": [] })), accepted);
        assert_eq!(code(422, json!({ "type": "urn:ringfence:problem:rejected" })), rejected);
        assert_eq!(code(400, json!({ "type": "urn:ringfence:problem:malformed" })), failed);
        for (state, expected) in [
            ("pending", &accepted),
            ("accepted", &accepted),
            ("rejected", &rejected),
            ("failed", &failed),
        ] {
            assert_eq!(code(200, json!({ "state": state })), *expected, "{state}");
        }
        for status in [200, 400, 422, 500] {
            assert_eq!(code(status, json!({ "message": "sign in first" })), failed, "{status}");
        }
    }
}
