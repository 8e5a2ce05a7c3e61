//! The SDK client: everything from the environment, retries left to [`crate::Retry`].

use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::Client;

/// A connection within one Region is up in a few milliseconds; more is a broken path.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// From the request's last byte to the answer's first; a transaction of 100 items takes well
/// under one second.
const READ_TIMEOUT: Duration = Duration::from_secs(3);
/// One attempt as a whole, a page of 1 MB included.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);

/// A client from the environment: Region, credentials, and `AWS_ENDPOINT_URL_DYNAMODB` if it is
/// set. The SDK's own retries are off, so that every attempt is counted once.
pub async fn client_from_env() -> Client {
    client_at(None).await
}

/// The same for the DynamoDB at `endpoint`, if one is given.
pub async fn client_at(endpoint: Option<&str>) -> Client {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .operation_attempt_timeout(ATTEMPT_TIMEOUT)
        .build();
    let config = aws_config::defaults(BehaviorVersion::latest())
        .retry_config(RetryConfig::disabled())
        .timeout_config(timeouts)
        .load()
        .await;
    let config = aws_sdk_dynamodb::config::Builder::from(&config);
    let config = match endpoint {
        Some(endpoint) => config.endpoint_url(endpoint),
        None => config,
    };
    Client::from_conf(config.build())
}

/// Opens the connection, credentials and TLS included, so that the first command need not wait
/// for it. Any answer will do, also a refusal: the call needs no permission and reads no table.
pub async fn open(client: &Client) {
    if let Err(error) = client.describe_endpoints().send().await {
        let known = error.raw_response().is_some();
        tracing::debug!(answered = known, "the connection was opened without an answer to use");
    }
}
