//! Services of AWS of which one operation is used. Their SDKs would take longer to compile than this crate.

use std::error::Error;
use std::time::Duration;

use aws_types::SdkConfig;

use crate::Trust;
use crate::http::{Http, HttpError, Reply, Signer, endpoint};

/// The time for a request and its whole answer.
const ANSWER_TIME: Duration = Duration::from_secs(4);
/// The longest answer, in bytes. A parameter has at most 8 KB.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// A service. Its requests are signed.
pub struct AwsService {
    http: Http,
    url: String,
}

impl AwsService {
    /// A service: requests are signed for `name`, its host begins with `host`, its variables end in `id`.
    ///
    /// # Errors
    /// The configuration lacks a Region, credentials, or an endpoint that is not known here.
    pub async fn of(
        config: &SdkConfig,
        trust: &Trust,
        [name, host, id]: [&'static str; 3],
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let signer = Signer::of(config, name).await?;
        let http = Http::new(trust.proxied(), Some(signer), ANSWER_BYTES_MAX);
        Ok(Self { http, url: endpoint(config, host, id)? })
    }

    /// Sends a request to a path that begins with a slash, and reads its whole answer.
    ///
    /// # Errors
    /// There is no whole answer in four seconds. The request may have taken effect.
    pub async fn post(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Reply, HttpError> {
        let url = format!("{}{path}", self.url);
        self.http.send_within(ANSWER_TIME, "POST", &url, headers, body.as_bytes()).await
    }
}
