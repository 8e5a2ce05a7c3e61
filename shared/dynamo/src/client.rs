//! SDK clients, configured by the environment alone. DynamoDB's leaves retries to [`crate::Retry`].

use std::collections::BTreeMap;
use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, SdkConfig};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{Credentials, Region, SharedCredentialsProvider};
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};

/// A connection within one Region is up in a few milliseconds; if it takes longer, the path is broken.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// From the request's last byte to the answer's first; a transaction of 100 items takes well
/// under one second.
const READ_TIMEOUT: Duration = Duration::from_secs(3);
/// One attempt as a whole, a page of 1 MB included.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);

/// What the environment says for the clients of all services: Region, credentials, endpoints.
pub async fn sdk_config() -> SdkConfig {
    #[expect(clippy::disallowed_methods, reason = "the one place that loads it")]
    let config = aws_config::load_defaults(BehaviorVersion::latest()).await;
    without_empty_endpoints(config)
}

/// What these variables say for the clients of all services, in place of those of the environment: Region,
/// credentials, and the endpoint of each service (`AWS_ENDPOINT_URL_DYNAMODB`).
#[must_use]
pub fn sdk_config_of(variables: BTreeMap<String, String>) -> SdkConfig {
    let text = |name: &str| variables.get(name).cloned().unwrap_or_default();
    let (id, secret) = (text("AWS_ACCESS_KEY_ID"), text("AWS_SECRET_ACCESS_KEY"));
    let credentials = Credentials::new(id, secret, None, None, "variables");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(text("AWS_REGION")))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .service_config(Variables(variables))
        .build()
}

/// Variables by name, each for one service.
#[derive(Debug)]
struct Variables(BTreeMap<String, String>);

impl LoadServiceConfig for Variables {
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        let service = key.service_id().to_uppercase().replace(' ', "_");
        self.0.get(&format!("{}_{service}", key.env())).cloned()
    }
}

/// An endpoint's variable that is empty counts as absent; a template leaves it so where nothing is to be
/// set. The SDK would take the empty text for a URL, and panic at the first request.
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

/// A client from the environment: Region, credentials, and `AWS_ENDPOINT_URL_DYNAMODB` if it is
/// set. The SDK's own retries are off, so that every attempt is counted once.
pub async fn client_from_env() -> Client {
    client_at(None).await
}

/// The same for the DynamoDB at `endpoint`, if one is given.
pub async fn client_at(endpoint: Option<&str>) -> Client {
    client_of(&sdk_config().await, endpoint)
}

/// The same of a configuration that was loaded before.
#[must_use]
pub fn client_of(config: &SdkConfig, endpoint: Option<&str>) -> Client {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .operation_attempt_timeout(ATTEMPT_TIMEOUT)
        .build();
    let config = aws_sdk_dynamodb::config::Builder::from(config)
        .retry_config(RetryConfig::disabled())
        .timeout_config(timeouts);
    let config = match endpoint {
        Some(endpoint) => config.endpoint_url(endpoint),
        None => config,
    };
    Client::from_conf(config.build())
}

/// Opens the connection, credentials and TLS included, so that the first command need not wait
/// for it. Any answer will do, even a refusal: the call needs no permission and reads no table.
pub async fn open(client: &Client) {
    if let Err(error) = client.describe_endpoints().send().await {
        let known = error.raw_response().is_some();
        tracing::debug!(answered = known, "the request that opens the connection failed");
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
    fn the_endpoint_of_a_service_comes_from_its_variable() {
        let name = "AWS_ENDPOINT_URL_DYNAMODB".to_owned();
        let config = sdk_config_of([(name, "http://127.0.0.1:1".to_owned())].into());
        for (service, expected) in [("DynamoDB", Some("http://127.0.0.1:1")), ("SQS", None)] {
            let key = ServiceConfigKey::builder().service_id(service).env("AWS_ENDPOINT_URL");
            let key = key.profile("endpoint_url").build().expect("a key");
            let found = config.service_config().and_then(|set| set.load_config(key));
            assert_eq!(found.as_deref(), expected, "{service}");
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
