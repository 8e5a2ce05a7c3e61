//! Webhooks: a signed POST to another party's server, as <https://www.standardwebhooks.com> says.
//!
//! `webhook-id` follows from the key of the delivery, so the receiver recognizes a repeat. `webhook-signature` has a
//! signature for each secret, so that both sides can change to a new one without losing a request. Redirects are refused:
//! the signed body goes to the server that the configuration names, and to no other.

mod public;
mod signature;

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_smithy_runtime_api::client::dns::SharedDnsResolver;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use http::Uri;
use ringfence_aws::http::{Http, HttpError, Reply};
use ringfence_aws::{CA_BUNDLE, Clock, Trust};
use ringfence_lambda::{Variables, bounded};
use ringfence_reactors::{Delivery, Failed, PAUSES};

use crate::key::id;
use crate::secret::Secret;
use public::Public;

/// The time for the whole exchange. The time of an effect is longer, so that secrets can be read. A receiver should
/// note the request, answer, and do the work afterwards.
const EXCHANGE_TIME: Duration = Duration::from_secs(10);
/// The most bytes of a body. Larger things are to be fetched by the receiver.
const BODY_BYTES_MAX: usize = 256 * 1024;
/// The most bytes of an answer. Only its status counts.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The most bytes of an answer that are repeated in the cause of a failure.
const CAUSE_BYTES_MAX: usize = 200;
/// The longest pause that a receiver can ask for: as long as the last pause of a lane. So a lane is not parked because
/// of one pause.
const PAUSE_MAX: Duration = PAUSES[PAUSES.len() - 1];

/// The configuration of a function's webhook, from its variables.
pub struct WebhookConfig {
    url: String,
    secrets: String,
    private: bool,
    bundle: String,
}

/// Sends requests to one URL.
pub struct Webhook {
    http: Http,
    url: String,
    secrets: Secret,
    clock: Clock,
    /// The receiver has asked for no request before this time, in milliseconds since 1970.
    pause_until_ms: AtomicU64,
}

/// The URL of a webhook can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    /// It is not the URL of an HTTP server.
    #[error("WEBHOOK_URL has the form https://host/path, without a user and a password")]
    Url,
    /// It has no TLS.
    #[error("WEBHOOK_URL begins with https://, unless WEBHOOK_PRIVATE is true")]
    NotSecure,
    /// It names an address of a network that is not public.
    #[error("WEBHOOK_URL names a private address, and WEBHOOK_PRIVATE is not true")]
    Private,
}

impl Webhook {
    /// Reads the variables: `WEBHOOK_URL`, and `WEBHOOK_SECRETS_PARAMETER`, which names the parameter with the secrets,
    /// separated by spaces. If `WEBHOOK_PRIVATE` is `true`, the receiver may be in a private network, and may have no TLS.
    #[must_use]
    pub fn config(variables: &mut Variables) -> WebhookConfig {
        WebhookConfig {
            url: variables.required("WEBHOOK_URL"),
            secrets: variables.required("WEBHOOK_SECRETS_PARAMETER"),
            private: variables.optional("WEBHOOK_PRIVATE", false),
            bundle: variables.optional(CA_BUNDLE, String::new()),
        }
    }

