//! Three services of AWS from which commands need an operation or two: CloudFormation, CloudWatch Logs and S3. Their SDKs
//! would take a sixth of a first build.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use aws_config::SdkConfig;
use aws_types::service_config::ServiceConfigKey;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ringfence::visible;
use ringfence_http::{Http, Signer};
use tokio::time::{sleep, timeout};

use crate::machine::http;

/// How often a request is sent if it has no answer, or one that asks to come again.
const ATTEMPTS_MAX: u32 = 3;
/// The pause after the first attempt; it doubles after each.
const PAUSE: Duration = Duration::from_millis(300);
/// The time for one attempt and its whole answer.
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// The longest answer in bytes: a failed batch has 6 MB, and much more if most of it are escaped quotation marks.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The longest part of a refusal that is repeated, in characters.
const REFUSAL_CHARS_MAX: usize = 300;

/// A service: the name by which requests are signed, which its host begins with, and the one in the names of variables.
pub(crate) struct Service {
    http: Http,
    url: String,
}

pub(crate) const CLOUDFORMATION: (&str, &str) = ("cloudformation", "CloudFormation");
pub(crate) const LOGS: (&str, &str) = ("logs", "CloudWatch Logs");
pub(crate) const S3: (&str, &str) = ("s3", "S3");

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl Answer {
    /// The text of an answer that is none of an error.
    pub(crate) fn accepted(self) -> Result<String> {
        let Self { status, text } = self;
        let cut: String = text.chars().take(REFUSAL_CHARS_MAX).collect();
        ensure!((200..300).contains(&status), "{status}: {}", visible(cut.trim()));
        Ok(text)
    }

    /// Whether the same request can be accepted later.
    fn is_for_now(&self) -> bool {
        let is_busy =
            ["Throttl", "SlowDown", "TooManyRequests"].iter().any(|it| self.text.contains(it));
        self.status == 429 || self.status >= 500 || (self.status >= 400 && is_busy)
    }
}

impl Service {
    /// The service, with the Region, the credentials and the endpoint that the configuration has.
    pub(crate) async fn of(config: &SdkConfig, (name, id): (&'static str, &str)) -> Result<Self> {
        let signer = Signer::of(config, name).await?;
        let key = ServiceConfigKey::builder().service_id(id).env("AWS_ENDPOINT_URL");
        let key = key.profile("endpoint_url").build()?;
        let own = config.service_config().and_then(|of_services| of_services.load_config(key));
        let url = match own.or_else(|| config.endpoint_url().map(str::to_owned)) {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => public(config, name, id)?,
        };
        Ok(Self { http: http(Some(signer), true, ANSWER_BYTES_MAX)?, url })
    }

    /// Sends a request, which takes the same effect if it is repeated. `path` begins with a slash.
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
            let answer =
                timeout(ANSWER_TIME, self.http.send(method, &url, headers, body.as_bytes())).await;
            let answer = answer.map_err(Into::into).flatten().map(|(status, body)| Answer {
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

/// The partitions of AWS whose endpoints are known here: how their Regions begin, and their domain. Others have longer
/// names in place of these, such as `us-iso-east-1`.
const DOMAINS: [(&str, &str); 2] = [("cn", "amazonaws.com.cn"), ("eusc", "amazonaws.eu")];

/// The public endpoint of a service.
fn public(config: &SdkConfig, name: &str, id: &str) -> Result<String> {
    let region = config.region().context("no Region: set AWS_REGION")?;
    let mut parts = region.as_ref().split('-');
    let (first, second) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let is_special = config.use_fips() == Some(true) || config.use_dual_stack() == Some(true);
    if is_special || second.starts_with("iso") {
        bail!(
            "the endpoint of {id} in {region} is not known: `export AWS_ENDPOINT_URL_{}=https://...`",
            id.to_uppercase().replace(' ', "_")
        );
    }
    let domain = DOMAINS.iter().find(|(start, _)| *start == first);
    let domain = domain.map_or("amazonaws.com", |(_, domain)| *domain);
    Ok(format!("https://{name}.{region}.{domain}"))
}

/// What URLs and forms of AWS have as it is, besides letters and digits.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// A part of a path or of a form. Slashes stay, as in the paths of S3.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// The texts of the elements of this name in an XML document of AWS, in which they have no attributes.
pub(crate) fn texts(xml: &str, name: &str) -> Vec<String> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let text = |after: &str| after.split_once(&close).map(|(text, _)| unescaped(text));
    xml.split(&open).skip(1).filter_map(text).collect()
}

fn unescaped(text: &str) -> String {
    let mut parts = text.split('&');
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let known = part.split_once(';').and_then(|(name, rest)| Some((character(name)?, rest)));
        match known {
            Some((character, rest)) => {
                whole.push(character);
                whole.push_str(rest);
            }
            None => {
                whole.push('&');
                whole.push_str(part);
            }
        }
    }
    whole
}

fn character(name: &str) -> Option<char> {
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix('x') {
                Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_xml_are_read_without_their_escapes() {
        let xml = "<All><Key>a&amp;&lt;b&#62;&#x22;</Key><Key></Key><KeyCount>2</KeyCount><Key>&odd;&</Key></All>";
        assert_eq!(texts(xml, "Key"), ["a&<b>\"", "", "&odd;&"]);
        assert_eq!(texts(xml, "Token"), [""; 0]);
    }

    #[test]
    fn a_service_has_the_endpoint_of_its_region_and_no_guess_for_another() {
        let region =
            |name: &'static str| SdkConfig::builder().region(aws_config::Region::new(name));
        let url =
            |config: &SdkConfig| public(config, LOGS.0, LOGS.1).map_err(|error| error.to_string());
        let of = |name| url(&region(name).build()).expect("a URL");
        assert_eq!(of("eu-central-1"), "https://logs.eu-central-1.amazonaws.com");
        assert_eq!(of("cn-north-1"), "https://logs.cn-north-1.amazonaws.com.cn");
        assert_eq!(of("eusc-de-east-1"), "https://logs.eusc-de-east-1.amazonaws.eu");
        for config in [region("us-east-1").use_fips(true), region("us-iso-east-1")] {
            let refused = url(&config.build()).expect_err("refused");
            assert!(
                refused.contains("`export AWS_ENDPOINT_URL_CLOUDWATCH_LOGS=https"),
                "{refused}"
            );
        }
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
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let router = Router::new().route("/busy", busy).route("/no", no);
        tokio::spawn(async move { axum::serve(listener, router).await });
        let service = Service { http: http(None, false, 10_000).expect("a client"), url };
        let call = async |path| service.call("GET", path, &[], "").await.and_then(Answer::accepted);
        assert_eq!(call("/busy").await.expect("an answer"), "yes");
        let refused = call("/no").await.expect_err("refused").to_string();
        assert_eq!(refused, format!("403: {}", "x".repeat(300)));
        assert_eq!(ASKED.load(Ordering::Relaxed), 3);
    }
}
