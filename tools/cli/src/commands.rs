//! The log lines of commands and of other runs: in CloudWatch Logs, or in the files of a stack on one machine.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result};
use clap::Args;
use ringfence_aws::{Clock, ms_of_rfc3339};
use serde::Deserialize;
use serde_json::json;

use crate::machine::sdk_config;
use crate::service::{Answer, LOGS, Service};
use crate::stack::name;

/// At most this many lines of commands, and of runs, are read at once.
pub const LINES_MAX: usize = 100_000;
/// Matches the lines of commands, and no other lines.
const COMMANDS: &str = "{ $.slice = * && $.attempts >= 0 }";
/// Matches the lines of commands and of [`RunLine`].
const ALL: &str = "{ ($.slice = * && $.attempts >= 0) || ($.failed_function = *) || ($.view_lag >= 0) \
                   || ($.due_lag_ms >= 0) || ($.lanes_parked >= 0) }";

/// The message when no flag says where the lines are.
pub const UNKNOWN: &str = "the functions' command lines are in their logs: name the log group with --log-group or \
                                  --stack, or the folder of a stack on this machine with --logs";

/// Where the lines are.
#[derive(Args, Clone, Debug)]
pub struct CommandLines {
    /// The log group of the functions, in CloudWatch Logs.
    #[arg(long, env = "LOG_GROUP", value_parser = name)]
    log_group: Option<String>,
    /// The folder with the functions' logs, of a stack on this machine.
    #[arg(long, env = "FUNCTION_LOGS", value_name = "FOLDER")]
    logs: Option<PathBuf>,
}

/// The line of one invocation of a slice.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct CommandLine {
    /// When it began: RFC 3339.
    pub timestamp: String,
    /// The slice.
    pub slice: String,
    /// The correlation id of the command.
    pub correlation_id: Option<String>,
    /// The caller of the command, or of the first command in its flow, if known.
    pub principal: Option<String>,
    /// The slice or service that sent the command, if no caller did.
    pub by: Option<String>,
    /// `accepted`, `rejected`, or the name of another problem.
    pub outcome: String,
    /// How often the command was tried.
    pub attempts: u32,
    /// The boundary of each conflict, to which another command added something.
    #[serde(default)]
    pub conflicts: Vec<String>,
    /// How many events of each type it wrote.
    #[serde(default)]
    pub events: BTreeMap<String, u64>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// Requests to the table.
    pub requests: u32,
    /// Read units.
    pub read_units: f64,
    /// Write units.
    pub write_units: f64,
    /// Why it failed, or what is wrong with it.
    pub cause: Option<String>,
}

/// The line of a run that is not of a command: it failed, or has one of these numbers.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
pub struct RunLine {
    /// When it was: RFC 3339.
    #[serde(default)]
    pub timestamp: String,
    /// The function, if it failed.
    pub failed_function: Option<String>,
    /// Why it failed.
    #[serde(alias = "unnotified")]
    pub cause: Option<String>,
    /// The age of the oldest event that a view does not show, in milliseconds.
    pub view_lag: Option<u64>,
    /// How late the oldest deadline is, in milliseconds.
    pub due_lag_ms: Option<u64>,
    /// Lanes of the reactor that are parked.
    pub lanes_parked: Option<u64>,
    /// Lanes of the reactor that are tried again.
    pub lanes_waiting: Option<u64>,
}

/// Lines of functions, the oldest first.
#[derive(Clone, Debug, Default)]
pub struct FunctionLines {
    /// Lines of commands.
    pub commands: Vec<CommandLine>,
    /// Lines of other runs.
    pub runs: Vec<RunLine>,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeKind {
    /// It is recorded, or there was nothing to record.
    Accepted,
    /// The domain rejected it.
    Rejected,
    /// The caller's input is not a command of the slice, too large for any log, or not allowed by the token.
    Malformed,
    /// Its idempotency key belongs to another command.
    KeyReused,
    /// It is valid, and got no answer.
    Failed,
}

impl CommandLine {
    /// When it began, in milliseconds since 1970.
    pub fn at_ms(&self) -> u64 {
        ms_of_rfc3339(&self.timestamp).unwrap_or(0)
    }

