//! The SDK orchestrator's findings for the requests of a table. They come from a request that an interceptor ends just
//! before it would be sent. So the rules for endpoints, Regions, credentials, headers and time-outs, and their errors,
//! are the SDK's.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_async::time::SharedTimeSource;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::auth::{AuthScheme, AuthSchemeId};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::identity::{ResolveCachedIdentity, SharedIdentityResolver};
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::BeforeTransmitInterceptorContextRef;
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::DateTime;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::config_bag::{ConfigBag, Layer};
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use uuid::Uuid;

use super::signature::{ItemSigner, Signed};

const DATE: &str = "x-amz-date";
const AUTHORIZATION: &str = "authorization";
const INVOCATION: &str = "amz-sdk-invocation-id";
const TRACE: &str = "x-amzn-trace-id";
/// The headers that differ between requests: those above, and those that the SDK's serialisers write.
const OF_A_REQUEST: [&str; 7] =
    [DATE, AUTHORIZATION, INVOCATION, TRACE, "content-type", "content-length", "x-amz-target"];

/// The common parts of all requests of a table, as long as the credentials are the same.
#[derive(Debug)]
pub(super) struct Resolved {
    /// The client's connections, with the time-outs to connect and to read.
    pub(super) connector: SharedHttpConnector,
    /// A request without a body, with the common address and headers.
    template: HttpRequest,
    host: String,
    path: String,
    signer: ItemSigner,
    clock: SharedTimeSource,
    components: RuntimeComponents,
    identities: SharedIdentityResolver,
    /// The second in which the SDK's cache of credentials was asked.
    asked: AtomicI64,
    /// The configuration for that cache, whose time-out follows from the client's time-outs and retries.
    config: ConfigBag,
    /// The two halves of the next request's id: a random one, and a count.
    invocations: (u64, AtomicU64),
}

impl Resolved {
    /// Asks the SDK. A failure is the SDK's own before it sends a request.
    pub(super) async fn ask<E>(
        client: &Client,
        table: &str,
    ) -> Result<Self, SdkError<E, HttpResponse>> {
        let question = Question::default();
        let request = client.get_item().table_name(table).key("-", AttributeValue::S("-".into()));
        let ended = Box::pin(request.customize().interceptor(question.clone()).send()).await;
        let Some(reply) = question.take() else {
            let error = ended.expect_err("the interceptor ends every request");
            return Err(error.map_service_error(|_| unreachable!("nothing was sent")));
        };
        Self::of(reply).await.map_err(SdkError::dispatch_failure)
    }

    async fn of(reply: Reply) -> Result<Self, ConnectorError> {
        let wrong = |why: &str| ConnectorError::user(why.into());
        let Reply { request, components, timeouts, retries } = reply;
        let scheme = components.auth_scheme(AuthSchemeId::from("sigv4"));
        let identities = scheme.and_then(|scheme| scheme.identity_resolver(&components));
        let identities = identities.ok_or_else(|| wrong("requests are not signed with SigV4"))?;
        let mut layer = Layer::new("credentials");
        layer.store_put(timeouts.clone());
        layer.store_or_unset(retries);
        let config = ConfigBag::of_layers([layer]);
        let credentials = credentials(&components, &identities, &config).await?;
        let known = request.headers().get(AUTHORIZATION).unwrap_or_default();
        let signer = ItemSigner::like(known, credentials);
        let signer = signer.ok_or_else(|| wrong("the SDK signs in an unknown way"))?;

        let mut settings = HttpConnectorSettings::builder();
        settings.set_connect_timeout(timeouts.connect_timeout());
        settings.set_read_timeout(timeouts.read_timeout());
        let http = components.http_client().ok_or_else(|| wrong("the SDK has no HTTP client"))?;

        let mut template = request.try_clone().ok_or_else(|| wrong("the body is not in memory"))?;
        *template.body_mut() = SdkBody::empty();
        OF_A_REQUEST.into_iter().for_each(|name| {
            template.headers_mut().remove(name);
        });
        let uri = request.uri().parse::<http::Uri>();
        let uri = uri.map_err(|error| ConnectorError::user(error.into()))?;
        let authority = uri.authority().ok_or_else(|| wrong("the endpoint has no host"))?;
        let host = match (uri.scheme_str(), uri.port_u16()) {
            (Some("http"), Some(80)) | (Some("https"), Some(443)) => authority.host().to_owned(),
            _ => authority.to_string(),
        };
        let resolved = Self {
            connector: http.http_connector(&settings.build(), &components),
            template,
            host,
            path: encoded(uri.path()),
            signer,
            clock: components.time_source().ok_or_else(|| wrong("the SDK has no clock"))?,
            components,
            identities,
            asked: AtomicI64::new(i64::MIN),
            config,
            invocations: (RandomState::new().build_hasher().finish(), AtomicU64::new(0)),
        };
        let time = request.headers().get(DATE).unwrap_or_default();
        if resolved.authorization(&request, time) != known {
            // The credentials may have been renewed meanwhile. Then the next attempt succeeds.
            let differs =
                "a signature differs from the SDK's: the credentials change with each request";
            return Err(ConnectorError::other(differs.into(), None));
        }
        Ok(resolved)
    }

