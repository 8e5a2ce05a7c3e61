//! Signs requests to services of AWS.

use std::error::Error;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4::SigningParams;
use aws_types::SdkConfig;
use tokio::sync::Mutex;

/// S3 signs the bytes of its paths as they are sent, and its bodies by a header.
const S3: &str = "s3";

/// Credentials are renewed if they expire within this time, so they are valid until the request arrives.
const RENEWED_BEFORE: Duration = Duration::from_secs(60);

/// A request can't be signed.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// The configuration has no Region.
    #[error("no Region: set AWS_REGION")]
    NoRegion,
    /// The configuration has no credentials.
    #[error("the environment has no credentials")]
    NoCredentials,
    /// The provider of the credentials has failed.
    #[error("reading the credentials")]
    Credentials(#[source] CredentialsError),
    /// The request has parts that can't be signed, such as an invalid URL.
    #[error("signing the request")]
    Request(#[source] Box<dyn Error + Send + Sync>),
}

/// Signs requests to one service.
pub struct Signer {
    provider: SharedCredentialsProvider,
    /// The credentials of the last request.
    credentials: Mutex<Credentials>,
    region: String,
    service: &'static str,
}

impl Signer {
    /// A signer of requests to the service of this name, with the Region and the credentials of the configuration.
    ///
    /// # Errors
    /// The configuration lacks one of them, or the credentials can't be read.
    pub async fn of(config: &SdkConfig, service: &'static str) -> Result<Self, SignError> {
        let region = config.region().ok_or(SignError::NoRegion)?.to_string();
        let provider = config.credentials_provider().ok_or(SignError::NoCredentials)?;
        let credentials = Mutex::new(of_provider(&provider).await?);
        Ok(Self { provider, credentials, region, service })
    }

    /// The credentials for a request at this time. A program may run longer than they are valid.
    async fn credentials(&self, now: SystemTime) -> Result<Credentials, SignError> {
        let mut credentials = self.credentials.lock().await;
        if credentials.expiry().is_some_and(|end| end < now + RENEWED_BEFORE) {
            *credentials = of_provider(&self.provider).await?;
        }
        Ok(credentials.clone())
    }

    /// The headers that sign a request at this time, in milliseconds since 1970.
    pub(crate) async fn sign(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: &[u8],
        now_ms: u64,
    ) -> Result<Vec<(String, String)>, SignError> {
        let mut settings = SigningSettings::default();
        if self.service == S3 {
            settings.percent_encoding_mode = PercentEncodingMode::Single;
            settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
            settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        }
        let now = UNIX_EPOCH + Duration::from_millis(now_ms);
        let identity = self.credentials(now).await?.into();
        let parameters = SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name(self.service)
            .time(now)
            .settings(settings)
            .build()
            .expect("all that it needs is set")
            .into();
        let body = SignableBody::Bytes(body);
        let request = SignableRequest::new(method, url, headers.iter().copied(), body)
            .map_err(|error| SignError::Request(error.into()))?;
        let signed = sign(request, &parameters);
        let (signed, _) = signed.map_err(|error| SignError::Request(error.into()))?.into_parts();
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Ok(signed.headers().map(owned).collect())
    }
}

async fn of_provider(provider: &SharedCredentialsProvider) -> Result<Credentials, SignError> {
    provider.provide_credentials().await.map_err(SignError::Credentials)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicU64, Ordering};

    use aws_credential_types::provider::future;
    use aws_types::region::Region;

    use super::*;

    async fn signer(
        provider: impl ProvideCredentials + 'static,
        region: &'static str,
        service: &'static str,
    ) -> Signer {
        let config = SdkConfig::builder().region(Region::new(region));
        let config = config.credentials_provider(SharedCredentialsProvider::new(provider)).build();
        Signer::of(&config, service).await.expect("a Region and credentials")
    }

    /// Credentials for an hour each: the first ones until 01:00, the second ones until 02:00.
    #[derive(Debug)]
    struct Hourly(AtomicU64);

    impl ProvideCredentials for Hourly {
        fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
        where
            Self: 'a,
        {
            let hour = self.0.fetch_add(1, Ordering::Relaxed);
            let end = Some(UNIX_EPOCH + Duration::from_secs(hour * 3_600));
            let key = format!("AKID{hour}");
            future::ProvideCredentials::ready(Ok(Credentials::new(key, "s", None, end, "test")))
        }
    }

    #[tokio::test]
    async fn credentials_are_renewed_a_minute_before_they_expire() {
        let signer = signer(Hourly(AtomicU64::new(1)), "eu-central-1", "execute-api").await;
        for (seconds, key) in [(0, "AKID1"), (3_540, "AKID1"), (3_541, "AKID2"), (7_000, "AKID2")] {
            let signed = signer.sign("GET", "https://a.com/", &[], b"", seconds * 1_000).await;
            let signed: BTreeMap<_, _> = signed.unwrap().into_iter().collect();
            let begin = format!("AWS4-HMAC-SHA256 Credential={key}/");
            assert!(signed["authorization"].starts_with(&begin), "{seconds} {signed:?}");
        }
    }

    /// The expected signature was computed by hand, as the documentation of AWS says.
    #[tokio::test]
    async fn a_request_to_aws_is_signed_with_all_its_headers() {
        let credentials =
            Credentials::new("AKIDEXAMPLE", "secret", Some("token".to_owned()), None, "test");
        let signer = signer(credentials, "eu-central-1", "execute-api").await;
        let headers = [("content-type", "application/json"), ("idempotency-key", "k1")];
        let url = "https://abc.execute-api.eu-central-1.amazonaws.com/rooms/book";
        let signed = signer.sign("POST", url, &headers, b"{}", 1_719_100_800_000).await.unwrap();
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
    #[tokio::test]
    async fn a_request_to_s3_is_signed_with_the_hash_of_its_body() {
        let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        let credentials = Credentials::new("AKIAIOSFODNN7EXAMPLE", secret, None, None, "test");
        let signer = signer(credentials, "us-east-1", S3).await;
        let url = "https://examplebucket.s3.amazonaws.com/test.txt";
        let headers = [("range", "bytes=0-9")];
        let signed = signer.sign("GET", url, &headers, b"", 1_369_353_600_000).await.unwrap();
        let signed: BTreeMap<_, _> = signed.into_iter().collect();
        assert_eq!(
            signed["authorization"],
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, \
             SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, \
             Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
    }
}
