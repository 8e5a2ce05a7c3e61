//! fire-deadlines: sends the commands that are due, once a minute.

use std::collections::BTreeMap;
use std::time::Duration;

use lambda_runtime::{Diagnostic, Error};
use ringfence_aws::Clock;
use ringfence_core::LogKind;
use ringfence_lambda::{
    Call, Level, LogLine, MetricUnit, Service, Variables, VaultNames, vault as vault_of,
};
use ringfence_log::StackLogs;
use ringfence_views::{DUE_LATE_MS, DueReader};
use serde_json::{Value, json};

use crate::deadlines::list::Deadlines;
use crate::deadlines::sweep::{Sweep, Swept};

/// The function. It serves the dues of the stack.
pub struct FireDeadlines {
    deadlines: Deadlines,
    logs: StackLogs,
    views: String,
}

impl Service for FireDeadlines {
    const NAME: &'static str = "fire-deadlines";
    // Commands that are under way are cut off then. The rest of the time is for the line of the log.
    const ANSWER_TIME: Duration = Duration::from_secs(8);
    const TIME_DEFAULT: Duration = Duration::from_secs(50);
    type Of = Deadlines;
    /// The tables of the logs, the view table, and the vault.
    type Config = (BTreeMap<LogKind, String>, String, Option<VaultNames>);

    fn config(deadlines: &Deadlines, variables: &mut Variables) -> Self::Config {
        let (tables, views) =
            (variables.tables(&deadlines.sources), variables.required("VIEW_TABLE"));
        (tables, views, variables.vault(deadlines.is_personal))
    }

    async fn open(
        deadlines: Deadlines,
        (tables, views, vault): Self::Config,
    ) -> Result<Self, Error> {
        let (client, clock) = (ringfence_aws::client_from_env()?, Clock::system());
        let vault = vault_of(vault, &client, &clock).await?;
        let logs = StackLogs { client, clock, tables, vault };
        let fire = Self { deadlines, logs, views };
        // Fails at the start if a table can't be opened.
        fire.sweep()?;
        ringfence_aws::open(&fire.logs.client, &fire.logs.clock).await;
        Ok(fire)
    }

    async fn answer(&self, call: Call) -> Result<Value, Diagnostic> {
        let failed = |message: String| Diagnostic {
            error_type: "not-swept".to_owned(),
            error_message: message,
        };
        let (clock, began) = (&self.logs.clock, self.logs.clock.begin());
        let sweep = self.sweep().map_err(|error| failed(error.to_string()))?;
        let swept = sweep.all(call.time).await;
        let mut line = swept.line(clock.now_ms());
        line.json["function_request_id"] = call.request_id.as_str().into();
        line.json["duration_ms"] = began.lasted_ms(clock).into();
        line.write();
        match swept.failures.is_empty() {
            true => Ok(json!({ "fired": swept.fired, "left": swept.left })),
            false => Err(failed(swept.failures.join("; "))),
        }
    }
}

impl FireDeadlines {
    fn sweep(&self) -> Result<Sweep, Error> {
        Sweep::new(&self.deadlines, &self.logs, &self.views)
    }
}

impl Sweep {
    /// A sweep of what is due, whose rows are in the table `views`.
    ///
    /// # Errors
    /// As [`StackLogs::open`].
    pub fn new(deadlines: &Deadlines, logs: &StackLogs, views: &str) -> Result<Self, Error> {
        let (dues, clock) = (deadlines.open(logs)?, logs.clock.clone());
        let reader = DueReader::new(logs.client.clone(), views);
        Ok(Self { reader, clock, dues, keeps_pauses: true })
    }
}

impl Swept {
    /// The line of the log. Its metric, of the alarm DeadlinesLate, costs money in each hour in which it is sent.
    fn line(&self, now_ms: u64) -> LogLine {
        let level = match (self.failures.is_empty(), self.left) {
            (false, _) => Level::ERROR,
            (true, 0) => Level::INFO,
            (true, _) => Level::WARN,
        };
        let json = json!({
            "fired": self.fired,
            "left": self.left,
            "paused": self.paused,
            "unfinished": self.unfinished,
            "due_lag_ms": self.lag_ms,
            "causes": self.causes,
            "cause": self.failures.first(),
        });
        let mut line = LogLine::new(now_ms, level, "deadlines", json);
        if self.lag_ms > DUE_LATE_MS {
            line.measure(&[], [("due_lag_ms", MetricUnit::Milliseconds, self.lag_ms)]);
        }
        line
    }
}

#[test]
fn the_line_has_a_metric_only_if_a_deadline_is_late() {
    for (lag_ms, is_late) in [(0, false), (DUE_LATE_MS, false), (DUE_LATE_MS + 1, true)] {
        let line = Swept { lag_ms, ..Swept::default() }.line(0).json;
        assert_eq!(
            (line["due_lag_ms"].as_u64(), line.get("_aws").is_some()),
            (Some(lag_ms), is_late)
        );
    }
}
