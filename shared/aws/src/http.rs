//! HTTP without an SDK, on the same client: whole answers to requests, which are signed if they go to a service of AWS.
//!
//! The SDK of a service adds many seconds to a first build. For one or two operations, this is enough.

mod endpoint;
mod signer;

use std::error::Error;
use std::time::Duration;

use crate::Clock;
use aws_smithy_runtime_api::client::http::{HttpConnector, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use hyper_util::client::legacy::Error as Legacy;
use tokio::time::{sleep, timeout_at};

pub use endpoint::{EndpointError, endpoint};
pub use signer::{SignError, Signer};

/// A client. With a signer, each request is signed. It does not follow redirects.
pub struct Http {
    connector: SharedHttpConnector,
    signer: Option<Signer>,
    bytes_max: usize,
}

/// A whole answer.
#[derive(Debug)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// Headers, with their names in lower case.
    headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Reply {
    /// The value of a header, whose name is in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The code of an error, as both of JSON's protocols say it: `MessageRejected`.
    #[must_use]
    pub fn code(&self) -> String {
        let named = |body: &serde_json::Value| body["__type"].as_str().map(str::to_owned);
        let of_body = || serde_json::from_slice(&self.body).ok().and_then(|body| named(&body));
        let code = self.header("x-amzn-errortype").map(str::to_owned).or_else(of_body);
        let code = code.unwrap_or_default();
        let code = code.split(':').next().unwrap_or_default();
        code.rsplit('#').next().unwrap_or_default().to_owned()
    }
}

/// A request without a whole answer.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// A part of the request can't be sent, such as an invalid URL.
    #[error("the request can't be sent as it is")]
    Request(#[source] Box<dyn Error + Send + Sync>),
    /// It can't be signed.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// There is no connection, or it has failed.
    #[error("no answer")]
    Connection(#[source] ConnectorError),
    /// The time was over before an answer began.
    #[error("no answer in {0:?}")]
    Late(Duration),
    /// The connection failed in the middle of the answer, or the time was over.
    #[error("the answer, of status {status}, breaks off")]
    Torn {
        /// The answer's HTTP status.
        status: u16,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The answer is longer than the client allows.
    #[error("the answer, of status {status}, has more than {bytes_max} bytes")]
    TooLong {
        /// The answer's HTTP status.
        status: u16,
        /// The limit of the client.
        bytes_max: usize,
    },
}

impl HttpError {
    /// Whether the request may have taken effect. Without a connection it has not.
    #[must_use]
    pub fn was_sent(&self) -> bool {
        match self {
            Self::Request(_) | Self::Sign(_) => false,
            Self::Late(_) | Self::Torn { .. } | Self::TooLong { .. } => true,
            Self::Connection(error) => {
                let mut causes = std::iter::successors(error.source(), |&cause| cause.source());
                !causes.any(|cause| cause.downcast_ref().is_some_and(Legacy::is_connect))
            }
        }
    }
}

impl Http {
    /// A client that reads at most so many bytes of an answer.
    #[must_use]
    pub fn new(connector: SharedHttpConnector, signer: Option<Signer>, bytes_max: usize) -> Self {
        Self { connector, signer, bytes_max }
    }

    /// Sends a request with these headers, whose names are in lower case, and reads the whole answer.
    ///
    /// # Errors
    /// There is no whole answer. The request may have taken effect.
    pub async fn send(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Reply, HttpError> {
        self.rest(self.begin(method, url, headers, body).await?).await
    }

    /// Sends a request like [`Self::send`], within this time. If an answer has begun, the error has its status.
    ///
    /// # Errors
    /// There is no whole answer in time. The request may have taken effect.
    pub async fn send_within(
        &self,
        time: Duration,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Reply, HttpError> {
        let end = sleep(time).deadline();
        let begun = timeout_at(end, self.begin(method, url, headers, body)).await;
        let answer = begun.map_err(|_| HttpError::Late(time))??;
        let status = answer.status().as_u16();
        let whole = timeout_at(end, self.rest(answer)).await;
        whole.unwrap_or_else(|late| Err(HttpError::Torn { status, source: late.into() }))
    }

    /// Sends a request, and reads the head of the answer.
    async fn begin(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<HttpResponse, HttpError> {
        let mut request = HttpRequest::new(SdkBody::from(body));
        request.set_method(method).map_err(unsendable)?;
        request.set_uri(url).map_err(unsendable)?;
        if let Some(signer) = &self.signer {
            let now_ms = Clock::system().now_ms();
            for (name, value) in signer.sign(method, url, headers, body, now_ms).await? {
                request.headers_mut().try_insert(name, value).map_err(unsendable)?;
            }
        }
        for (name, value) in headers {
            let (name, value) = ((*name).to_owned(), (*value).to_owned());
            request.headers_mut().try_insert(name, value).map_err(unsendable)?;
        }
        self.connector.call(request).await.map_err(HttpError::Connection)
    }

    /// Reads the rest of an answer.
    async fn rest(&self, answer: HttpResponse) -> Result<Reply, HttpError> {
        let status = answer.status().as_u16();
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let headers = answer.headers().iter().map(owned).collect();
        let (mut parts, mut body) = (ByteStream::new(answer.into_body()), Vec::new());
        let torn = |error| HttpError::Torn { status, source: Box::new(error) };
        while let Some(part) = parts.try_next().await.map_err(torn)? {
            body.extend_from_slice(&part);
            if body.len() > self.bytes_max {
                return Err(HttpError::TooLong { status, bytes_max: self.bytes_max });
            }
        }
        Ok(Reply { status, headers, body })
    }
}

fn unsendable(error: impl Into<Box<dyn Error + Send + Sync>>) -> HttpError {
    HttpError::Request(error.into())
}
