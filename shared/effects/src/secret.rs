//! Secrets, which are in the Parameter Store of AWS. A function's variables have only their names, because many people
//! may read variables.
//!
//! One call reads a parameter, and one permission allows it. A parameter `/aws/reference/secretsmanager/<name>` is a secret
//! of the Secrets Manager, so both stores are reached in one way.

use std::error::Error;
use std::time::Duration;

use ringfence_aws::{AwsService, Clock, Trust, sdk_config};
use ringfence_lambda::bounded;
use serde_json::{Value, json};
use tokio::sync::Mutex;

/// A secret is read again after this time, so a new one needs no deployment.
const READ_AGAIN: Duration = Duration::from_secs(300);
/// After a failure the store is asked again after this time, which is shorter than each pause of a lane. Until then all
/// workers get the failure. Otherwise they would ask one after another, for longer than an effect may take.
const ASK_AGAIN: Duration = Duration::from_secs(2);

/// A parameter of the Parameter Store.
pub(crate) struct Secret {
    store: AwsService,
    name: String,
    clock: Clock,
    /// The last answer, and the time until which it is not asked for again, in milliseconds since 1970.
    known: Mutex<Option<(u64, Result<String, SecretError>)>>,
}

/// A secret can't be read.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the parameter {name} can't be read: {cause}")]
pub(crate) struct SecretError {
    name: String,
    cause: String,
}

impl Secret {
    pub(crate) async fn open(
        trust: &Trust,
        name: String,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let store = AwsService::of(&sdk_config()?, trust, ["ssm", "ssm", "SSM"]).await?;
        Ok(Self::of(store, name, Clock::system()))
    }

    pub(crate) fn of(store: AwsService, name: String, clock: Clock) -> Self {
        Self { store, name, clock, known: Mutex::default() }
    }

    /// The secret. If it can't be read again, the earlier value stays.
    pub(crate) async fn read(&self) -> Result<String, SecretError> {
        let mut known = self.known.lock().await;
        if let Some((until_ms, value)) = &*known
            && self.clock.now_ms() < *until_ms
        {
            return value.clone();
        }
        let (pause, value) = match (self.ask().await, known.take()) {
            (Ok(value), _) => (READ_AGAIN, Ok(value)),
            (Err(error), Some((_, Ok(last)))) => {
                tracing::warn!(cause = %error, "the last value is used");
                (ASK_AGAIN, Ok(last))
            }
            (Err(error), _) => (ASK_AGAIN, Err(error)),
        };
        let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        *known = Some((self.clock.now_ms().saturating_add(pause_ms), value.clone()));
        value
    }

    async fn ask(&self) -> Result<String, SecretError> {
        let failed = |cause: String| SecretError { name: self.name.clone(), cause };
        let headers = [
            ("content-type", "application/x-amz-json-1.1"),
            ("x-amz-target", "AmazonSSM.GetParameter"),
        ];
        let body = json!({ "Name": self.name, "WithDecryption": true }).to_string();
        let reply = self.store.post("/", &headers, &body).await;
        let reply = reply.map_err(|error| failed(error.to_string()))?;
        if reply.status != 200 {
            return Err(failed(format!("{} {}", reply.status, bounded(&reply.code(), 100))));
        }
        let body: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let value = body["Parameter"]["Value"].as_str().filter(|value| !value.is_empty());
        value.map(str::to_owned).ok_or_else(|| failed("it has no value".to_owned()))
    }
}
