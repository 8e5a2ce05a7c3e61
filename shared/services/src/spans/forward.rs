//! The function.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use flate2::{Compression, write::GzEncoder};
use lambda_runtime::{Diagnostic, Error};
use ringfence_aws::http::{Http, Signer};
use ringfence_aws::{CA_BUNDLE, Trust, sdk_config};
use ringfence_core::visible;
use ringfence_lambda::{Call, Service, Variables, chain};
use serde_json::Value;
use tokio::time::timeout;

use crate::spans::batch::Batch;
use crate::spans::line::span;
use crate::spans::otlp::{TraceSpan, document};

/// The service that takes spans on AWS. Requests are signed for this name, and its host begins with it.
const XRAY: &str = "xray";
/// The most spans of a request. X-Ray takes 10,000 with 5 MB before they are packed; a span of a line has less than
/// 2 KB.
const SPANS_MAX: usize = 2_000;
/// The longest answer, in bytes.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// The longest part of a refusal that is logged, in characters.
const REFUSAL_CHARS_MAX: usize = 300;

/// The function. It sends to one collector.
pub struct ForwardSpans {
    http: Http,
    url: String,
}

/// The configuration, from its variables.
pub struct Config {
    url: String,
    bundle: String,
}

impl Service for ForwardSpans {
    const NAME: &'static str = "forward-spans";
    // A lost span is still in the log.
    const HAS_ALARM: bool = false;
    const ANSWER_TIME: Duration = Duration::from_secs(1);
    const TIME_DEFAULT: Duration = Duration::from_secs(20);
    type Of = ();
    type Config = Config;

    fn config((): &(), variables: &mut Variables) -> Config {
        let url = variables.required("SPANS_URL");
        Config { url, bundle: variables.optional(CA_BUNDLE, String::new()) }
    }

    async fn open((): (), Config { url, bundle }: Config) -> Result<Self, Error> {
        Self::at(&url, bundle).await
    }

    /// Sends the spans of a batch of lines. If one fails, the invocation fails, so Lambda tries the batch twice more. A
    /// span that comes twice has the same ids.
    async fn answer(&self, call: Call) -> Result<Value, Diagnostic> {
        let forwarded = timeout(call.time, self.forward(&call)).await;
        match forwarded.map_err(Into::into).flatten() {
            Ok((lines, spans)) => {
                let function_request_id = call.request_id;
                tracing::info!(function_request_id, lines, spans, "forwarded");
                Ok(Value::Null)
            }
            Err(error) => {
                let (error_type, error_message) = ("not-forwarded".to_owned(), chain(&*error));
                Err(Diagnostic { error_type, error_message })
            }
        }
    }
}

impl ForwardSpans {
    /// The function for the collector at this URL. It trusts the certificates of the file `bundle`, or Amazon's if that
    /// is empty.
    ///
    /// # Errors
    /// The file can't be used, or the collector is X-Ray and the variables have no Region or no credentials.
    pub async fn at(url: &str, bundle: String) -> Result<Self, Error> {
        let bundle = Some(bundle).filter(|path| !path.is_empty());
        let connector = Trust::of_amazon().or_bundle(bundle)?.proxied();
        let signer = match is_xray(url) {
            true => Some(Signer::of(&sdk_config()?, XRAY).await?),
            false => None,
        };
        Ok(Self { http: Http::new(connector, signer, ANSWER_BYTES_MAX), url: url.to_owned() })
    }

    /// How many lines there were, and how many spans were sent.
    async fn forward(&self, call: &Call) -> Result<(usize, usize)> {
        let batch = Batch::of(&call.payload)?;
        let lines: Vec<_> = batch.lines_of_others(&call.function).collect();
        let spans: Vec<_> = lines.iter().filter_map(|line| span(line)).collect();
        for spans in spans.chunks(SPANS_MAX) {
            self.send(spans).await.with_context(|| format!("sending spans to {}", self.url))?;
        }
        Ok((lines.len(), spans.len()))
    }

    async fn send(&self, spans: &[TraceSpan]) -> Result<()> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(document(spans).to_string().as_bytes())?;
        let headers = [("content-type", "application/json"), ("content-encoding", "gzip")];
        let body = packed.finish()?;
        let reply = self.http.send("POST", &self.url, &headers, &body).await?;
        let (status, answer) = (reply.status, String::from_utf8_lossy(&reply.body));
        let cut: String = answer.chars().take(REFUSAL_CHARS_MAX).collect();
        ensure!((200..300).contains(&status), "{status}: {}", visible(cut.trim()));
        let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
        let partial = &answer["partialSuccess"];
        if let Some(message) = partial["errorMessage"].as_str().filter(|it| !it.is_empty()) {
            // It has taken the others, and would refuse these again.
            let cause: String = message.chars().take(REFUSAL_CHARS_MAX).collect();
            tracing::warn!(cause, refused = %partial["rejectedSpans"], "spans are refused");
        }
        Ok(())
    }
}

/// Whether the URL is of X-Ray, which takes only signed requests.
fn is_xray(url: &str) -> bool {
    url.strip_prefix("https://xray.").is_some_and(|rest| rest.contains(".amazonaws.com"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_to_x_ray_are_signed_and_no_others() {
        for url in [
            "https://xray.eu-central-1.amazonaws.com/v1/traces",
            "https://xray.cn-north-1.amazonaws.com.cn/v1/traces",
        ] {
            assert!(is_xray(url), "{url}");
        }
        for url in ["http://127.0.0.1:4318/v1/traces", "https://collector.example.com/v1/traces"] {
            assert!(!is_xray(url), "{url}");
        }
    }
}
