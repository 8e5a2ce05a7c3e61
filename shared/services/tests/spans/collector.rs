//! A server that takes the requests of forward-spans.

use std::io::Read;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use flate2::read::GzDecoder;
use serde_json::Value;

#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) headers: HeaderMap,
    /// Unpacked.
    pub(crate) body: String,
}

pub(crate) struct Collector {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Collector {
    /// A server that answers each request so.
    pub(crate) async fn start(status: StatusCode, answer: Value) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = requests.clone();
        let take = post(async move |headers: HeaderMap, packed: Bytes| {
            let mut body = String::new();
            GzDecoder::new(&*packed).read_to_string(&mut body).unwrap();
            kept.lock().unwrap().push(Request { headers, body });
            (status, answer.to_string())
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
        let router = Router::new().route("/v1/traces", take);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, requests }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}
