//! `ringfence project status`, `ready`, `claims`, `trace` and `log`: show the copy of the events, also without a
//! network.
//!
//! They print the rows of the stack's views, as one JSON object a line.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write, stdout};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use projects::views::project_features::FeatureRow;
use projects::{AgentId, EdgeName, EdgeRef, FeatureId, FeatureRef, ready};
use ringfence_aws::{Clock, TIME_WANTED, ms_of_rfc3339};
use ringfence_cli::remark;
use ringfence_core::rfc3339;
use serde_json::{Value, json};

use super::folder::{EVENTS, End, Folder, Reading, Snapshot, TORN};
use super::outbox::Outbox;
use super::pull::pulled_ms;
use super::standing::{CLAIMS, FEATURES, Part, STATUS, Standing, TRACES};
use projects::line::{Line, snake_case};

/// From this age on, in milliseconds, an answer comes with a warning.
const OLD_MS: u64 = 3_600_000;

/// A filter of features and edges.
#[derive(Args)]
pub(crate) struct Of {
    /// Only this feature, such as REQ-F-AUTH-001.
    #[arg(long, value_name = "NAME")]
    feature: Option<FeatureId>,
    /// Only edges of this name, such as design_code.
    #[arg(long, value_name = "NAME")]
    edge: Option<EdgeName>,
}

#[derive(Args)]
pub(crate) struct Claims {
    #[command(flatten)]
    of: Of,
    /// Only the claims of this agent.
    #[arg(long, value_name = "NAME")]
    agent: Option<AgentId>,
}

#[derive(Args)]
pub(crate) struct Log {
    #[command(flatten)]
    of: Of,
    /// Only events of this agent.
    #[arg(long, value_name = "NAME")]
    agent: Option<AgentId>,
    /// Only events of this type, such as `edge_started` or `EdgeStarted`.
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// Only events that were recorded at this time of RFC 3339 or later.
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<u64>,
    /// Only events that were recorded before this time of RFC 3339.
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<u64>,
}

/// Milliseconds since 1970.
fn time(text: &str) -> Result<u64, &'static str> {
    ms_of_rfc3339(text).ok_or(TIME_WANTED)
}

impl Of {
    fn has(&self, feature: Option<&FeatureId>, edge: Option<&EdgeName>) -> bool {
        let is = |wanted: &Option<FeatureId>| wanted.is_none() || wanted.as_ref() == feature;
        let is_edge = self.edge.is_none() || self.edge.as_ref() == edge;
        is(&self.feature) && is_edge
    }

    fn has_edge(&self, edge: &EdgeRef) -> bool {
        self.has(Some(&edge.feature.feature), Some(&edge.name))
    }
}

pub(crate) fn run_status(folder: &Folder) -> Result<ExitCode> {
    let Standing { features, mut status, .. } = standing(folder, &[FEATURES, STATUS], drop)?;
    let row = status.remove(&folder.project.to_string());
    let exists = row.as_ref().is_some_and(|row| row.mode.is_some());
    let status = projects::status(exists, &features, Clock::system().now_ms());
    print([json!({ "project": folder.project, "status": status, "row": row })])
}

pub(crate) fn run_ready(folder: &Folder, of: &Of) -> Result<ExitCode> {
    let ready = ready(&standing(folder, &[FEATURES], drop)?.features, Clock::system().now_ms());
    print(ready.into_iter().filter(|ready| of.has_edge(&ready.edge)).map(|ready| json!(ready)))
}

pub(crate) fn run_claims(folder: &Folder, Claims { of, agent }: &Claims) -> Result<ExitCode> {
    let wanted = standing(folder, &[CLAIMS], drop)?.claims.into_iter().filter(|(id, claim)| {
        let holder = claim.holder.as_ref().map(|holder| &holder.agent);
        id.parse().is_ok_and(|edge| of.has_edge(&edge))
            && (agent.is_none() || agent.as_ref() == holder)
    });
    let now_ms = Clock::system().now_ms();
    print(wanted.map(|(id, claim)| {
        let until = claim.lease.until_ms().map(rfc3339);
        let row = with("overdue", claim.overdue(now_ms).is_some(), json!(claim));
        with("edge", id.as_str(), with("leaseUntil", until, row))
    }))
}

pub(crate) fn run_trace(folder: &Folder, of: &Of) -> Result<ExitCode> {
    warn_of_folded(&folder.read()?)?;
    let mut shown = Vec::new();
    let parts = &[FEATURES, TRACES];
    let Standing { features, traces, .. } = standing(folder, parts, |line| {
        if TRACED.contains(&&*line.event_type) {
            shown.push(line);
        }
    })?;
    let mut lines = Vec::new();
    for (id, mut trace) in traces {
        trace
            .features
            .retain(|feature, stages| stages.keys().any(|edge| of.has(Some(feature), Some(edge))));
        if trace.features.is_empty() && (trace.gap.is_none() || !of.has(None, None)) {
            continue;
        }
        let (mut missing, mut releases) = (serde_json::Map::new(), BTreeMap::new());
        for (name, stages) in &trace.features {
            let (project, feature) = (folder.project.clone(), name.clone());
            let row = features.get(&FeatureRef { project, feature }.to_string());
            let edges = row.into_iter().flat_map(edges_of);
            let edges: Vec<_> = edges.filter(|edge| !stages.contains_key(*edge)).collect();
            missing.insert(name.to_string(), json!(edges));
            for version in row.into_iter().flat_map(|row| &row.releases) {
                releases.entry(version.to_string()).or_insert_with(Vec::new).push(name);
            }
        }
        let key = id.rsplit('/').next().unwrap_or_default();
        let events = shown.iter().filter(|line| {
            let is_of_release = line.event_type == RELEASED;
            let versions = line.data.get("version").and_then(Value::as_str);
            match is_of_release {
                true => versions.is_some_and(|version| releases.contains_key(version)),
                false => names(line, key) && of.has(line.feature.as_ref(), line.edge.as_ref()),
            }
        });
        let events: Vec<_> = events.map(brief).collect();
        let row = with("releases", json!(releases), json!(trace));
        let row = with("events", events, with("missing", missing, row));
        lines.push(with("requirement", key, row));
    }
    print(lines)
}

