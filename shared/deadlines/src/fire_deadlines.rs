//! fire-deadlines: sends what is due, once a minute.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use lambda_runtime::{Diagnostic, Error};
use ringfence::rfc3339;
use ringfence_dynamo::{Clock, ms_of_rfc3339};
use ringfence_function::{Call, Service, Variables};
use ringfence_views::DueReader;
use serde_json::{Value, json};

use crate::list::{Deadlines, LogTables};
use crate::sweep::{Sweep, Swept};

/// The variables that have the names of the logs' tables.
const LOGS: [&str; 3] = ["EVENT_TABLE", "AGGREGATE_TABLE", "DOCUMENT_TABLE"];

/// The function. It serves what is due in the stack.
pub struct FireDeadlines {
    deadlines: Deadlines,
    client: Client,
    config: Config,
}

/// What its variables say.
pub struct Config {
    logs: LogTables,
    views: String,
    /// Whether the payload may say what time it is. Only the stack on one machine sets it.
    is_time_given: bool,
}

impl FireDeadlines {
    /// The variable with which the time of a payload counts in place of the clock's.
    pub const TIME_OF_PAYLOAD: &'static str = "TIME_OF_PAYLOAD";
}

impl Service for FireDeadlines {
    const NAME: &'static str = "fire-deadlines";
    // A command that has begun may take five seconds.
    const ANSWER_TIME: Duration = Duration::from_secs(8);
    const TIME_DEFAULT: Duration = Duration::from_secs(50);
    type Of = Deadlines;
    type Config = Config;

    fn config(variables: &mut Variables) -> Config {
        let logs = LOGS.map(|name| (name, variables.required(name)));
        Config {
            logs: logs.into(),
            views: variables.required("VIEW_TABLE"),
            is_time_given: variables.optional(Self::TIME_OF_PAYLOAD, false),
        }
    }

    async fn open(deadlines: Deadlines, config: Config) -> Result<Self, Error> {
        let client = ringfence_dynamo::client_from_env()?;
        let fire = Self { deadlines, client, config };
        // What can't be opened is said at the start.
        fire.sweep(&Clock::system())?;
        ringfence_dynamo::open(&fire.client).await;
        Ok(fire)
    }

    async fn answer(&self, call: Call) -> Result<Value, Diagnostic> {
        let given = call.payload["now"].as_str().filter(|_| self.config.is_time_given);
        let clock = given.and_then(ms_of_rfc3339).map_or_else(Clock::system, Clock::running);
        let failed = |message: String| Diagnostic {
            error_type: "not-swept".to_owned(),
            error_message: message,
        };
        let started_ms = clock.now_ms();
        let sweep = self.sweep(&clock).map_err(|error| failed(error.to_string()))?;
        let swept = sweep.all(call.time).await;
        let mut line = swept.line(clock.now_ms());
        line["function_request_id"] = call.request_id.as_str().into();
        line["duration_ms"] = clock.now_ms().saturating_sub(started_ms).into();
        println!("{line}");
        match swept.failures.is_empty() {
            true => Ok(json!({ "fired": swept.fired, "left": swept.left })),
            false => Err(failed(swept.failures.join("; "))),
        }
    }
}

impl FireDeadlines {
    fn sweep(&self, clock: &Clock) -> Result<Sweep, Error> {
        Sweep::new(&self.deadlines, &self.config.logs, &self.config.views, &self.client, clock)
    }
}

impl Sweep {
    /// A sweep of what is due. `tables` are those of the logs, and `views` that of the rows.
    ///
    /// # Errors
    /// A slice can't be on its log.
    pub fn new(
        deadlines: &Deadlines,
        tables: &LogTables,
        views: &str,
        client: &Client,
        clock: &Clock,
    ) -> Result<Self, Error> {
        let dues = deadlines.open(tables, client, clock)?;
        let reader = DueReader::new(client.clone(), views);
        Ok(Self { reader, clock: clock.clone(), dues })
    }
}

impl Swept {
    /// The line of the log, with the metric of the alarm DeadlinesLate.
    fn line(&self, now_ms: u64) -> Value {
        let level = match (self.failures.is_empty(), self.left) {
            (false, _) => "ERROR",
            (true, 0) => "INFO",
            (true, _) => "WARN",
        };
        json!({
            "timestamp": rfc3339(now_ms),
            "level": level,
            "message": "deadlines",
            "fired": self.fired,
            "left": self.left,
            "paused": self.paused,
            "unfinished": self.unfinished,
            "due_lag_ms": self.lag_ms,
            "causes": self.causes,
            "cause": self.failures.first(),
            "_aws": {
                "Timestamp": now_ms,
                "CloudWatchMetrics": [{
                    "Namespace": "Ringfence",
                    "Dimensions": [[]],
                    "Metrics": [{ "Name": "due_lag_ms", "Unit": "Milliseconds" }],
                }],
            },
        })
    }
}
