//! From the template's resources to the model.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Map, Value, json};

use super::{
    document::{Template, View},
    error::TemplateError,
    intrinsics::{Place, Resolver},
    model::{
        DeliveryTarget, FunctionResource, Mapping, Model, QueueMapping, QueueResource,
        RedriveTarget, Retries, Rule, Schedule, TableResource,
    },
    outputs::outputs,
    route::Route,
    shapes::{
        ApiAuth, DeduplicationScope, EventType, HttpApiEvent, InvokeConfig, LoggingConfig,
        QueueEvent, QueueProperties, RedrivePolicy, RetryPolicy, RuleEvent, RuleProperties,
        RuleTarget, ScheduleEvent, StreamEvent,
    },
};
use crate::{
    pattern::{Pattern, PatternError},
    times::Times,
};

/// Lambda's timeout if the template sets none.
const TIMEOUT_DEFAULT_SECONDS: u64 = 3;
/// Lambda's memory size if the template sets none.
const MEMORY_DEFAULT_MB: u32 = 128;
/// Lambda's default batch size for a stream.
const BATCH_DEFAULT: usize = 100;
/// Lambda's default batch size for a queue.
const QUEUE_BATCH_DEFAULT: usize = 10;
/// Attempts after the first that Lambda makes for an asynchronous invocation.
const INVOKE_RETRIES_DEFAULT: u32 = 2;
/// Age at which Lambda drops an asynchronous event: 6 hours.
const INVOKE_AGE_DEFAULT_SECONDS: u64 = 6 * 3600;
/// Attempts after the first that EventBridge makes to reach a target.
const DELIVERY_RETRIES_DEFAULT: u32 = 185;
/// Age at which EventBridge drops an undelivered event: 24 hours.
const DELIVERY_AGE_DEFAULT_SECONDS: u64 = 24 * 3600;

impl Template {
    /// The parts of the stack, with names of this machine.
    ///
    /// `queues` is the base URL of the local SQS, without a slash at the end.
    ///
    /// # Errors
    /// A part is not understood. The message names the resource and the property.
    pub fn model(&self, queues: &str) -> Result<Model, TemplateError> {
        let model = Model::new(&View { resolver: Resolver { document: &self.document, queues } })?;
        Ok(if self.rules_are_off { model.without_rules() } else { model })
    }
}

impl Model {
    fn new(view: &View<'_>) -> Result<Self, TemplateError> {
        check_rules(view)?;
        let mut model = Self {
            tables: tables(view)?,
            buses: names(view, "AWS::Events::EventBus")?,
            queues: queues(view)?,
            buckets: names(view, "AWS::S3::Bucket")?,
            outputs: outputs(view)?,
            ..Self::default()
        };
        let auth = api_auth(view)?;
        for (id, body) in view.resources("AWS::Serverless::Function")? {
            let function = function(view, id, body)?;
            model.events(view, &auth, id, body, &function.binary)?;
            model.functions.push(function);
        }
        for (id, body) in view.resources("AWS::Events::Rule")? {
            // Events of AWS itself are on the default bus. Nothing sends them here.
            let has = |name: &str| !body["Properties"][name].is_null();
            if has("EventBusName") || has("Targets") {
                model.rules.push(rule(view, id, body)?);
            }
        }
        for (kind, instead) in [
            ("AWS::Lambda::EventSourceMapping", "give the mapping as the function's event"),
            ("AWS::Scheduler::Schedule", "give the schedule as the function's event, a ScheduleV2"),
        ] {
            if let Some((id, _)) = view.resources(kind)?.first() {
                return Err(not_understood(id, "Type", instead));
            }
        }
        Ok(model)
    }

