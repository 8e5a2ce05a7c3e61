//! A reactor as a Lambda. Invoked by a notification or by its schedule, it looks for new events.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use lambda_runtime::{Diagnostic, Error};
use ringfence_aws::Clock;
use ringfence_core::{Context, LogKind, Reads};
use ringfence_dcb_log::SOURCE;
use ringfence_feed::Index;
use ringfence_lambda::{
    Call, Level, LogLine, MetricUnit, Service, Variables, VaultNames, chain, vault as vault_of,
};
use ringfence_log::{Sourced, StackLogs};
use serde_json::{Value, json};

use crate::handler::{Handler, Outside};
use crate::lanes::{EFFECT_TIME_MAX, Ended, Lanes, RanLanes};
use crate::table::ReactorTable;
use crate::{Reactor, ReactorError};

/// Runs the reactor until Lambda ends the process. If it can't start, one line of the log says why.
pub fn run<R: Reactor>() -> ExitCode {
    ringfence_lambda::run::<ReactorFunction<R>>(())
}

/// The time before the deadline that a run leaves: for an effect that has begun, and for the answer.
pub const ANSWER_TIME: Duration = EFFECT_TIME_MAX.saturating_add(Duration::from_secs(2));

/// The function of a reactor.
pub struct ReactorFunction<R: Reactor> {
    lanes: Lanes<Outside<R>>,
}

impl<R: Reactor> Service for ReactorFunction<R> {
    const NAME: &'static str = R::NAME;
    const ANSWER_TIME: Duration = ANSWER_TIME;
    const TIME_DEFAULT: Duration = Duration::from_secs(20);
    type Of = ();
    /// The names of the tables of logs, of the index and of the views, the vault, and the reactor's own variables.
    type Config = (BTreeMap<LogKind, String>, String, String, Option<VaultNames>, R::Config);

    fn config((): &(), variables: &mut Variables) -> Self::Config {
        let own = <<R::Context as Context>::Log as Sourced>::SOURCE;
        let mut logs = variables.tables(&[own].into());
        // Not every stack has the DCB log.
        if own.facts().kind != LogKind::Dcb {
            let events = variables.optional(SOURCE.facts().variable, String::new());
            logs.extend((!events.is_empty()).then_some((LogKind::Dcb, events)));
        }
        let tables = (variables.required("INDEX_TABLE"), variables.required("VIEW_TABLE"));
        let vault = variables.vault(!R::Reads::PERSONAL.is_empty());
        (logs, tables.0, tables.1, vault, R::config(variables))
    }

    async fn open(
        (): (),
        (logs, index, table, vault, config): Self::Config,
    ) -> Result<Self, Error> {
        let (client, clock) = (ringfence_aws::client_from_env()?, Clock::system());
        ringfence_aws::open(&client, &clock).await;
        let vault = vault_of(vault, &client, &clock).await?;
        let handler =
            Outside::new(R::open(config).await?)?.with_vault(vault.map(|vault| vault as _));
        let table = ReactorTable::new(client.clone(), table, clock.clone());
        let logs = StackLogs { client: client.clone(), clock, tables: logs, vault: None };
        // It reads no event of another log.
        let sources = [SOURCE, <<R::Context as Context>::Log as Sourced>::SOURCE].into();
        let index = Index::new(client, index, logs.bodies(&sources));
        Ok(Self { lanes: Lanes { handler, index, table } })
    }

    async fn answer(&self, call: Call) -> Result<Value, Diagnostic> {
        self.lanes.answer(call.time).await
    }
}

impl<H: Handler> Lanes<H> {
    /// A run for an invocation: it is logged, unless there is nothing to say.
    ///
    /// # Errors
    /// The run has failed.
    pub async fn answer(&self, time: Duration) -> Result<Value, Diagnostic> {
        let ran = self.run(time).await;
        if let Some(line) = line(self.handler.name(), &ran, self.table.clock.now_ms()) {
            line.write();
        }
        let failed = |error: ReactorError| Diagnostic {
            error_type: "reactor-failed".to_owned(),
            error_message: format!("{}: {}", self.handler.name(), chain(&error)),
        };
        ran.map(|_| Value::Null).map_err(failed)
    }
}

/// The line of the log about a run, with the number of parked lanes as a metric.
fn line(reactor: &str, ran: &Result<RanLanes, ReactorError>, now_ms: u64) -> Option<LogLine> {
    let (level, ended) = match ran {
        Err(_) => (Level::ERROR, "failed"),
        Ok(RanLanes { ended: Ended::Held, .. }) => return None,
        Ok(RanLanes { ended: Ended::Idle, parked: 0, waiting: 0, .. }) => return None,
        Ok(ran) if ran.parked > 0 => (Level::ERROR, "has parked lanes"),
        Ok(RanLanes { ended: Ended::Behind, .. }) => (Level::WARN, "behind"),
        Ok(RanLanes { ended: Ended::Stopped, .. }) => (Level::WARN, "waits"),
        Ok(RanLanes { ended: Ended::Idle | Ended::Present, .. }) => (Level::INFO, "present"),
    };
    let json = json!({ "reactor": reactor, "outcome": ended });
    let mut line = LogLine::new(now_ms, level, format!("{reactor} {ended}"), json);
    match ran {
        Err(error) => line.json["cause"] = chain(error).into(),
        Ok(RanLanes { checkpoint, effects, waiting, parked, ended: _ }) => {
            line.json["checkpoint"] = json!(checkpoint);
            line.json["effects"] = json!(effects);
            line.json["lanes_waiting"] = json!(waiting);
            line.measure(&[], [("lanes_parked", MetricUnit::Count, *parked)]);
        }
    }
    Some(line)
}
