//! The parts of the template that have an effect on this machine, typed.

use std::{collections::BTreeMap, path::Path, time::Duration};

use serde_json::Value;

use super::{intrinsics::KMS_KEY, route::Route};
use crate::{pattern::Pattern, times::Times};

/// Before the path of a key's file, in the variable that has the ARN of the key of KMS on AWS.
const KEY_FILE: &str = "file:";

/// The stack that a template describes.
#[derive(Default)]
pub struct Model {
    /// The tables.
    pub tables: Vec<TableResource>,
    /// Every function.
    pub functions: Vec<FunctionResource>,
    /// The HTTP API's routes.
    pub routes: Vec<Route>,
    /// The event source mappings.
    pub mappings: Vec<Mapping>,
    /// Names of the buses.
    pub buses: Vec<String>,
    /// The buses' rules.
    pub rules: Vec<Rule>,
    /// The schedules.
    pub schedules: Vec<Schedule>,
    /// Whether rules and schedules are switched off. Then there are none.
    pub rules_are_off: bool,
    /// The event source mappings of queues.
    pub queue_mappings: Vec<QueueMapping>,
    /// The queues.
    pub queues: Vec<QueueResource>,
    /// Names of the buckets.
    pub buckets: Vec<String>,
    /// The stack's outputs.
    pub outputs: BTreeMap<String, String>,
}

impl Model {
    /// The table of this logical id.
    #[must_use]
    pub fn table(&self, id: &str) -> Option<&TableResource> {
        self.tables.iter().find(|table| table.id == id)
    }

    /// The same stack with its rules and schedules switched off.
    pub(super) fn without_rules(self) -> Self {
        Self { rules: Vec::new(), schedules: Vec::new(), rules_are_off: true, ..self }
    }

    /// The same stack with files of this folder in place of keys of KMS.
    pub(crate) fn with_keys_in(mut self, folder: &Path) -> Self {
        let variables = self.functions.iter_mut().flat_map(|it| it.environment.values_mut());
        for value in variables.chain(self.outputs.values_mut()) {
            if let Some(name) = value.strip_prefix(KMS_KEY) {
                *value = format!("{KEY_FILE}{}", folder.join(name).display());
            }
        }
        self
    }

    /// Whether the HTTP API asks for tokens.
    #[must_use]
    pub fn takes_tokens(&self) -> bool {
        self.routes.iter().any(|route| route.token_scopes.is_some())
    }
}

/// A table.
#[derive(Clone, Debug)]
pub struct TableResource {
    /// The resource's logical id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The resource's properties, resolved.
    pub properties: Value,
    /// The name of the table that the stack would make. A parameter names this table in its place, which must exist.
    /// `None` if the stack makes the table.
    pub instead_of: Option<String>,
}

/// A Lambda function.
#[derive(Clone, Debug)]
pub struct FunctionResource {
    /// The resource's logical id.
    pub id: String,
    /// Its binary, which is its name on this machine.
    pub binary: String,
    /// The variables that the template sets.
    pub environment: BTreeMap<String, String>,
    /// Longest run of one invocation.
    pub timeout: Duration,
    /// The most invocations at once, `ReservedConcurrentExecutions`; `None` without a limit.
    pub concurrency_max: Option<usize>,
    /// Memory, in MB. The function sees the number, but it is not enforced.
    pub memory_mb: u32,
    /// `ApplicationLogLevel`.
    pub log_level: Option<String>,
    /// Retries of an asynchronous invocation that failed.
    pub retries: Retries,
    /// ARN of the destination for asynchronous invocations that failed for good.
    pub on_failure: Option<String>,
}

impl FunctionResource {
    /// The files in place of keys of KMS that its variables name.
    pub(crate) fn key_files(&self) -> impl Iterator<Item = &Path> {
        self.environment.values().filter_map(|value| value.strip_prefix(KEY_FILE)).map(Path::new)
    }
}

/// Limits of retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// Attempts after the first; `None` without a limit.
    pub attempts_max: Option<u32>,
    /// Age at which an event or record is given up; `None` without a limit.
    pub age_max: Option<Duration>,
}

/// An event source mapping: a table's stream to a function.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// The table's name.
    pub table: String,
    /// The binary of the function.
    pub function: String,
    /// The most records of a batch.
    pub batch_size: usize,
    /// One of these must match a record. Without filters every record is taken.
    pub filters: Vec<Pattern>,
    /// Retries of a batch.
    pub retries: Retries,
    /// Whether a batch is halved when the function fails.
    pub bisect: bool,
    /// Whether the function's answer names the records that failed.
    pub report_item_failures: bool,
    /// ARN of the destination for batches that are given up.
    pub on_failure: Option<String>,
}

/// A queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueResource {
    /// Its name.
    pub name: String,
    /// Whether it keeps the order in each group and drops duplicates.
    pub is_fifo: bool,
    /// Whether deduplication ids are separate in each group.
    pub deduplicates_by_group: bool,
    /// A received message is hidden for this time.
    pub visibility: Duration,
    /// The destination of messages that were received too often.
    pub dead_letters: Option<RedriveTarget>,
}

/// SQS's default time for which a received message is hidden.
const VISIBILITY_DEFAULT: Duration = Duration::from_secs(30);

impl QueueResource {
    /// A queue with SQS's defaults.
    #[must_use]
    pub fn named(name: String) -> Self {
        Self {
            name,
            is_fifo: false,
            deduplicates_by_group: false,
            visibility: VISIBILITY_DEFAULT,
            dead_letters: None,
        }
    }
}

/// The destination of messages that were received too often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedriveTarget {
    /// ARN of the queue.
    pub queue: String,
    /// A message that was received this many times goes there.
    pub received_max: u32,
}

/// An event source mapping of a queue: its messages go to a function.
#[derive(Clone, Debug)]
pub struct QueueMapping {
    /// The queue's name.
    pub queue: String,
    /// The binary of the function.
    pub function: String,
    /// The most messages of a batch.
    pub batch_size: usize,
    /// Whether the function's answer names the messages that failed.
    pub report_item_failures: bool,
}

/// A rule of a bus.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its name, for messages.
    pub name: String,
    /// The bus.
    pub bus: String,
    /// The pattern of its events.
    pub pattern: Pattern,
    /// Its targets.
    pub targets: Vec<DeliveryTarget>,
}

/// A schedule that invokes a function.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Its name, for messages.
    pub name: String,
    /// The expression, as `rate(5 minutes)`.
    pub expression: String,
    /// The times of its invocations.
    pub times: Times,
    /// The function.
    pub target: DeliveryTarget,
}

/// A function that a rule or a schedule invokes.
#[derive(Clone, Debug)]
pub struct DeliveryTarget {
    /// The binary of the function.
    pub function: String,
    /// Retries of the delivery, not of a function that ran and failed.
    pub retries: Retries,
    /// ARN of the queue for events that could not be delivered.
    pub dead_letter_queue: Option<String>,
}