    /// The kind of its outcome.
    #[must_use]
    pub fn kind(&self) -> OutcomeKind {
        match &*self.outcome {
            "accepted" | "nothing-to-do" | "replay-ignored" => OutcomeKind::Accepted,
            "rejected" | "subject-forgotten" => OutcomeKind::Rejected,
            "malformed" | "too-large" | "scope-missing" => OutcomeKind::Malformed,
            "key-reused" => OutcomeKind::KeyReused,
            _ => OutcomeKind::Failed,
        }
    }
}

impl RunLine {
    /// When it was, in milliseconds since 1970.
    pub fn at_ms(&self) -> u64 {
        ms_of_rfc3339(&self.timestamp).unwrap_or(0)
    }

    fn of(text: &str) -> Option<Self> {
        let line: Self = serde_json::from_str(text).ok()?;
        let numbers = [line.view_lag, line.due_lag_ms, line.lanes_parked];
        let says = line.failed_function.is_some() || numbers.iter().any(Option::is_some);
        says.then_some(line)
    }
}

impl FunctionLines {
    /// Whether there may be more lines of commands than are read at once.
    #[must_use]
    pub fn are_cut(&self) -> bool {
        self.commands.len() >= LINES_MAX
    }

    /// Adds a line of either kind. Returns false if it is too old.
    fn add(&mut self, text: &str, since_ms: u64) -> bool {
        if let Ok(line) = serde_json::from_str::<CommandLine>(text) {
            let is_new = line.at_ms() >= since_ms;
            self.commands.extend(is_new.then_some(line));
            is_new
        } else if let Some(line) = RunLine::of(text) {
            let is_new = line.at_ms() >= since_ms;
            self.runs.extend(is_new.then_some(line));
            is_new
        } else {
            true
        }
    }
}

impl CommandLines {
    /// Whether a flag says where the lines are.
    pub fn are_known(&self) -> bool {
        self.log_group.is_some() || self.logs.is_some()
    }

    /// The last lines of this function's log on this machine, and whether there are earlier lines. `None` if the
    /// function has no log.
    ///
    /// # Errors
    /// It can't be read.
    pub fn log_of(&self, function: &str, bytes_max: u64) -> Result<Option<(String, bool)>> {
        let is_name = !function.is_empty()
            && function.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let Some(folder) = self.logs.as_ref().filter(|_| is_name) else { return Ok(None) };
        let path = folder.join(format!("{function}.log"));
        let reading = || format!("reading {}", path.display());
        let mut file = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file.with_context(reading)?,
        };
        let begin = file.metadata().with_context(reading)?.len().saturating_sub(bytes_max);
        file.seek(SeekFrom::Start(begin)).with_context(reading)?;
        let mut read = Vec::new();
        file.take(bytes_max).read_to_end(&mut read).with_context(reading)?;
        // The first line may be a part.
        let line = read.iter().position(|byte| *byte == b'\n').filter(|_| begin > 0);
        let lines = &read[line.map_or(0, |end| end + 1)..];
        Ok(Some((String::from_utf8_lossy(lines).into_owned(), begin > 0)))
    }

    /// The lines of commands since a time in milliseconds since 1970, the oldest first, at most [`LINES_MAX`]. The list
    /// is empty if no flag says where they are.
    ///
    /// # Errors
    /// They can't be read.
    pub async fn since(&self, ms: u64) -> Result<Vec<CommandLine>> {
        Ok(self.read(ms, COMMANDS).await?.commands)
    }

    /// The same with the lines of other runs, at most [`LINES_MAX`] of them.
    ///
    /// # Errors
    /// They can't be read.
    pub async fn all_since(&self, ms: u64) -> Result<FunctionLines> {
        self.read(ms, ALL).await
    }

