//! The types of a verdict.

use std::fmt::{self, Display, Formatter};

use ringfence_core::rfc3339;
use serde::Serialize;

use crate::out::write_line;
use crate::shown::cut;

/// A reader of the index is late if it has not read an event that is older: five minutes, in milliseconds. The alarm
/// `ViewsBehind` has the same limit. Deadlines are late after [`ringfence_views::DUE_LATE_MS`].
pub const READER_LATE_MS: u64 = 5 * 60_000;
/// Failed commands of this last time count: a quarter of an hour, in milliseconds.
pub const COMMANDS_MS: u64 = 15 * 60_000;
/// A slice is not well if it rejected its last five commands.
pub const REJECTED_MIN: u64 = 5;
/// A slice is not well if it had 20 or more commands, and half of them met conflicts. Fewer may meet by chance.
pub const CONTENDED_MIN: u64 = 20;
/// A command waits too long in the queue: ten minutes, in milliseconds. The alarm `CommandsWait` has the same limit.
pub const QUEUED_LATE_MS: u64 = 10 * 60_000;
/// People see the first 300 characters of a cause. JSON has all of it.
const CAUSE_CHARS_MAX: usize = 300;

/// The kind of a thing that is not well. Causes come before what follows from them, and a verdict is in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// A source of the verdict can't be read.
    Source,
    /// A function that is not a slice fails.
    Function,
    /// Commands of a slice fail.
    Slice,
    /// A queue or a bucket keeps work of a function that failed.
    DeadLetters,
    /// Lanes of a reactor or an ordered automation are parked.
    Lane,
    /// Rows or events of a view are parked.
    Parked,
    /// Rows or events of the deadlines of a slice are parked.
    DeadlinesParked,
    /// Deadlines of a slice are late.
    Deadline,
    /// The first command of the queue waits.
    Queue,
    /// A view is behind.
    View,
    /// The deadlines of a slice are behind: they do not show the newest events.
    DeadlinesBehind,
    /// A reactor or an ordered automation is behind.
    Reactor,
    /// Commands of a slice meet conflicts.
    Conflicts,
}

impl What {
    /// Whether it stays as it is until a person decides.
    #[must_use]
    pub fn needs_a_person(self) -> bool {
        matches!(self, Self::DeadLetters | Self::Lane | Self::Parked | Self::DeadlinesParked)
    }
}

/// One thing that is not well.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StackFault {
    /// Its kind.
    pub what: What,
    /// The names of the views, or the name of the reactor, the slice, the function, or the source.
    pub names: Vec<String>,
    /// How many lanes, rows, commands or dead letters.
    pub count: u64,
    /// Since when, in milliseconds since 1970, if known.
    pub since_ms: Option<u64>,
    /// The fault, as a sentence.
    pub text: String,
    /// Its cause, if known.
    pub cause: Option<String>,
    /// The console's page on it.
    pub url: String,
    /// The next step for a person.
    pub step: &'static str,
}

impl StackFault {
    /// The cause for people, in one line.
    #[must_use]
    pub fn cause(&self) -> Option<String> {
        self.cause.as_ref().map(|cause| cut(&cause.replace('\n', " "), CAUSE_CHARS_MAX))
    }

    /// The fault for people, in one line.
    pub(super) fn line(&self) -> String {
        let cause = self.cause().map(|cause| format!(": {cause}"));
        format!("{}{}", self.text, cause.unwrap_or_default())
    }
}

/// Counts of the parts of a stack. A count that can't be read is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StackCounts {
    /// Views.
    pub views: Option<u64>,
    /// Reactors and ordered automations.
    pub reactors: Option<u64>,
    /// Lanes that wait for their next try.
    pub lanes_waiting: Option<u64>,
    /// Slices with deadlines.
    pub deadlines: Option<u64>,
    /// Deadlines that are due now, late or not.
    pub due: Option<u64>,
    /// About how many dead letters the queues keep, and of each bucket at most the first ten.
    pub dead_letters: Option<u64>,
    /// Commands in the queue.
    pub queued: Option<u64>,
}

/// All that one look at a stack found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StackVerdict {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Everything that is not well.
    pub findings: Vec<StackFault>,
    /// What nobody looked at, with the flag that names it.
    pub unknown: Vec<&'static str>,
    /// What the stack has.
    pub counts: StackCounts,
    /// Read units of the look.
    pub read_units: f64,
    /// Requests to DynamoDB of the look.
    pub requests: u32,
}

impl StackVerdict {
    pub(super) fn and(mut self, mut other: Self) -> Self {
        self.findings.append(&mut other.findings);
        self.unknown.append(&mut other.unknown);
        let [own, others] = [&self.counts, &other.counts];
        self.counts = StackCounts {
            views: own.views.or(others.views),
            reactors: own.reactors.or(others.reactors),
            lanes_waiting: own.lanes_waiting.or(others.lanes_waiting),
            deadlines: own.deadlines.or(others.deadlines),
            due: own.due.or(others.due),
            dead_letters: own.dead_letters.or(others.dead_letters),
            queued: own.queued.or(others.queued),
        };
        self
    }

    /// Whether all is well, as far as it is known.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.findings.is_empty()
    }

    /// The verdict in one sentence, without a full stop.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self.findings.len() {
            0 if self.unknown.is_empty() => "All is well".to_owned(),
            0 => "All is well that is known".to_owned(),
            1 => "1 thing is not well".to_owned(),
            count => format!("{count} things are not well"),
        }
    }

    pub(super) fn unreadable(&mut self, name: &str, url: &str, error: &anyhow::Error) {
        self.findings.push(StackFault {
            what: What::Source,
            names: vec![name.to_owned()],
            count: 1,
            since_ms: None,
            text: format!("The {name} can't be read"),
            cause: Some(format!("{error:#}")),
            url: url.to_owned(),
            step: "Look again",
        });
    }
}

impl Display for StackVerdict {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for fault in &self.findings {
            let since = fault.since_ms.map(|at| format!(" (since {})", rfc3339(at)));
            write_line!(f, "{}{}. {}.", fault.line(), since.unwrap_or_default(), fault.step)?;
        }
        for unknown in &self.unknown {
            write_line!(f, "Not known: {unknown}.")?;
        }
        if self.is_well() {
            write_line!(f, "{}.", self.sentence())?;
        }
        Ok(())
    }
}

/// `1 lane`, `2 lanes`.
pub(super) fn counted(count: u64, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}
