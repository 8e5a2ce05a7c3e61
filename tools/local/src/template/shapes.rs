//! The properties of the template's resources in AWS's form. An unknown property is an error if it could change the
//! behaviour.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::route;

/// The position at which a new mapping starts to read its stream.
#[derive(Deserialize)]
pub(super) enum StartingPosition {
    /// At the oldest record.
    #[serde(rename = "TRIM_HORIZON")]
    TrimHorizon,
}

#[derive(Deserialize)]
pub(super) struct EventType {
    #[serde(rename = "Type")]
    pub(super) kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct HttpApiEvent {
    #[serde(deserialize_with = "route::path")]
    pub(super) path: String,
    #[serde(deserialize_with = "route::method")]
    pub(super) method: String,
    #[serde(default)]
    pub(super) auth: RouteAuth,
    // There is one API here.
    #[serde(rename = "ApiId")]
    _api: Option<Value>,
    #[serde(rename = "PayloadFormatVersion")]
    _payload: Option<PayloadFormat>,
}

/// A route's access, as far as it differs from the rest of the API.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct RouteAuth {
    pub(super) authorizer: Option<String>,
    pub(super) authorization_scopes: Option<Vec<String>>,
}

/// The access to the routes of an API. The issuer is not read, because a parameter without a default names it.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ApiAuth {
    default_authorizer: Option<String>,
    #[serde(default)]
    authorizers: BTreeMap<String, Value>,
}

impl ApiAuth {
    /// The scopes of a route, of which a token needs one; `None` if the route takes no tokens.
    pub(super) fn token_scopes(&self, route: RouteAuth) -> Option<Vec<String>> {
        let name = route.authorizer.as_ref().or(self.default_authorizer.as_ref())?;
        self.authorizers.get(name)?.get("JwtConfiguration")?;
        Some(route.authorization_scopes.unwrap_or_default())
    }
}

/// The format of an HTTP request for a function.
#[derive(Deserialize)]
pub(super) enum PayloadFormat {
    #[serde(rename = "2.0")]
    Two,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct StreamEvent {
    pub(super) stream: String,
    #[serde(rename = "StartingPosition")]
    _starting_position: StartingPosition,
    pub(super) batch_size: Option<usize>,
    pub(super) filter_criteria: Option<FilterCriteria>,
    pub(super) bisect_batch_on_function_error: Option<bool>,
    pub(super) function_response_types: Option<Vec<String>>,
    pub(super) maximum_retry_attempts: Option<i64>,
    pub(super) maximum_record_age_in_seconds: Option<i64>,
    pub(super) destination_config: Option<DestinationConfig>,
    // These change neither which records arrive nor how they may be batched.
    #[serde(rename = "MaximumBatchingWindowInSeconds")]
    _batching_window: Option<u64>,
    #[serde(rename = "ParallelizationFactor")]
    _parallelization: Option<u64>,
    #[serde(rename = "MetricsConfig")]
    _metrics: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct QueueEvent {
    pub(super) queue: String,
    pub(super) batch_size: Option<usize>,
    pub(super) function_response_types: Option<Vec<String>>,
    // A function has few processes here anyway.
    #[serde(rename = "ScalingConfig")]
    _scaling: Option<Value>,
    #[serde(rename = "MaximumBatchingWindowInSeconds")]
    _batching_window: Option<u64>,
    #[serde(rename = "MetricsConfig")]
    _metrics: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct QueueProperties {
    #[serde(default)]
    pub(super) fifo_queue: bool,
    pub(super) deduplication_scope: Option<DeduplicationScope>,
    pub(super) visibility_timeout: Option<u64>,
    pub(super) redrive_policy: Option<RedrivePolicy>,
    // Messages don't expire here, and nobody else can read them.
    #[serde(rename = "MessageRetentionPeriod")]
    _retention: Option<u64>,
    #[serde(rename = "SqsManagedSseEnabled")]
    _encrypted: Option<bool>,
    #[serde(rename = "KmsMasterKeyId")]
    _key: Option<String>,
    #[serde(rename = "FifoThroughputLimit")]
    _throughput: Option<String>,
    #[serde(rename = "QueueName")]
    _name: Option<String>,
    #[serde(rename = "Tags")]
    _tags: Option<Value>,
}

/// The scope of a deduplication id.
#[derive(Deserialize, PartialEq, Eq)]
pub(super) enum DeduplicationScope {
    #[serde(rename = "queue")]
    Queue,
    #[serde(rename = "messageGroup")]
    MessageGroup,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RedrivePolicy {
    pub(super) dead_letter_target_arn: String,
    pub(super) max_receive_count: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct FilterCriteria {
    pub(super) filters: Vec<Filter>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct Filter {
    pub(super) pattern: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct DestinationConfig {
    pub(super) on_failure: Option<Destination>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Destination {
    pub(super) destination: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct InvokeConfig {
    pub(super) maximum_retry_attempts: Option<u32>,
    pub(super) maximum_event_age_in_seconds: Option<u64>,
    pub(super) destination_config: Option<DestinationConfig>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct RuleEvent {
    pub(super) event_bus_name: String,
    pub(super) pattern: Value,
    pub(super) dead_letter_config: Option<ArnConfig>,
    pub(super) retry_policy: Option<RetryPolicy>,
    #[serde(rename = "Target")]
    _target: Option<Value>,
    #[serde(rename = "RuleName")]
    _name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct ScheduleEvent {
    pub(super) schedule_expression: String,
    pub(super) retry_policy: Option<RetryPolicy>,
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) omit_name: bool,
    #[serde(rename = "Description")]
    _description: Option<String>,
    #[serde(rename = "State")]
    _state: Option<Enabled>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct RuleProperties {
    pub(super) event_bus_name: String,
    pub(super) event_pattern: Value,
    pub(super) targets: Vec<RuleTarget>,
    #[serde(rename = "Name")]
    _name: Option<String>,
    #[serde(rename = "Description")]
    _description: Option<String>,
    #[serde(rename = "State")]
    _state: Option<Enabled>,
}

#[derive(Deserialize)]
pub(super) enum Enabled {
    #[serde(rename = "ENABLED")]
    Enabled,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct RuleTarget {
    pub(super) arn: String,
    #[serde(rename = "Id")]
    _id: String,
    pub(super) dead_letter_config: Option<ArnConfig>,
    pub(super) retry_policy: Option<RetryPolicy>,
}

#[derive(Deserialize)]
pub(super) struct ArnConfig {
    #[serde(rename = "Arn")]
    pub(super) arn: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct RetryPolicy {
    pub(super) maximum_retry_attempts: Option<u32>,
    pub(super) maximum_event_age_in_seconds: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct LoggingConfig {
    pub(super) application_log_level: Option<String>,
}
