//! The SDK's configuration on the machine of a person: variables, the files of the AWS CLI, and the machine's roots.

use std::net::IpAddr;

use anyhow::Result;
use aws_config::{BehaviorVersion, SdkConfig};
use aws_sdk_dynamodb::Client;
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};
use ringfence_aws::http::{Http, Signer};
use ringfence_aws::{CA_BUNDLE, Clock, Trust, client_of, open};

/// The environment's configuration for the clients of all services: Region, credentials, endpoints.
///
/// # Errors
/// As of [`trust`].
pub async fn sdk_config() -> Result<SdkConfig> {
    #[expect(clippy::disallowed_methods, reason = "the one place that loads it")]
    let loader = aws_config::defaults(BehaviorVersion::latest());
    Ok(without_empty_endpoints(loader.http_client(trust()?.http_client()).load().await))
}

/// A client of DynamoDB, whose first answer has set the clock right. Only the environment names its endpoint, as for
/// every AWS tool.
///
/// # Errors
/// As of [`trust`].
pub async fn dynamo_client() -> Result<Client> {
    let client = client_of(&sdk_config().await?);
    open(&client, &Clock::system()).await;
    Ok(client)
}

/// The variable with the endpoint of DynamoDB.
pub(crate) const DYNAMO_ENDPOINT: &str = "AWS_ENDPOINT_URL_DYNAMODB";

/// Whether this endpoint is on this machine.
#[must_use]
pub(crate) fn is_local(endpoint: &str) -> bool {
    let host = endpoint.parse::<http::Uri>().ok().and_then(|url| url.host().map(str::to_owned));
    host.is_some_and(|host| {
        let host = host.trim_matches(['[', ']']);
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    })
}

/// The endpoint of DynamoDB, if it is on this machine.
pub(crate) fn local_dynamo() -> Option<String> {
    let endpoint = std::env::var_os(DYNAMO_ENDPOINT)?.into_string().ok()?;
    is_local(&endpoint).then_some(endpoint)
}

/// The root certificates that the machine trusts, also a proxy's, or those of `AWS_CA_BUNDLE`.
///
/// # Errors
/// The certificates of that file can't be used.
pub fn trust() -> Result<Trust> {
    let bundle = std::env::var_os(CA_BUNDLE).filter(|path| !path.is_empty());
    Ok(Trust::of_machine().or_bundle(bundle)?)
}

/// A client that reads at most so many bytes of an answer. It reaches AWS through a configured proxy, and a stack on
/// this machine directly.
///
/// # Errors
/// As of [`trust`].
pub(crate) fn http(signer: Option<Signer>, is_far: bool, bytes_max: usize) -> Result<Http> {
    let trust = trust()?;
    let connector = if is_far { trust.proxied() } else { trust.connector() };
    Ok(Http::new(connector, signer, bytes_max))
}

/// Treats an empty endpoint variable as absent. The SDK would take the empty text for a URL, and panic at the first
/// request.
fn without_empty_endpoints(config: SdkConfig) -> SdkConfig {
    config.clone().into_builder().service_config(NotEmpty(config)).build()
}

/// The variables of one service that are not empty.
#[derive(Debug)]
struct NotEmpty(SdkConfig);

impl LoadServiceConfig for NotEmpty {
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        self.0.service_config()?.load_config(key).filter(|value| !value.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Variables that are the same for every service.
    #[derive(Debug)]
    struct Set(&'static str);

    impl LoadServiceConfig for Set {
        fn load_config(&self, _: ServiceConfigKey<'_>) -> Option<String> {
            Some(self.0.to_owned())
        }
    }

    #[test]
    fn only_an_endpoint_of_this_machine_is_local() {
        for (endpoint, expected) in [
            ("http://127.0.0.1:8000", true),
            ("http://127.9.8.7:8000", true),
            ("http://localhost:8000", true),
            ("http://[::1]:8000", true),
            ("https://dynamodb.eu-west-1.amazonaws.com", false),
            ("http://localhost.example.com", false),
            ("", false),
        ] {
            assert_eq!(is_local(endpoint), expected, "{endpoint}");
        }
    }

    #[test]
    fn an_empty_endpoint_counts_as_absent() {
        for (set, expected) in [("", None), ("http://127.0.0.1:1", Some("http://127.0.0.1:1"))] {
            let config = SdkConfig::builder().service_config(Set(set)).build();
            let key = ServiceConfigKey::builder()
                .service_id("SQS")
                .env("AWS_ENDPOINT_URL")
                .profile("endpoint_url");
            let key = key.build().expect("a key");
            let config = without_empty_endpoints(config);
            let found = config.service_config().and_then(|set| set.load_config(key));
            assert_eq!(found.as_deref(), expected);
        }
    }
}
