//! notify-readers: notifies reactors with lanes when the index has grown.
//!
//! A stream takes two readers, and project-views is one for the index. So this function notifies all reactors: it sends
//! an entry to the EventTopic, and each reactor has a rule that takes it. A lost notification does no harm, because
//! each reactor also looks once a minute.

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
pub const NOTIFICATION_SOURCE: &str = "ringfence";
/// The type of the entry.
pub const NOTIFICATION_TYPE: &str = "IndexGrown";

/// One call, the SDK's own retries included.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// The function.
pub struct NotifyReaders(Topic);

impl Service for NotifyReaders {
    const NAME: &'static str = "notify-readers";
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
        let notification = TopicEntry {
            source: NOTIFICATION_SOURCE.to_owned(),
            detail_type: NOTIFICATION_TYPE.to_owned(),
            detail: "{}".to_owned(),
            id: String::new(),
            time_ms: None,
        };
        let why = match self.0.put(&[&notification]).await {
            Ok(verdicts) if verdicts == [Verdict::Sent] => return Ok(Value::Null),
            Ok(verdicts) => format!("{verdicts:?}"),
            Err(error) => chain(&error),
        };
        Err(Diagnostic { error_type: "not-notified".to_owned(), error_message: why })
    }
}