/// The type of a line about a release, which names features and no requirements.
const RELEASED: &str = "release_created";
/// The types of lines that a requirement's trace shows.
const TRACED: [&str; 4] = ["iteration_completed", "edge_converged", "gaps_validated", RELEASED];

/// Whether a line names a requirement.
fn names(line: &Line, requirement: &str) -> bool {
    let keys = line.data.get("reqKeys").and_then(Value::as_array);
    let compared = line.data.get("requirements").and_then(|it| it.get(requirement));
    compared.is_some() || keys.is_some_and(|keys| keys.iter().any(|key| key == requirement))
}

/// The subject of a line, without its contents.
pub(super) fn brief(line: &Line) -> Value {
    json!({
        "event_id": line.event_id, "event_type": line.event_type, "timestamp": line.timestamp,
        "agent_id": line.agent_id, "feature": line.feature, "edge": line.edge,
    })
}

/// The edges that a feature goes through.
fn edges_of(feature: &FeatureRow) -> impl Iterator<Item = &EdgeName> {
    let rules = feature.definition.iter().flat_map(|definition| &definition.rules.edges);
    rules.map(|rule| &rule.edge)
}

pub(crate) fn run_log(folder: &Folder, log: &Log) -> Result<ExitCode> {
    let folder = folder.read()?;
    warn(&folder)?;
    warn_of_folded(&folder)?;
    let Log { of, agent, event_type, since, until } = log;
    let event_type = event_type.as_deref().map(snake_case);
    // RFC 3339 with milliseconds sorts by time.
    let (since, until) = (since.map(rfc3339), until.map(rfc3339));
    let is_wanted = |line: &Line| {
        of.has(line.feature.as_ref(), line.edge.as_ref())
            && (agent.is_none() || *agent == line.agent_id)
            && event_type.as_ref().is_none_or(|wanted| *wanted == line.event_type)
            && since.as_ref().is_none_or(|since| *since <= line.timestamp)
            && until.as_ref().is_none_or(|until| line.timestamp < *until)
    };
    let mut lines = Vec::new();
    let end = folder.lines(|line| {
        lines.extend(is_wanted(&line).then(|| json!(line)));
        Ok(())
    })?;
    warn_of_torn(&folder, &end);
    print(lines)
}

pub(super) fn with(name: &str, value: impl Into<Value>, mut row: Value) -> Value {
    row[name] = value.into();
    row
}

/// The state of the project, after a warning if it is old. Each line is passed on.
pub(super) fn standing(
    folder: &Folder,
    parts: &[Part],
    mut each: impl FnMut(Line),
) -> Result<Standing> {
    let folder = folder.read()?;
    warn(&folder)?;
    let (standing, _, end) = Standing::read(&folder, parts, |line, _| each(line))?;
    warn_of_torn(&folder, &end);
    Ok(standing)
}

/// Warns that the end of the file is not shown, if an append has broken off there.
fn warn_of_torn(folder: &Reading<'_>, End { torn, .. }: &End) {
    if let Some(number) = torn {
        remark!(
            "warning: from line {number} on, {} is not shown: the last append broke off or is damaged. The next one cuts \
             it off and keeps it in {}",
            folder.path(EVENTS).display(),
            folder.path(TORN).display()
        );
    }
}

/// Warns which events are not shown because they are folded.
pub(super) fn warn_of_folded(folder: &Reading<'_>) -> Result<()> {
    if let Some(Snapshot { folded, last, .. }) = folder.snapshot()? {
        remark!(
            "warning: events of features that were done by {} are folded and not shown (features: {}): `ringfence \
             project reconstruct` brings them back",
            last.timestamp,
            folded.len()
        );
    }
    Ok(())
}

/// Warns how old the copy is, and what it lacks. The file of a local project has everything.
fn warn(folder: &Reading<'_>) -> Result<()> {
    if folder.is_local()? {
        return Ok(());
    }
    match pulled_ms(folder)? {
        None => remark!("warning: the events were never pulled: `ringfence project pull`"),
        Some(pulled_ms) => {
            let age_ms = Clock::system().now_ms().saturating_sub(pulled_ms);
            let warning = if age_ms < OLD_MS { "" } else { "warning: " };
            let (minutes, seconds) = (age_ms / 60_000, age_ms / 1_000 % 60);
            remark!("{warning}as pulled {minutes} min {seconds} s ago");
        }
    }
    let waiting = Outbox::read(folder)?.len();
    if waiting > 0 {
        remark!(
            "warning: commands wait and are not shown ({waiting}): `ringfence project push` sends them"
        );
    }
    Ok(())
}

/// Prints a line for each document, as long as somebody reads them.
pub(super) fn print(documents: impl IntoIterator<Item = Value>) -> Result<ExitCode> {
    let mut out = stdout().lock();
    for document in documents {
        match writeln!(out, "{document}") {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
            written => written.context("printing")?,
        }
    }
    Ok(ExitCode::SUCCESS)
}