    /// Opens it, once for a process.
    ///
    /// # Errors
    /// The URL can't be used, or the environment has no Region or no credentials.
    pub async fn open(config: WebhookConfig) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let WebhookConfig { url, secrets, private, bundle } = config;
        let bundle = Some(bundle).filter(|path| !path.is_empty());
        let secrets =
            Secret::open(&Trust::of_amazon().or_bundle(bundle.as_ref())?, secrets).await?;
        let trust = Trust::of_machine().or_bundle(bundle)?;
        Ok(Self::of(&trust, url, secrets, private, Clock::system())?)
    }

    fn of(
        trust: &Trust,
        url: String,
        secrets: Secret,
        private: bool,
        clock: Clock,
    ) -> Result<Self, WebhookError> {
        let connector = match private {
            true => trust.connector(),
            false => trust.connector_by(SharedDnsResolver::new(Public)),
        };
        check(&url, private)?;
        let http = Http::new(connector, None, ANSWER_BYTES_MAX);
        Ok(Self { http, url, secrets, clock, pause_until_ms: AtomicU64::new(0) })
    }

    /// Posts a body, which is JSON.
    ///
    /// # Errors
    /// The receiver is not there, has refused it, or has not answered.
    pub async fn send(&self, body: &str, delivery: &Delivery<'_>) -> Result<(), Failed> {
        if body.len() > BODY_BYTES_MAX {
            let bytes = body.len();
            return Err(Failed::ForGood(format!(
                "the body has {bytes} bytes; a webhook has at most {BODY_BYTES_MAX}"
            )));
        }
        let now_ms = self.clock.now_ms();
        if now_ms < self.pause_until_ms.load(Ordering::Relaxed) {
            return Err(Failed::ForNow("the receiver has asked for a pause".to_owned()));
        }
        let secrets = self.secrets.read().await.map_err(|error| Failed::for_now(&error))?;
        let (id, timestamp) = (id(&delivery.key()), (now_ms / 1_000).to_string());
        let signature = signature::of(&secrets, &id, &timestamp, body);
        let signature = signature.map_err(|error| Failed::for_now(&error))?;
        let headers = [
            ("content-type", "application/json"),
            ("user-agent", "ringfence"),
            ("webhook-id", &*id),
            ("webhook-timestamp", &*timestamp),
            ("webhook-signature", &*signature),
        ];
        let body = body.as_bytes();
        match self.http.send_within(EXCHANGE_TIME, "POST", &self.url, &headers, body).await {
            Ok(reply) => self.judge(reply.status, Some(&reply)),
            // The status has arrived, and the rest of the answer does not matter.
            Err(HttpError::TooLong { status, .. } | HttpError::Torn { status, .. }) => {
                self.judge(status, None)
            }
            Err(error) if error.was_sent() => Err(Failed::unknown(&error)),
            Err(error) => Err(Failed::for_now(&error)),
        }
    }

    /// Judges an answer.
    fn judge(&self, status: u16, reply: Option<&Reply>) -> Result<(), Failed> {
        let body = reply.map(|reply| String::from_utf8_lossy(&reply.body));
        let body = ringfence_core::visible(body.as_deref().unwrap_or_default().trim());
        let cause = format!("the receiver answers {status}: {}", bounded(&body, CAUSE_BYTES_MAX));
        match status {
            200..300 => Ok(()),
            408 | 425 | 429 | 500.. => {
                let asked = reply.and_then(|reply| reply.header("retry-after"));
                if let Some(until_ms) =
                    asked.and_then(|text| pause_until(text, self.clock.now_ms()))
                {
                    self.pause_until_ms.store(until_ms, Ordering::Relaxed);
                }
                Err(Failed::ForNow(cause))
            }
            _ => Err(Failed::ForGood(cause)),
        }
    }
}

/// When the next request may be sent, in milliseconds since 1970, as `Retry-After` says it: seconds, or a date.
fn pause_until(text: &str, now_ms: u64) -> Option<u64> {
    let until_ms = match text.trim().parse::<u64>() {
        Ok(seconds) => now_ms.saturating_add(seconds.saturating_mul(1_000)),
        Err(_) => {
            let date = DateTime::from_str(text.trim(), Format::HttpDate).ok()?;
            u64::try_from(date.to_millis().ok()?).ok()?
        }
    };
    let most_ms = u64::try_from(PAUSE_MAX.as_millis()).unwrap_or(u64::MAX);
    Some(until_ms.min(now_ms.saturating_add(most_ms)))
}

/// Whether requests may go to this URL. The resolver checks the addresses of a name; a URL may have an address itself.
fn check(url: &str, private: bool) -> Result<(), WebhookError> {
    let url: Uri = url.parse().map_err(|_| WebhookError::Url)?;
    let host = url.host().filter(|host| !host.is_empty()).ok_or(WebhookError::Url)?;
    let is_http = matches!(url.scheme_str(), Some("https" | "http"));
    if !is_http || url.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(WebhookError::Url);
    }
    if private {
        return Ok(());
    }
    if url.scheme_str() != Some("https") {
        return Err(WebhookError::NotSecure);
    }
    let address = host.trim_start_matches('[').trim_end_matches(']').parse();
    if address.is_ok_and(|address| !public::is_public(address)) {
        return Err(WebhookError::Private);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
