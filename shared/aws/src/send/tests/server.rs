//! A server for the tests that follows instructions.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use aws_credential_types::provider::ProvideCredentials;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials, Region};
use aws_smithy_async::time::TimeSource;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::NOW_S;
use crate::connector::{http_client, no_proxy};
use crate::send::{signature, time};
use crate::{Clock, Trust};

/// A machine's clock for both ways.
#[derive(Clone, Debug)]
pub(super) struct Time(pub(super) Clock);

impl Time {
    pub(super) fn at(seconds: u64) -> Self {
        Self(Clock::fixed(seconds * 1_000).of_machine())
    }

    pub(super) fn set(&self, seconds: u64) {
        self.0.set(seconds * 1_000);
    }
}

impl TimeSource for Time {
    fn now(&self) -> SystemTime {
        time(self.0.machine_ms())
    }
}

/// The reaction of a server to a request.
#[derive(Clone, Debug)]
pub(super) enum Does {
    Answer(u16, String),
    /// Sends these bytes and closes the connection.
    Raw(&'static str),
    /// Resets the connection.
    Reset,
    /// Says nothing.
    Wait,
    /// Sets this clock right and answers with nothing.
    Correct(Time),
}

/// A request as it arrived.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Arrived {
    pub(super) connection: usize,
    pub(super) line: String,
    pub(super) headers: Vec<String>,
    pub(super) body: String,
}

/// A server that follows instructions, and records requests.
#[derive(Clone)]
pub(super) struct Server {
    address: SocketAddr,
    does: Arc<Mutex<Does>>,
    /// Its clock is ahead by this many seconds.
    pub(super) ahead_s: Arc<AtomicI64>,
    pub(super) arrived: Arc<Mutex<Vec<Arrived>>>,
    connections: Arc<AtomicUsize>,
}

impl Server {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let server = Self {
            address: listener.local_addr().expect("an address"),
            does: Arc::new(Mutex::new(Does::Answer(200, "{}".to_owned()))),
            ahead_s: Arc::default(),
            arrived: Arc::default(),
            connections: Arc::default(),
        };
        let serving = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serving.clone().serve(stream));
            }
        });
        server
    }

    pub(super) fn will(&self, does: Does) {
        *self.does.lock().expect("no panic") = does;
    }

    pub(super) fn take(&self) -> Vec<Arrived> {
        std::mem::take(&mut self.arrived.lock().expect("no panic"))
    }

    /// Waits until a request has arrived.
    pub(super) async fn has_one(&self) {
        while self.arrived.lock().expect("no panic").is_empty() {
            tokio::task::yield_now().await;
        }
    }

    async fn serve(self, mut stream: TcpStream) {
        let connection = self.connections.fetch_add(1, Ordering::SeqCst);
        let mut bytes = Vec::new();
        loop {
            let head = loop {
                match bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                    Some(end) => break end + 4,
                    None => match stream.read_buf(&mut bytes).await {
                        Ok(1..) => {}
                        _ => return,
                    },
                }
            };
            let text = String::from_utf8_lossy(&bytes[..head - 4]).into_owned();
            let mut lines = text.split("\r\n").map(str::to_owned);
            let line = lines.next().expect("a request line");
            let mut headers: Vec<String> = lines.collect();
            headers.sort();
            let length = headers.iter().find_map(|header| header.strip_prefix("content-length: "));
            let length: usize = length.expect("a length").parse().expect("a number");
            while bytes.len() < head + length {
                stream.read_buf(&mut bytes).await.expect("the rest of the body");
            }
            let rest = bytes.split_off(head + length);
            let body = String::from_utf8_lossy(&bytes[head..]).into_owned();
            bytes = rest;
            let date = headers.iter().find_map(|header| header.strip_prefix("x-amz-date: "));
            let signed = date.expect("it is signed").to_owned();
            self.arrived.lock().expect("no panic").push(Arrived {
                connection,
                line,
                headers,
                body,
            });

            let now_s = i64::try_from(NOW_S).expect("a time") + self.ahead_s.load(Ordering::SeqCst);
            let date = DateTime::from_secs(now_s).fmt(Format::HttpDate).expect("a date");
            let on_time = (-4..=4).any(|minute| {
                let near = signature::timestamp(now_s + minute * 60);
                near[..13] == signed[..13]
            });
            let does = self.does.lock().expect("no panic").clone();
            if let Does::Correct(time) = &does {
                time.set(NOW_S);
            }
            let does =
                if on_time { does } else { Does::Answer(400, coded("InvalidSignatureException")) };
            let (status, body) = match does {
                Does::Answer(status, body) => (status, body),
                Does::Raw(bytes) => {
                    return stream.write_all(bytes.as_bytes()).await.expect("it is read");
                }
                Does::Reset => return stream.set_zero_linger().expect("an open connection"),
                Does::Wait => std::future::pending().await,
                Does::Correct(_) => (200, "{}".to_owned()),
            };
            let answer = format!(
                "HTTP/1.1 {status} -\r\ncontent-length: {}\r\ndate: {date}\r\n\
                 x-amzn-requestid: request-1\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).await.expect("it is read");
        }
    }

    /// A client with a session token and a right clock.
    pub(super) fn client(&self) -> Client {
        let credentials = Credentials::new("AKID", "secret", Some("token".into()), None, "test");
        self.client_with(&Time::at(NOW_S), credentials, Duration::from_secs(60))
    }

    /// A client whose time-out to read is this.
    pub(super) fn client_with(
        &self,
        time: &Time,
        credentials: impl ProvideCredentials + 'static,
        read_timeout: Duration,
    ) -> Client {
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(Duration::from_secs(60))
            .read_timeout(read_timeout)
            .operation_attempt_timeout(Duration::from_secs(60));
        let config = Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static("eu-west-1"))
            .credentials_provider(credentials)
            .retry_config(RetryConfig::disabled())
            .timeout_config(timeouts.build())
            .time_source(time.clone())
            .http_client(http_client(Trust::of_machine(), no_proxy()))
            .endpoint_url(format!("http://{}", self.address));
        Client::from_conf(config.build())
    }
}

/// The body of an error.
pub(super) fn coded(code: &str) -> String {
    let kind = format!("com.amazonaws.dynamodb.v20120810#{code}");
    let reasons = serde_json::json!([
        { "Code": "ConditionalCheckFailed", "Message": "no", "Item": { "p": { "S": "a" } } },
        { "Code": "None" },
    ]);
    serde_json::json!({
        "__type": kind, "message": "because", "Item": { "p": { "S": "a" } }, "CancellationReasons": reasons,
    })
    .to_string()
}
