//! ring-readers: notifies reactors with lanes when the index has grown.
//!
//! A stream takes two readers, and the index's has project-views already. So this one rings for all reactors: it sends an
//! entry to the EventTopic, and each reactor has a rule that takes it. A bell that is lost does no harm, because each reactor
//! also looks once a minute.

use std::time::Duration;

use aws_sdk_eventbridge::config::timeout::TimeoutConfig;
use lambda_runtime::{Diagnostic, Error};
use ringfence_aws::sdk_config;
use ringfence_lambda::{Call, Service, Variables, chain};
use serde_json::Value;

use crate::topic::aws::Topic;
use crate::topic::entry::TopicEntry;
use crate::topic::publisher::{Bus, Verdict};

/// The source of the entry. No context can have this name.
pub const BELL_SOURCE: &str = "ringfence";
/// The type of the entry.
pub const BELL_TYPE: &str = "IndexGrown";

/// One call, the SDK's own retries included.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// The function.
pub struct RingReaders(Topic);

impl Service for RingReaders {
    const NAME: &'static str = "ring-readers";
    const ANSWER_TIME: Duration = Duration::from_secs(1);
    const TIME_DEFAULT: Duration = Duration::from_secs(8);
    type Of = ();
    /// The name of the bus.
    type Config = String;

    fn config((): &(), variables: &mut Variables) -> String {
        variables.required("EVENT_BUS")
    }

    async fn open((): (), bus: String) -> Result<Self, Error> {
        let timeouts = TimeoutConfig::builder().operation_timeout(CALL_TIMEOUT).build();
        let config = sdk_config()?.into_builder().timeout_config(timeouts).build();
        let bus = Topic::new(aws_sdk_eventbridge::Client::new(&config), bus);
        bus.open().await;
        Ok(Self(bus))
    }

    async fn answer(&self, _: Call) -> Result<Value, Diagnostic> {
        let bell = TopicEntry {
            source: BELL_SOURCE.to_owned(),
            detail_type: BELL_TYPE.to_owned(),
            detail: "{}".to_owned(),
            id: String::new(),
            time_ms: None,
        };
        let why = match self.0.put(&[&bell]).await {
            Ok(verdicts) if verdicts == [Verdict::Sent] => return Ok(Value::Null),
            Ok(verdicts) => format!("{verdicts:?}"),
            Err(error) => chain(&error),
        };
        Err(Diagnostic { error_type: "not-rung".to_owned(), error_message: why })
    }
}
