//! The types of a verdict.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use aws_config::SdkConfig;
use ringfence_core::rfc3339;
use ringfence_feed::{Checkpoint, Index};
use ringfence_reactors::ReactorTable;
use ringfence_stack::Stack;
use ringfence_views::{DueReader, ViewReader};
use serde::Serialize;

use crate::commands::CommandLines;
use crate::out::write_line;
use crate::stack::Named;

/// A reader of the index is late if it has not read an event that is older: five minutes, in milliseconds. The alarm
/// `ViewsBehind` has the same limit. Deadlines are late after [`ringfence_views::DUE_LATE_MS`].
pub const READER_LATE_MS: u64 = 5 * 60_000;
/// Failed commands of this last time count: a quarter of an hour, in milliseconds.
pub const COMMANDS_MS: u64 = 15 * 60_000;
/// A slice is not well if it had at least so many commands and rejected all of them.
pub const REJECTED_MIN: u64 = 5;

/// The kind of a thing that is not well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// A view is behind, or has parked rows or events.
    View,
    /// A reactor or an ordered automation is behind.
    Reactor,
    /// Lanes of a reactor or an ordered automation are parked.
    Lane,
    /// Deadlines of a slice are late.
    Deadline,
    /// A queue or a bucket keeps work of a function that failed.
    DeadLetters,
    /// Commands of a slice fail.
    Slice,
    /// A source of the verdict can't be read.
    Source,
}

/// One thing that is not well.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StackFault {
    /// Its kind.
    pub what: What,
    /// The name of the view, the reactor, the slice, the function, or the source.
    pub name: String,
    /// How many lanes, rows, commands or dead letters.
    pub count: u64,
    /// Since when, in milliseconds since 1970, if known.
    pub since_ms: Option<u64>,
    /// The fault, as a sentence.
    pub text: String,
    /// The console's page on it.
    pub url: String,
    /// The next step for a person.
    pub step: &'static str,
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

/// Where a verdict looks.
pub struct VerdictSources<'s> {
    /// The list of the stack.
    pub stack: &'s Stack,
    /// The index.
    pub index: Index,
    /// The rows of views, the lanes of reactors, and what is due, if their table is named.
    pub views: Option<(ViewReader, ReactorTable, DueReader)>,
    /// The configuration for the clients of queues and buckets.
    pub config: &'s SdkConfig,
    /// The dead-letter queues.
    pub queues: &'s [Named],
    /// The buckets of failed batches.
    pub buckets: &'s [Named],
    /// The URL of the command queue.
    pub command_queue: Option<&'s str>,
    /// The lines of commands.
    pub commands: &'s CommandLines,
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
            name: name.to_owned(),
            count: 1,
            since_ms: None,
            text: format!("The {name} can't be read: {error:#}"),
            url: url.to_owned(),
            step: "Look again",
        });
    }
}

impl Display for StackVerdict {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for StackFault { text, since_ms, step, .. } in &self.findings {
            let since = since_ms.map(|at| format!(" (since {})", rfc3339(at))).unwrap_or_default();
            write_line!(f, "{text}{since}. {step}.")?;
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

/// When the first event after each checkpoint was recorded. Readers often share a checkpoint, so each is read once.
pub(super) struct Unread<'i> {
    pub(super) index: &'i Index,
    pub(super) end: Checkpoint,
    pub(super) known: BTreeMap<Checkpoint, Option<u64>>,
}

impl Unread<'_> {
    /// The time of the first event that a reader at this checkpoint has not read, if that is late.
    pub(super) async fn late(
        &mut self,
        at: Checkpoint,
        now_ms: u64,
    ) -> anyhow::Result<Option<u64>> {
        if at >= self.end {
            return Ok(None);
        }
        if !self.known.contains_key(&at) {
            let next = Checkpoint::try_from(i64::from(at) + 1)?;
            let first = self.index.last_before(next).await?;
            self.known.insert(at, first.map(|reference| reference.at));
        }
        let first = self.known.get(&at).copied().flatten();
        Ok(first.filter(|first| now_ms.saturating_sub(*first) > READER_LATE_MS))
    }
}