    fn events(
        &mut self,
        view: &View<'_>,
        auth: &ApiAuth,
        id: &str,
        body: &Value,
        binary: &str,
    ) -> Result<(), TemplateError> {
        let events = body["Properties"]["Events"].as_object().cloned().unwrap_or_default();
        for name in events.keys() {
            let event = format!("Properties.Events.{name}");
            let properties = format!("{event}.Properties");
            let kind: EventType = view.property(id, body, &event)?;
            match kind.kind.as_str() {
                "HttpApi" => {
                    let HttpApiEvent { path, method, auth: own, .. } =
                        view.property(id, body, &properties)?;
                    let (function, token_scopes) = (binary.to_owned(), auth.token_scopes(own));
                    let new = Route { method, path, function, token_scopes };
                    new.add_to(&mut self.routes)
                        .map_err(|e| not_understood(id, &properties, &e))?;
                }
                "DynamoDB" => {
                    let stream: StreamEvent = view.property(id, body, &properties)?;
                    let mapping = mapping(&self.tables, id, &properties, binary, stream)?;
                    self.mappings.push(mapping);
                }
                "SQS" => {
                    let queue: QueueEvent = view.property(id, body, &properties)?;
                    let mapping = queue_mapping(&self.queues, id, &properties, binary, queue)?;
                    self.queue_mappings.push(mapping);
                }
                "EventBridgeRule" => {
                    let rule: RuleEvent = view.property(id, body, &properties)?;
                    self.rules.push(Rule {
                        name: format!("{id}{name}"),
                        bus: last_part(&rule.event_bus_name).to_owned(),
                        pattern: pattern(id, &properties, &rule.pattern)?,
                        targets: vec![DeliveryTarget {
                            function: binary.to_owned(),
                            retries: delivery_retries(rule.retry_policy),
                            dead_letter_queue: rule.dead_letter_config.map(|config| config.arn),
                        }],
                    });
                }
                "ScheduleV2" => {
                    let schedule: ScheduleEvent = view.property(id, body, &properties)?;
                    if schedule.name.is_none() && !schedule.omit_name {
                        let what = "a name that each stack would have, write OmitName: true";
                        return Err(not_understood(id, &properties, what));
                    }
                    let times = Times::parse(&schedule.schedule_expression);
                    self.schedules.push(Schedule {
                        name: format!("{id}{name}"),
                        times: times
                            .map_err(|e| not_understood(id, &properties, &e.to_string()))?,
                        expression: schedule.schedule_expression,
                        target: DeliveryTarget {
                            function: binary.to_owned(),
                            retries: delivery_retries(schedule.retry_policy),
                            dead_letter_queue: None,
                        },
                    });
                }
                // Here the lines of functions are in files, without subscriptions.
                "CloudWatchLogs" => {}
                "Schedule" => {
                    return Err(not_understood(id, &event, "Type Schedule, write ScheduleV2"));
                }
                other => return Err(not_understood(id, &event, &format!("Type {other}"))),
            }
        }
        Ok(())
    }
}

/// Who may use the HTTP API.
fn api_auth(view: &View<'_>) -> Result<ApiAuth, TemplateError> {
    let apis = view.resources("AWS::Serverless::HttpApi")?;
    let Some((id, auth)) = apis.first().map(|(id, body)| (*id, &body["Properties"]["Auth"])) else {
        return Ok(ApiAuth::default());
    };
    let read: Option<ApiAuth> = serde_json::from_value(auth.clone()).map_err(|source| {
        let (resource, property) = (id.to_owned(), "Properties.Auth".to_owned());
        TemplateError::Property { resource, property, source }
    })?;
    Ok(read.unwrap_or_default())
}

fn tables(view: &View<'_>) -> Result<Vec<TableResource>, TemplateError> {
    let mut tables = Vec::new();
    for (id, body) in view.all("AWS::DynamoDB::Table") {
        let properties = view.property(id, body, "Properties")?;
        let (id, own) = (id.to_owned(), view.local_name(id)?);
        let parameter = format!("{id}Name");
        let is_parameter = view.resolver.document["Parameters"].get(&parameter).is_some();
        if view.is_there(&id, body)? {
            tables.push(TableResource { id, name: own, properties, instead_of: None });
        } else if is_parameter {
            let place = Place { resource: &id, property: &parameter };
            let name = view.resolver.text(place, &json!({ "Ref": parameter }))?;
            tables.push(TableResource { id, name, properties, instead_of: Some(own) });
        }
    }
    Ok(tables)
}

/// The rules of the template for its parameters.
fn check_rules(view: &View<'_>) -> Result<(), TemplateError> {
    for (rule, body) in view.resolver.document["Rules"].as_object().into_iter().flatten() {
        let place = Place { resource: "Rules", property: rule };
        for assertion in body["Assertions"].as_array().into_iter().flatten() {
            if !view.resolver.holds(place, &assertion["Assert"])? {
                let says = view.resolver.text(place, &assertion["AssertDescription"])?;
                return Err(TemplateError::Rule { rule: rule.clone(), says });
            }
        }
    }
    Ok(())
}

