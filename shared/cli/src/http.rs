//! HTTP as the clients of the SDK speak it: requests that are signed for a service of AWS, and whole answers.

use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use aws_config::SdkConfig;
use aws_credential_types::provider::ProvideCredentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4::SigningParams;
use aws_smithy_runtime_api::client::http::{HttpConnector, SharedHttpConnector};
use aws_smithy_runtime_api::client::identity::Identity;
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use ringfence_dynamo::Clock;

use crate::machine::trust;

/// The service that signs the bytes of its paths as they are sent, and its bodies by a header.
const S3: &str = "s3";

/// A client. With a signer, each request is signed.
pub(crate) struct Http {
    connector: SharedHttpConnector,
    signer: Option<Signer>,
    bytes_max: usize,
}

impl Http {
    /// A client whose answers have at most so many bytes.
    pub(crate) fn new(signer: Option<Signer>, bytes_max: usize) -> Result<Self> {
        // A stack on this machine is asked directly, and AWS through a company's proxy.
        let connector = if signer.is_some() { trust()?.proxied() } else { trust()?.connector() };
        let connector = SharedHttpConnector::new(connector);
        Ok(Self { connector, signer, bytes_max })
    }

    /// Sends a request with these headers, whose names are in lower case, and reads the whole answer: its status and
    /// its body.
    pub(crate) async fn send(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<(u16, Vec<u8>)> {
        let mut request = HttpRequest::new(SdkBody::from(body));
        request.set_method(method)?;
        request.set_uri(url).with_context(|| format!("{url} is not a URL"))?;
        if let Some(signer) = &self.signer {
            let signed = signer.sign(method, url, headers, body, Clock::system().now_ms());
            for (name, value) in signed.with_context(|| format!("signing the request to {url}"))? {
                request.headers_mut().try_insert(name, value)?;
            }
        }
        for (name, value) in headers {
            request.headers_mut().try_insert((*name).to_owned(), (*value).to_owned())?;
        }
        let answer = self.connector.call(request).await?;
        let status = answer.status().as_u16();
        let (mut parts, mut body) = (ByteStream::new(answer.into_body()), Vec::new());
        while let Some(part) = parts.try_next().await? {
            body.extend_from_slice(&part);
            ensure!(body.len() <= self.bytes_max, "it has more than {} bytes", self.bytes_max);
        }
        Ok((status, body))
    }
}

/// Signs requests to one service.
pub(crate) struct Signer {
    identity: Identity,
    region: String,
    service: &'static str,
}

impl Signer {
    pub(crate) async fn of(config: &SdkConfig, service: &'static str) -> Result<Self> {
        let region = config.region().context("no Region: set AWS_REGION")?.to_string();
        let provider =
            config.credentials_provider().context("the environment has no credentials")?;
        let credentials =
            provider.provide_credentials().await.context("reading the credentials")?;
        Ok(Self { identity: credentials.into(), region, service })
    }

    /// The headers that sign a request at this time, in milliseconds since 1970.
    fn sign(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: &str,
        now_ms: u64,
    ) -> Result<Vec<(String, String)>> {
        let mut settings = SigningSettings::default();
        if self.service == S3 {
            settings.percent_encoding_mode = PercentEncodingMode::Single;
            settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
            settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        }
        let parameters = SigningParams::builder()
            .identity(&self.identity)
            .region(&self.region)
            .name(self.service)
            .time(UNIX_EPOCH + Duration::from_millis(now_ms))
            .settings(settings)
            .build()?
            .into();
        let body = SignableBody::Bytes(body.as_bytes());
        let request = SignableRequest::new(method, url, headers.iter().copied(), body)?;
        let (signed, _) = sign(request, &parameters)?.into_parts();
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Ok(signed.headers().map(owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use aws_credential_types::Credentials;

    use super::*;

    /// The signature was computed by hand, as the documentation of AWS says.
    #[test]
    fn a_request_to_aws_is_signed_with_all_its_headers() {
        let credentials =
            Credentials::new("AKIDEXAMPLE", "secret", Some("token".to_owned()), None, "test");
        let region = "eu-central-1".to_owned();
        let signer = Signer { identity: credentials.into(), region, service: "execute-api" };
        let headers = [("content-type", "application/json"), ("idempotency-key", "k1")];
        let url = "https://abc.execute-api.eu-central-1.amazonaws.com/rooms/book";
        let signed = signer.sign("POST", url, &headers, "{}", 1_719_100_800_000).unwrap();
        let signed: BTreeMap<_, _> = signed.into_iter().collect();
        assert_eq!(signed["x-amz-date"], "20240623T000000Z");
        assert_eq!(signed["x-amz-security-token"], "token");
        assert_eq!(
            signed["authorization"],
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20240623/eu-central-1/execute-api/aws4_request, \
             SignedHeaders=content-type;host;idempotency-key;x-amz-date;x-amz-security-token, \
             Signature=0e2ca4a0a235813ea3461161ecf7711d553b2bd561733d199397aff02b232e01"
        );
    }

    /// The example "GET Object" of the documentation of S3.
    #[test]
    fn a_request_to_s3_is_signed_with_the_hash_of_its_body() {
        let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        let credentials = Credentials::new("AKIAIOSFODNN7EXAMPLE", secret, None, None, "test");
        let region = "us-east-1".to_owned();
        let signer = Signer { identity: credentials.into(), region, service: S3 };
        let url = "https://examplebucket.s3.amazonaws.com/test.txt";
        let headers = [("range", "bytes=0-9")];
        let signed = signer.sign("GET", url, &headers, "", 1_369_353_600_000).unwrap();
        let signed: BTreeMap<_, _> = signed.into_iter().collect();
        assert_eq!(
            signed["authorization"],
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, \
             SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, \
             Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
    }
}
