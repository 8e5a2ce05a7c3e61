//! The HTTP client of all services: requests over HTTP/1.1, on connections that are kept. hyper does the work.
//!
//! The SDK's client is hyper too, but always with HTTP/2. No service that is called here needs HTTP/2, DynamoDB does
//! not even offer it, and it is a twelfth of a function's code. docs/decisions.md has the figures.

use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::iter::successors;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_smithy_runtime_api::client::connection::{CaptureSmithyConnection, ConnectionMetadata};
use aws_smithy_runtime_api::client::dns::SharedDnsResolver;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::retry::ErrorKind;
use http::Request;
use http::header::PROXY_AUTHORIZATION;
use http::uri::Scheme;
use hyper_util::client::legacy::connect::{CaptureConnection, capture_connection};
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::timeout;

use crate::Trust;

mod dial;

use dial::{Dial, Late};

/// Time limits of a request: until there is a connection, with TLS, and until an answer begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct TimeLimits {
    connect: Option<Duration>,
    answer: Option<Duration>,
}

impl Trust {
    /// The client for all services. Like the SDK's client it uses the proxy that the environment names.
    #[must_use]
    pub fn http_client(self) -> SharedHttpClient {
        http_client(self, Matcher::from_env())
    }

    /// Sends requests directly, without a proxy.
    #[must_use]
    pub fn connector(&self) -> SharedHttpConnector {
        connector(self, no_proxy(), TimeLimits::default(), None)
    }

    /// Sends requests directly, with another resolver of names.
    #[must_use]
    pub fn connector_by(&self, resolver: SharedDnsResolver) -> SharedHttpConnector {
        connector(self, no_proxy(), TimeLimits::default(), Some(resolver))
    }

    /// Sends requests through the proxy that the environment names.
    #[must_use]
    pub fn proxied(&self) -> SharedHttpConnector {
        connector(self, Matcher::from_env(), TimeLimits::default(), None)
    }
}

/// No proxy for any request.
pub(crate) fn no_proxy() -> Matcher {
    Matcher::builder().build()
}

/// A client for all services. Services with the same limits share their connections.
pub(crate) fn http_client(trust: Trust, proxies: Matcher) -> SharedHttpClient {
    SharedHttpClient::new(Connectors { trust, proxies: Arc::new(proxies), made: Mutex::default() })
}

/// Sends requests through these proxies, or directly.
fn connector(
    trust: &Trust,
    proxies: impl Into<Arc<Matcher>>,
    limits: TimeLimits,
    resolver: Option<SharedDnsResolver>,
) -> SharedHttpConnector {
    let proxies = proxies.into();
    let dial = Dial::new(trust.clone(), Arc::clone(&proxies), limits.connect, resolver);
    let client = Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(dial);
    SharedHttpConnector::new(Connector { client, proxies, answer_limit: limits.answer })
}

/// The SDK gets a connector from this before each request.
#[derive(Debug)]
struct Connectors {
    trust: Trust,
    proxies: Arc<Matcher>,
    made: Mutex<HashMap<TimeLimits, SharedHttpConnector>>,
}

impl HttpClient for Connectors {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let limits =
            TimeLimits { connect: settings.connect_timeout(), answer: settings.read_timeout() };
        let make = || connector(&self.trust, Arc::clone(&self.proxies), limits, None);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.entry(limits).or_insert_with(make).clone()
    }
}

#[derive(Debug)]
struct Connector {
    client: Client<Dial, SdkBody>,
    proxies: Arc<Matcher>,
    answer_limit: Option<Duration>,
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let mut request = match request.try_into_http1x() {
            Ok(request) => request,
            Err(error) => {
                return HttpConnectorFuture::ready(Err(ConnectorError::user(error.into())));
            }
        };
        self.show_credentials(&mut request);
        let connection = capture_connection(&mut request);
        if let Some(capture) = request.extensions().get::<CaptureSmithyConnection>() {
            capture.set_connection_retriever(move || described(&connection));
        }
        let (answer, limit) = (self.client.request(request), self.answer_limit);
        HttpConnectorFuture::new(async move {
            let answer = match limit {
                None => answer.await,
                Some(limit) => match timeout(limit, answer).await {
                    Ok(answer) => answer,
                    Err(_) => return Err(ConnectorError::timeout(Late::Answer(limit).into())),
                },
            };
            let answer = answer.map_err(classified)?.map(SdkBody::from_body_1_x);
            HttpResponse::try_from(answer)
                .map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}

impl Connector {
    /// Adds a proxy's credentials to a request that the proxy forwards without TLS. A proxy of a connection got them
    /// before.
    fn show_credentials(&self, request: &mut Request<SdkBody>) {
        if request.uri().scheme() != Some(&Scheme::HTTP) {
            return;
        }
        let proxy = self.proxies.intercept(request.uri());
        if let Some(credentials) = proxy.as_ref().and_then(|proxy| proxy.basic_auth()) {
            let of_request = request.headers_mut().entry(PROXY_AUTHORIZATION);
            of_request.or_insert_with(|| credentials.clone());
        }
    }
}

/// The SDK's description of a request's connection. After a failure the SDK gives the connection up.
fn described(connection: &CaptureConnection) -> Option<ConnectionMetadata> {
    let connected = connection.connection_metadata();
    let is_proxied = connected.as_ref()?.is_proxied();
    drop(connected);
    let connection = connection.clone();
    let give_up = move || {
        if let Some(connected) = connection.connection_metadata().as_ref() {
            connected.poison();
        }
    };
    Some(ConnectionMetadata::builder().proxied(is_proxied).poison_fn(give_up).build())
}

/// The SDK's kind of an error, by which the SDK and [`crate::Failure`] know whether a request may be sent again.
fn classified(error: ClientError) -> ConnectorError {
    let is_io = cause::<io::Error>(&error).is_some();
    let kind: fn(Box<dyn Error + Send + Sync>) -> ConnectorError =
        match cause::<hyper::Error>(&error) {
            _ if cause::<Late>(&error).is_some() => ConnectorError::timeout,
            Some(http) if http.is_user() => ConnectorError::user,
            Some(http) if http.is_closed() || http.is_canceled() || is_io => ConnectorError::io,
            Some(http) if http.is_incomplete_message() => {
                |error| ConnectorError::other(error, Some(ErrorKind::TransientError))
            }
            None if error.is_connect() || is_io => ConnectorError::io,
            _ => |error| ConnectorError::other(error, None),
        };
    kind(error.into())
}

fn cause<'e, E: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e E> {
    successors(Some(error), |&error| error.source()).find_map(|cause| cause.downcast_ref())
}

#[cfg(test)]
mod tests;