fn function(view: &View<'_>, id: &str, body: &Value) -> Result<FunctionResource, TemplateError> {
    let variables: Option<Map<String, Value>> =
        view.function_property(id, body, "Environment.Variables")?;
    let mut environment = BTreeMap::new();
    for (name, value) in variables.unwrap_or_default() {
        // It names a file of a layer, for TLS connections. One machine has neither.
        if name == "AWS_CA_BUNDLE" {
            continue;
        }
        let text = match value {
            Value::String(text) => text,
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => return Err(not_understood(id, "Environment.Variables", &name)),
        };
        environment.insert(name, text);
    }
    let timeout: Option<u64> = view.function_property(id, body, "Timeout")?;
    let reserved = "ReservedConcurrentExecutions";
    let concurrency_max: Option<usize> = view.function_property(id, body, reserved)?;
    if concurrency_max == Some(0) {
        return Err(not_understood(id, reserved, "0, with which the function never runs"));
    }
    let memory: Option<u32> = view.function_property(id, body, "MemorySize")?;
    let logging: Option<LoggingConfig> = view.function_property(id, body, "LoggingConfig")?;
    let invoke: Option<InvokeConfig> = view.function_property(id, body, "EventInvokeConfig")?;
    let invoke = invoke.unwrap_or_default();
    let queue: Option<Value> = view.function_property(id, body, "DeadLetterQueue")?;
    if queue.is_some() {
        // The destination would get the event alone, without the name of the function.
        let instead = "give EventInvokeConfig a DestinationConfig with OnFailure";
        return Err(not_understood(id, "Properties.DeadLetterQueue", instead));
    }
    let destination = invoke.destination_config.unwrap_or_default().on_failure;
    Ok(FunctionResource {
        id: id.to_owned(),
        binary: view.property(id, body, "Metadata.BuildProperties.Binary")?,
        environment,
        timeout: Duration::from_secs(timeout.unwrap_or(TIMEOUT_DEFAULT_SECONDS)),
        concurrency_max,
        memory_mb: memory.unwrap_or(MEMORY_DEFAULT_MB),
        log_level: logging.unwrap_or_default().application_log_level,
        retries: retries(
            invoke.maximum_retry_attempts.unwrap_or(INVOKE_RETRIES_DEFAULT),
            invoke.maximum_event_age_in_seconds.unwrap_or(INVOKE_AGE_DEFAULT_SECONDS),
        ),
        on_failure: destination.map(|d| d.destination),
    })
}

fn mapping(
    tables: &[TableResource],
    id: &str,
    property: &str,
    binary: &str,
    stream: StreamEvent,
) -> Result<Mapping, TemplateError> {
    let mut filters = Vec::new();
    for filter in stream.filter_criteria.map(|criteria| criteria.filters).unwrap_or_default() {
        let parsed: Value = serde_json::from_str(&filter.pattern)
            .map_err(|error| not_understood(id, property, &error.to_string()))?;
        filters.push(pattern(id, property, &parsed)?);
    }
    let table = stream.stream.split_once(":table/").and_then(|(_, rest)| rest.split_once('/'));
    let foreign = || format!("{} is the stream of no table of the stack", stream.stream);
    let table = tables
        .iter()
        .filter(|table| table.properties.get("StreamSpecification").is_some())
        .find(|known| table.is_some_and(|(name, _)| name == known.name))
        .ok_or_else(|| not_understood(id, property, &foreign()))?;
    let types = stream.function_response_types.unwrap_or_default();
    let destination = stream.destination_config.unwrap_or_default().on_failure;
    Ok(Mapping {
        table: table.name.clone(),
        function: binary.to_owned(),
        batch_size: stream.batch_size.unwrap_or(BATCH_DEFAULT),
        filters,
        retries: Retries {
            // Lambda writes "no limit" as -1, which is not an unsigned number.
            attempts_max: stream.maximum_retry_attempts.and_then(|max| u32::try_from(max).ok()),
            age_max: stream
                .maximum_record_age_in_seconds
                .and_then(|max| u64::try_from(max).ok())
                .map(Duration::from_secs),
        },
        bisect: stream.bisect_batch_on_function_error.unwrap_or(false),
        report_item_failures: types.iter().any(|kind| kind == "ReportBatchItemFailures"),
        on_failure: destination.map(|destination| destination.destination),
    })
}