    /// Whether the SDK's cache of credentials was asked in this second.
    pub(super) fn was_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed) == self.second()
    }

    /// Whether the credentials are still the same. The SDK's cache renews them before they expire.
    pub(super) async fn is_current<E>(&self) -> Result<bool, SdkError<E, HttpResponse>> {
        let second = self.second();
        let credentials = credentials(&self.components, &self.identities, &self.config).await;
        let credentials = credentials.map_err(SdkError::dispatch_failure)?;
        let is_current = credentials == *self.signer.credentials();
        if is_current {
            self.asked.store(second, Ordering::Relaxed);
        }
        Ok(is_current)
    }

    /// The second by the SDK's clock.
    fn second(&self) -> i64 {
        DateTime::from(self.clock.now()).secs()
    }

    /// The request that goes to the service: with address, all headers, and a signature for this time.
    pub(super) fn signed(&self, unsigned: &HttpRequest, time: SystemTime) -> HttpRequest {
        let mut request = self.template.try_clone().expect("it has no body");
        *request.body_mut() = unsigned.body().try_clone().expect("it is in memory");
        let headers = request.headers_mut();
        for (name, value) in unsigned.headers() {
            match OF_A_REQUEST.into_iter().find(|known| *known == name) {
                Some(name) => headers.insert(name, value.to_owned()),
                None => headers.insert(name.to_owned(), value.to_owned()),
            };
        }
        let time = self.signer.timestamp(time);
        headers.insert(DATE, time.clone());
        let (high, low) = &self.invocations;
        let invocation = Uuid::from_u64_pair(*high, low.fetch_add(1, Ordering::Relaxed));
        headers.insert(INVOCATION, invocation.to_string());
        if let Some(trace) = trace() {
            headers.insert(TRACE, trace);
        }
        let authorization = self.authorization(&request, &time);
        request.headers_mut().insert(AUTHORIZATION, authorization);
        request
    }

    fn authorization(&self, request: &HttpRequest, time: &str) -> String {
        let signed = Signed {
            method: request.method(),
            path: &self.path,
            body: request.body().bytes().unwrap_or_default(),
        };
        self.signer.authorization(signed, time, |name| match name {
            "host" => &self.host,
            _ => request.headers().get(name).unwrap_or_default(),
        })
    }
}

/// The credentials of the SDK's cache.
async fn credentials(
    components: &RuntimeComponents,
    identities: &SharedIdentityResolver,
    config: &ConfigBag,
) -> Result<Credentials, ConnectorError> {
    let cache = components.identity_cache();
    let identity = cache.resolve_cached_identity(identities.clone(), components, config).await;
    let identity = identity.map_err(|error| ConnectorError::other(error, None))?;
    let credentials = identity.data::<Credentials>().cloned();
    credentials.ok_or_else(|| ConnectorError::user("these are no credentials of AWS".into()))
}

/// The SDK's state just before it would send a request.
#[derive(Debug)]
struct Reply {
    request: HttpRequest,
    components: RuntimeComponents,
    timeouts: TimeoutConfig,
    retries: Option<RetryConfig>,
}

/// The interceptor that looks at a request and ends it.
#[derive(Clone, Debug, Default)]
struct Question(Arc<Mutex<Option<Reply>>>);

impl Question {
    fn take(&self) -> Option<Reply> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Intercept for Question {
    fn name(&self) -> &'static str {
        "Question"
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        components: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let request = context.request().try_clone().ok_or("the body is not in memory")?;
        let timeouts = config.load::<TimeoutConfig>().ok_or("the SDK has no time-outs")?.clone();
        let retries = config.load::<RetryConfig>().cloned();
        let reply = Reply { request, components: components.clone(), timeouts, retries };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(reply);
        Err("this request only asks".into())
    }
}

/// The path of a URL, which ends with `/`, in the form of a signature: without `.`, `..` and empty parts, and encoded
/// once more.
fn encoded(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    let byte = |byte: u8| match byte {
        b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    let part = |part: &str| format!("/{}", part.bytes().map(byte).collect::<String>());
    parts.into_iter().map(part).collect::<String>() + "/"
}

/// The id of the invocation that Lambda traces. With it AWS notices functions that invoke each other without end.
fn trace() -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "Lambda's runtime sets it for each invocation")]
    let (function, trace) =
        (std::env::var("AWS_LAMBDA_FUNCTION_NAME"), std::env::var("_X_AMZN_TRACE_ID"));
    function.and(trace).ok().filter(|trace| trace.bytes().all(|byte| matches!(byte, b' '..=b'~')))
}