    async fn read(&self, ms: u64, pattern: &str) -> Result<FunctionLines> {
        let mut lines = match (&self.logs, &self.log_group) {
            (Some(folder), _) => of_folder(folder, ms)?,
            (None, Some(group)) => of_group(group, ms, pattern).await?,
            (None, None) => FunctionLines::default(),
        };
        lines.commands.sort_by(|a, b| a.timestamp.cmp(&b.timestamp));
        lines.runs.sort_by(|a, b| a.timestamp.cmp(&b.timestamp));
        keep_last(&mut lines.commands);
        keep_last(&mut lines.runs);
        Ok(lines)
    }
}

/// Removes all but the last [`LINES_MAX`].
fn keep_last<T>(lines: &mut Vec<T>) {
    lines.drain(..lines.len().saturating_sub(LINES_MAX));
}

fn of_folder(folder: &Path, since_ms: u64) -> Result<FunctionLines> {
    let reading = || format!("reading the functions' logs in {}", folder.display());
    let clock = Clock::system();
    let ahead_ms = clock.now_ms().saturating_sub(clock.machine_ms());
    let mut lines = FunctionLines::default();
    for file in fs::read_dir(folder).with_context(reading)? {
        let path = file.with_context(reading)?.path();
        let is_log = path.extension().is_some_and(|extension| extension == "log");
        // A file that was not written since then has no line of that time. The file's time comes from the machine's
        // clock, and the stack's clock may be ahead of it.
        let since = UNIX_EPOCH + Duration::from_millis(since_ms.saturating_sub(ahead_ms));
        let written = |path: &Path| path.metadata().and_then(|file| file.modified());
        if !is_log || written(&path).with_context(reading)? < since {
            continue;
        }
        // A function may be writing its last line just now.
        let text = String::from_utf8_lossy(&fs::read(&path).with_context(reading)?).into_owned();
        for line in text.lines().rev() {
            if !lines.add(line, since_ms) {
                break;
            }
        }
    }
    Ok(lines)
}

async fn of_group(group: &str, since_ms: u64, pattern: &str) -> Result<FunctionLines> {
    let reading = || format!("reading the log group {group}");
    let logs = Service::of(&sdk_config().await?, LOGS).await.with_context(reading)?;
    let headers = [
        ("content-type", "application/x-amz-json-1.1"),
        ("x-amz-target", "Logs_20140328.FilterLogEvents"),
    ];
    let mut request = json!({
        "logGroupName": group, "startTime": since_ms, "filterPattern": pattern,
    });
    let mut lines = FunctionLines::default();
    loop {
        let answer = logs.call("POST", "/", &headers, &request.to_string()).await;
        let text = answer.and_then(Answer::accepted).with_context(reading)?;
        let page: Page = serde_json::from_str(&text).with_context(reading)?;
        for event in &page.events {
            lines.add(&event.message, 0);
        }
        // The oldest lines come first. Runs take no room of commands.
        keep_last(&mut lines.runs);
        match page.next_token {
            Some(next) if !lines.are_cut() => request["nextToken"] = next.into(),
            _ => return Ok(lines),
        }
    }
}

/// A page of FilterLogEvents.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    #[serde(default)]
    events: Vec<LogEvent>,
    next_token: Option<String>,
}

#[derive(Deserialize)]
struct LogEvent {
    #[serde(default)]
    message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_begins_with_a_whole_line() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("f.log"), "\u{e9}one\ntwo\n").expect("a log");
        let lines = CommandLines { log_group: None, logs: Some(folder.path().to_owned()) };
        let end = |bytes_max| lines.log_of("f", bytes_max).expect("readable");
        assert_eq!(end(10), Some(("\u{e9}one\ntwo\n".to_owned(), false)));
        assert_eq!(end(8), Some(("two\n".to_owned(), true)));
        fs::create_dir(folder.path().join("in")).expect("a folder");
        let inner = CommandLines { log_group: None, logs: Some(folder.path().join("in")) };
        assert_eq!(lines.log_of("g", 8).expect("no log"), None);
        assert_eq!(inner.log_of("../f", 8).expect("no name of a function"), None);
    }
}
