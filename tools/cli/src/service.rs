//! The services of AWS from which commands need one or two operations. Their SDKs would take a sixth of a first build.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use aws_config::SdkConfig;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ringfence_aws::http::{Http, Reply, Signer, endpoint};
use ringfence_core::visible;
use roxmltree::Document;
use tokio::time::{sleep, timeout};

use crate::machine::http;

/// A request is sent at most this often, if it has no answer, or one that asks to retry.
const ATTEMPTS_MAX: u32 = 3;
/// The pause after the first attempt. It doubles after each.
const PAUSE: Duration = Duration::from_millis(300);
/// The time limit for one attempt and its whole answer.
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// The longest answer in bytes: a failed batch has 6 MB, and much more if most of it are escaped quotation marks.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// At most this many characters of a refusal are repeated.
const REFUSAL_CHARS_MAX: usize = 300;

/// A service: its name in signatures and host names, and its name in variables.
pub(crate) struct Service {
    http: Http,
    url: String,
}

pub(crate) const CLOUDFORMATION: (&str, &str) = ("cloudformation", "CloudFormation");
pub(crate) const CLOUDWATCH: (&str, &str) = ("monitoring", "CloudWatch");
pub(crate) const COGNITO: (&str, &str) = ("cognito-idp", "Cognito Identity Provider");
pub(crate) const LOGS: (&str, &str) = ("logs", "CloudWatch Logs");
pub(crate) const S3: (&str, &str) = ("s3", "S3");

/// The header of a form.
pub(crate) const FORM: [(&str, &str); 1] = [("content-type", "application/x-www-form-urlencoded")];

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl Answer {
    /// The text of a successful answer.
    pub(crate) fn accepted(self) -> Result<String> {
        let Self { status, text } = self;
        let said = texts(&text, "Message").ok().and_then(|found| found.into_iter().next());
        let said = said.as_deref().unwrap_or(&text).trim();
        let cut: String = said.chars().take(REFUSAL_CHARS_MAX).collect();
        ensure!((200..300).contains(&status), "{status}: {}", visible(&cut));
        Ok(text)
    }

    /// Whether the same request may succeed later.
    fn is_for_now(&self) -> bool {
        let is_busy =
            ["Throttl", "SlowDown", "TooManyRequests"].iter().any(|it| self.text.contains(it));
        self.status == 429 || self.status >= 500 || (self.status >= 400 && is_busy)
    }
}

impl Service {
    /// The service, with Region, credentials and endpoint from the configuration.
    pub(crate) async fn of(config: &SdkConfig, (name, id): (&'static str, &str)) -> Result<Self> {
        let signer = Signer::of(config, name).await?;
        let url = endpoint(config, name, id)?;
        Ok(Self { http: http(Some(signer), true, ANSWER_BYTES_MAX)?, url })
    }

    /// A service that takes unsigned requests.
    pub(crate) fn unsigned(url: &str) -> Result<Self> {
        let is_far = url.starts_with("https://");
        Ok(Self { http: http(None, is_far, ANSWER_BYTES_MAX)?, url: url.to_owned() })
    }

    /// Sends a request that may be repeated. `path` is empty or begins with a slash.
    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Answer> {
        let url = format!("{}{path}", self.url);
        let (mut attempts, mut pause) = (1, PAUSE);
        loop {
            let sent = self.http.send(method, &url, headers, body.as_bytes());
            let answer = match timeout(ANSWER_TIME, sent).await {
                Ok(answer) => answer.map_err(anyhow::Error::from),
                Err(late) => Err(late.into()),
            };
            let answer = answer.map(|Reply { status, body, .. }| Answer {
                status,
                text: String::from_utf8_lossy(&body).into_owned(),
            });
            let again = answer.as_ref().map_or(true, Answer::is_for_now);
            if !again || attempts == ATTEMPTS_MAX {
                return answer.with_context(|| format!("{method} {url}"));
            }
            sleep(pause).await;
            (attempts, pause) = (attempts + 1, pause * 2);
        }
    }
}

/// URLs and forms of AWS keep these characters besides letters and digits.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Encodes a part of a path or of a form. Slashes stay, as in the paths of S3.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// The texts of the elements of this name in an XML document.
pub(crate) fn texts(xml: &str, name: &str) -> Result<Vec<String>> {
    let document = Document::parse(xml).context("the answer isn't XML")?;
    let named = document.descendants().filter(|node| node.tag_name().name() == name);
    Ok(named.map(|node| node.text().unwrap_or_default().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_xml_are_read_in_any_namespace_and_a_part_of_an_answer_is_refused() {
        let xml =
            "<All xmlns='a'><Key>a&amp;&lt;b&#62;&#x22;</Key><Key/><KeyCount>2</KeyCount></All>";
        assert_eq!(texts(xml, "Key").unwrap(), ["a&<b>\"", ""]);
        assert_eq!(texts(xml, "Token").unwrap(), [""; 0]);
        assert!(texts(&xml[..40], "Key").is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_service_is_asked_again_and_another_refusal_is_repeated_in_short() {
        use axum::{Router, http::StatusCode, routing::get};
        use std::sync::atomic::{AtomicUsize, Ordering};

        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let busy = get(async || match ASKED.fetch_add(1, Ordering::Relaxed) {
            0 => (StatusCode::BAD_REQUEST, "ThrottlingException"),
            1 => (StatusCode::SERVICE_UNAVAILABLE, "later"),
            _ => (StatusCode::OK, "yes"),
        });
        let no = get(async || (StatusCode::FORBIDDEN, "x".repeat(1_000)));
        let why =
            get(async || (StatusCode::BAD_REQUEST, "<Error><Message>a &amp; b</Message></Error>"));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let router = Router::new().route("/busy", busy).route("/no", no).route("/why", why);
        tokio::spawn(async move { axum::serve(listener, router).await });
        let service = Service::unsigned(&url).expect("a client");
        let call = async |path| service.call("GET", path, &[], "").await.and_then(Answer::accepted);
        assert_eq!(call("/busy").await.expect("an answer"), "yes");
        let refused = call("/no").await.expect_err("refused").to_string();
        assert_eq!(refused, format!("403: {}", "x".repeat(300)));
        assert_eq!(call("/why").await.expect_err("refused").to_string(), "400: a & b");
        assert_eq!(ASKED.load(Ordering::Relaxed), 3);
    }
}