fn queue_mapping(
    queues: &[QueueResource],
    id: &str,
    property: &str,
    binary: &str,
    event: QueueEvent,
) -> Result<QueueMapping, TemplateError> {
    let known = queues.iter().find(|queue| queue.name == last_part(&event.queue));
    let queue =
        known.ok_or_else(|| not_understood(id, property, &format!("Queue {}", event.queue)))?;
    let types = event.function_response_types.unwrap_or_default();
    Ok(QueueMapping {
        queue: queue.name.clone(),
        function: binary.to_owned(),
        batch_size: event.batch_size.unwrap_or(QUEUE_BATCH_DEFAULT),
        report_item_failures: types.iter().any(|kind| kind == "ReportBatchItemFailures"),
    })
}

fn queues(view: &View<'_>) -> Result<Vec<QueueResource>, TemplateError> {
    let queue = |(id, body): (&str, &Value)| {
        let properties: Option<QueueProperties> = view.property(id, body, "Properties")?;
        let properties = properties.unwrap_or_default();
        let queue = QueueResource::named(view.local_name(id)?);
        let dead_letters = |policy: RedrivePolicy| RedriveTarget {
            queue: policy.dead_letter_target_arn,
            received_max: policy.max_receive_count,
        };
        let scope = properties.deduplication_scope;
        Ok(QueueResource {
            is_fifo: properties.fifo_queue,
            deduplicates_by_group: scope == Some(DeduplicationScope::MessageGroup),
            visibility: properties.visibility_timeout.map_or(queue.visibility, Duration::from_secs),
            dead_letters: properties.redrive_policy.map(dead_letters),
            ..queue
        })
    };
    view.resources("AWS::SQS::Queue")?.into_iter().map(queue).collect()
}

fn rule(view: &View<'_>, id: &str, body: &Value) -> Result<Rule, TemplateError> {
    let rule: RuleProperties = view.property(id, body, "Properties")?;
    let target = |target: RuleTarget| match target.arn.split_once(":function:") {
        Some((_, function)) => Ok(DeliveryTarget {
            function: function.to_owned(),
            retries: delivery_retries(target.retry_policy),
            dead_letter_queue: target.dead_letter_config.map(|config| config.arn),
        }),
        None => Err(not_understood(id, "Targets", &format!("{}, no function", target.arn))),
    };
    Ok(Rule {
        name: id.to_owned(),
        bus: last_part(&rule.event_bus_name).to_owned(),
        pattern: pattern(id, "EventPattern", &rule.event_pattern)?,
        targets: rule.targets.into_iter().map(target).collect::<Result<_, _>>()?,
    })
}

fn names(view: &View<'_>, kind: &str) -> Result<Vec<String>, TemplateError> {
    view.resources(kind)?.into_iter().map(|(id, _)| view.local_name(id)).collect()
}

fn pattern(id: &str, property: &str, value: &Value) -> Result<Pattern, TemplateError> {
    Pattern::parse(value)
        .map_err(|PatternError { what }| not_understood(id, property, &format!("pattern {what}")))
}

fn delivery_retries(policy: Option<RetryPolicy>) -> Retries {
    let (attempts, age) = policy
        .map(|policy| (policy.maximum_retry_attempts, policy.maximum_event_age_in_seconds))
        .unwrap_or_default();
    retries(
        attempts.unwrap_or(DELIVERY_RETRIES_DEFAULT),
        age.unwrap_or(DELIVERY_AGE_DEFAULT_SECONDS),
    )
}

fn retries(attempts: u32, age_seconds: u64) -> Retries {
    Retries { attempts_max: Some(attempts), age_max: Some(Duration::from_secs(age_seconds)) }
}

/// The name at the end of an ARN of the form `…/name`, or the name itself.
pub(crate) fn last_part(arn: &str) -> &str {
    arn.rsplit(['/', ':']).next().unwrap_or(arn)
}

pub(super) fn not_understood(resource: &str, property: &str, what: &str) -> TemplateError {
    TemplateError::NotUnderstood {
        resource: resource.to_owned(),
        property: property.to_owned(),
        what: what.to_owned(),
    }
}
