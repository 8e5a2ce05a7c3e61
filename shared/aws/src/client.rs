//! SDK clients, configured only by variables. [`crate::Retry`] retries requests to DynamoDB, not the SDK.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region, SharedCredentialsProvider};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::{
    BeforeDeserializationInterceptorContextRef, BeforeTransmitInterceptorContextRef,
};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::ConfigBag;
use aws_types::SdkConfig;
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};

use crate::Clock;
use crate::trust::{BundleError, CA_BUNDLE, Trust};

/// A connection within one Region takes a few milliseconds. If it takes longer, the path is broken.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// From the request's last byte to the answer's first. A transaction of 100 items takes well under one second.
const READ_TIMEOUT: Duration = Duration::from_secs(3);
/// One attempt as a whole, also for a page of 1 MB.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);

/// The configuration for the clients of all services, from the variables that Lambda sets for a function. It reads no
/// file except [`AWS_CA_BUNDLE`](crate::CA_BUNDLE).
///
/// # Errors
/// The certificates of that file can't be used.
pub fn sdk_config() -> Result<SdkConfig, BundleError> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    sdk_config_of(std::env::vars_os().filter_map(text).collect())
}

/// The configuration from these variables. An empty one counts as absent: a template leaves it empty if nothing is to
/// be set, and the SDK would take the empty text for a URL and panic at the first request.
///
/// # Errors
/// As of [`sdk_config`].
pub fn sdk_config_of(mut variables: BTreeMap<String, String>) -> Result<SdkConfig, BundleError> {
    variables.retain(|_, value| !value.is_empty());
    let text = |name: &str| variables.get(name).cloned();
    let is_on = |name: &str| variables.get(name).map(|value| value.eq_ignore_ascii_case("true"));
    let credentials = text("AWS_ACCESS_KEY_ID").zip(text("AWS_SECRET_ACCESS_KEY"));
    let credentials = credentials.map(|(id, secret)| {
        let token = text("AWS_SESSION_TOKEN");
        SharedCredentialsProvider::new(Credentials::new(id, secret, token, None, "variables"))
    });
    let trust = Trust::of_amazon().or_bundle(variables.get(CA_BUNDLE))?;
    let mut config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .http_client(trust.http_client());
    config.set_region(text("AWS_REGION").map(Region::new));
    config.set_credentials_provider(credentials);
    config.set_use_fips(is_on("AWS_USE_FIPS_ENDPOINT"));
    config.set_use_dual_stack(is_on("AWS_USE_DUALSTACK_ENDPOINT"));
    variables.retain(|name, _| name.starts_with("AWS_ENDPOINT_URL")); // none of these is a secret
    Ok(config.service_config(Endpoints(variables)).build())
}

/// The variables of endpoints: `AWS_ENDPOINT_URL_DYNAMODB` is for one service, `AWS_ENDPOINT_URL` for all others.
#[derive(Debug)]
struct Endpoints(BTreeMap<String, String>);

impl LoadServiceConfig for Endpoints {
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        let service = key.service_id().to_uppercase().replace(' ', "_");
        let own = self.0.get(&format!("{}_{service}", key.env()));
        own.or_else(|| self.0.get(key.env())).cloned()
    }
}

/// A client from the variables of this process ([`sdk_config`]). The SDK's retries are off, so every attempt is counted
/// once.
///
/// # Errors
/// As of [`sdk_config`].
pub fn client_from_env() -> Result<Client, BundleError> {
    Ok(client_of(&sdk_config()?))
}

/// A client from another configuration.
#[must_use]
pub fn client_of(config: &SdkConfig) -> Client {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .operation_attempt_timeout(ATTEMPT_TIMEOUT)
        .build();
    let config = aws_sdk_dynamodb::config::Builder::from(config)
        .retry_config(RetryConfig::disabled())
        .timeout_config(timeouts);
    Client::from_conf(config.build())
}

/// Opens the connection, with credentials and TLS, so the first command need not wait for it, and sets the clock right.
/// Any answer is enough, even a refusal: the call needs no permission and reads no table.
pub async fn open(client: &Client, clock: &Clock) {
    let opening = Opening { clock: clock.of_requests(), sent_ms: AtomicU64::default() };
    let request = client.describe_endpoints().customize().interceptor(opening);
    if let Err(error) = request.send().await {
        let known = error.raw_response().is_some();
        tracing::debug!(answered = known, "the request that opens the connection failed");
    }
}

/// Takes the store's time from the answer to a request of the SDK.
#[derive(Debug)]
struct Opening {
    clock: Clock,
    sent_ms: AtomicU64,
}

impl Intercept for Opening {
    fn name(&self) -> &'static str {
        "Opening"
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.sent_ms.store(self.clock.machine_ms(), Ordering::Relaxed);
        Ok(())
    }

    fn read_after_transmit(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.clock.hear(self.sent_ms.load(Ordering::Relaxed), context.response());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::config::ProvideCredentials;

    use super::*;

    fn config(variables: &[(&str, &str)]) -> SdkConfig {
        let own = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        sdk_config_of(variables.iter().map(own).collect()).expect("a configuration")
    }

    #[test]
    fn a_service_has_its_own_or_the_common_endpoint_and_ignores_an_empty_one() {
        let (own, all) = ("AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL");
        let (one, two) = ("http://127.0.0.1:1", "http://127.0.0.1:2");
        for (variables, dynamo, sqs) in [
            (vec![(own, one)], Some(one), None),
            (vec![(own, one), (all, two)], Some(one), Some(two)),
            (vec![(own, ""), (all, two)], Some(two), Some(two)),
            (vec![(own, ""), (all, "")], None, None),
        ] {
            let config = config(&variables);
            for (service, expected) in [("DynamoDB", dynamo), ("SQS", sqs)] {
                let key = ServiceConfigKey::builder().service_id(service).env(all);
                let key = key.profile("endpoint_url").build().expect("a key");
                let found = config.service_config().and_then(|set| set.load_config(key));
                assert_eq!(found.as_deref(), expected, "{variables:?}: {service}");
            }
        }
    }

    #[tokio::test]
    async fn region_credentials_and_kinds_of_endpoints_come_from_their_variables() {
        let none = config(&[("AWS_REGION", ""), ("AWS_ACCESS_KEY_ID", "id")]);
        assert!(none.region().is_none() && none.credentials_provider().is_none());
        assert_eq!((none.use_fips(), none.use_dual_stack()), (None, None));

        let config = config(&[
            ("AWS_REGION", "eu-west-1"),
            ("AWS_ACCESS_KEY_ID", "id"),
            ("AWS_SECRET_ACCESS_KEY", "s3cret"),
            ("AWS_SESSION_TOKEN", "t0ken"),
            ("AWS_USE_FIPS_ENDPOINT", "true"),
            ("AWS_USE_DUALSTACK_ENDPOINT", "FALSE"),
        ]);
        assert_eq!(config.region().map(AsRef::as_ref), Some("eu-west-1"));
        let provider = config.credentials_provider().expect("credentials");
        let found = provider.provide_credentials().await.expect("credentials");
        let found = (found.access_key_id(), found.secret_access_key(), found.session_token());
        assert_eq!(found, ("id", "s3cret", Some("t0ken")));
        assert_eq!((config.use_fips(), config.use_dual_stack()), (Some(true), Some(false)));
        let shown = format!("{config:?}");
        assert!(!shown.contains("s3cret") && !shown.contains("t0ken"), "{shown}");
    }
}
