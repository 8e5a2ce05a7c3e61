//! Sends a request without the SDK's orchestrator, which takes four fifths of the processor time of a request without
//! TLS. The types, serialisers, deserialisers, errors, credentials, endpoint rules, TLS and connections are the SDK's.
//!
//! The orchestrator finds out the same for all requests of a table: the endpoint, most headers, the time-outs, the
//! connector. So it is asked once, and again when the credentials change ([`Resolved`]). The rest happens here, in the
//! orchestrator's order: serialise, sign ([`signature`]), send, read, deserialise. A connection that failed is given
//! up. Each answer corrects the [`Clock`], by which requests are signed.
//!
//! An interceptor ends the asking request just before it would be sent, so endpoints, headers, time-outs and the errors
//! of a wrong configuration are the SDK's. Its signature is compared with the one that is made here.
//!
//! Differences from the SDK:
//!
//! - There are no retries, no time-out of an operation, no protection against stalled streams, no spans and no metrics.
//! - A caller's interceptor or resolver of endpoints sees only the asking request.
//! - `AWS_DISABLE_CLOCK_SKEW_CORRECTION` has no effect. The SDK corrects the clock only with retries on, and not after
//!   the function was frozen.
//! - A success whose answer can't be read has an unknown outcome. The SDK makes the same error of it as of a refusal,
//!   so the HTTP status decides.
//!
//! Neither the SDK nor this module checks `x-amz-crc32`; TLS protects the answer.
//!
//! This relies on two things that the SDK's crates make public and do not promise: the type of an operation is a
//! `RuntimePlugin` whose configuration holds the serialiser and the deserialiser, and an interceptor sees the signed
//! request and the runtime components. A version of the SDK that changes them fails to compile, or fails
//! `send/tests.rs`. `PutEvents` goes through the orchestrator: its requests are few and have up to ten events.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{BuildError, ProvideErrorMetadata, SdkError};
use aws_smithy_runtime_api::client::connection::CaptureSmithyConnection;
use aws_smithy_runtime_api::client::http::HttpConnector;
use aws_smithy_runtime_api::client::interceptors::context::Input;
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use http_body_util::BodyExt as _;

mod operation;
mod resolved;
mod signature;

pub(crate) use operation::{Answer, Operation};
use resolved::Resolved;

use crate::Clock;

/// A refusal counts as caused by the signed time only if the next signature would have a time that differs by more than
/// this. AWS refuses signatures whose time differs by five minutes from its own.
const SKEW_MIN_MS: u64 = 4 * 60 * 1_000;
/// The codes of AWS for a refused time, as the SDK lists them.
const SKEW_CODES: [&str; 5] = [
    "InvalidSignatureException",
    "SignatureDoesNotMatch",
    "AuthFailure",
    "RequestTimeTooSkewed",
    "AccessDeniedException",
];

/// Sends the requests for one table. Clones share what they have found out.
#[derive(Clone, Debug)]
pub(crate) struct Sender(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    client: Client,
    table: String,
    /// The time-out of a whole attempt.
    attempt_timeout: Option<Duration>,
    resolved: Mutex<Option<Arc<Resolved>>>,
    /// Requests that begin together wait for the one that asks.
    asking: tokio::sync::Mutex<()>,
    clock: Clock,
}

impl Sender {
    pub(crate) fn new(client: Client, table: String, clock: &Clock) -> Self {
        let timeouts = client.config().timeout_config();
        let attempt_timeout = timeouts.and_then(|timeouts| timeouts.operation_attempt_timeout());
        let (resolved, asking) = Default::default();
        let clock = clock.of_requests();
        Self(Arc::new(Shared { client, table, attempt_timeout, resolved, asking, clock }))
    }

    /// The name of the table.
    pub(crate) fn table(&self) -> &str {
        &self.0.table
    }

    /// Sends a request once. If it is refused because this machine's clock is wrong, or was when the request was
    /// signed, it is signed for the service's time and sent once more. A refused request has no effect, and the meter
    /// does not count it.
    pub(crate) async fn send<I: Operation>(&self, input: Result<I, BuildError>) -> Answer<I> {
        let input = input.map_err(SdkError::construction_failure)?;
        let request = I::codec().request(Input::erase(input));
        let request = request.map_err(SdkError::construction_failure)?;
        let resolved = self.resolved().await?;
        let signed_ms = self.0.clock.now_ms();
        let answer = self.attempt::<I>(&resolved, &request, signed_ms).await;
        if let Err(SdkError::ServiceError(refused)) = &answer
            && refused.err().code().is_some_and(|code| SKEW_CODES.contains(&code))
        {
            let right_ms = self.0.clock.now_ms();
            if right_ms.abs_diff(signed_ms) > SKEW_MIN_MS {
                return self.attempt::<I>(&resolved, &request, right_ms).await;
            }
        }
        answer
    }

    /// The common parts of all requests of the table, as long as the credentials are the same.
    async fn resolved<E>(&self) -> Result<Arc<Resolved>, SdkError<E, HttpResponse>> {
        let known = || self.0.resolved.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known().filter(|known| known.was_asked()) {
            return Ok(known);
        }
        let ask = async {
            let _turn = self.0.asking.lock().await;
            if let Some(known) = known()
                && known.is_current().await?
            {
                return Ok(known);
            }
            let resolved = Arc::new(Resolved::ask(&self.0.client, &self.0.table).await?);
            *self.0.resolved.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(Arc::clone(&resolved));
            Ok(resolved)
        };
        self.in_time(ask).await
    }

    /// The result of a future within the time of an attempt.
    async fn in_time<T, E>(
        &self,
        work: impl Future<Output = Result<T, SdkError<E, HttpResponse>>>,
    ) -> Result<T, SdkError<E, HttpResponse>> {
        match self.0.attempt_timeout {
            None => work.await,
            Some(most) => match tokio::time::timeout(most, work).await {
                Ok(answer) => answer,
                Err(elapsed) => Err(SdkError::timeout_error(elapsed)),
            },
        }
    }

    async fn attempt<I: Operation>(
        &self,
        resolved: &Resolved,
        request: &HttpRequest,
        signed_ms: u64,
    ) -> Answer<I> {
        let connection = CaptureSmithyConnection::new();
        let attempt = async {
            let mut request = resolved.signed(request, time(signed_ms));
            request.add_extension(connection.clone());
            let sent_ms = self.0.clock.machine_ms();
            let response = resolved.connector.call(request).await;
            let mut response = response.map_err(SdkError::dispatch_failure)?;
            self.0.clock.hear(sent_ms, &response);
            let body = std::mem::replace(response.body_mut(), SdkBody::taken());
            match body.collect().await {
                Ok(body) => *response.body_mut() = SdkBody::from(body.to_bytes()),
                Err(error) => return Err(SdkError::response_error(error, response)),
            }
            I::answer(response)
        };
        let answer = self.in_time(attempt).await;
        // Further requests would fail too, on a connection that broke off or belongs to a failing server.
        let failed = match &answer {
            Err(SdkError::ServiceError(refused)) => refused.raw().status().as_u16() >= 500,
            Err(_) => true,
            Ok(_) => false,
        };
        if let Some(connection) = connection.get().filter(|_| failed) {
            connection.poison();
        }
        answer
    }
}

/// A time in milliseconds since 1970.
fn time(ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms)
}

#[cfg(test)]
mod tests;
