//! `ringfence subjects list`, and the last event about each forgotten person.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use futures::StreamExt;
use ringfence_core::{Event, SequencedEvent, rfc3339};
use ringfence_feed::{Checkpoint, FeedStep, Reference, Until};
use ringfence_services::personal_data::SubjectForgotten;
use ringfence_subjects::{KeyTable, Standing};
use serde_json::{Value, json};

use crate::machine::dynamo_client;
use crate::out::{Output, serialize_as, write_line};
use crate::tables::{FeedTables, KeyFlags};

#[derive(Args)]
#[command(after_help = "\
It reads the places of all events in the index: half a read unit for fifty or so.

Examples:
  ringfence subjects list
  ringfence subjects list --json")]
pub(crate) struct Arguments {
    #[command(flatten)]
    feed: FeedTables,
    #[command(flatten)]
    keys: KeyFlags,
    #[command(flatten)]
    output: Output,
}

/// When each person was forgotten last, in milliseconds since 1970, and why.
#[derive(Default)]
pub(crate) struct LastForgotten(BTreeMap<String, (u64, String)>);

/// A person who was forgotten.
pub(crate) struct OneForgotten {
    pub(crate) subject: String,
    pub(crate) at_ms: u64,
    pub(crate) why: String,
    /// What the table of keys says.
    standing: Option<Standing>,
}

impl LastForgotten {
    /// Adds an event, if it is one about a forgotten person.
    pub(crate) fn add(&mut self, event: &SequencedEvent) {
        let text = |field: &str| event.data[field].as_str().unwrap_or_default().to_owned();
        if event.event_type == SubjectForgotten::NAME && event.partition.is_of_dcb_log() {
            self.0.insert(text("subjectId"), (event.at, text("why")));
        }
    }

    /// Each person, with what the table of keys says.
    pub(crate) async fn standings(self, keys: &KeyTable) -> Result<Vec<OneForgotten>> {
        let subjects: BTreeSet<_> = self.0.keys().map(String::as_str).collect();
        let mut found = keys.standings(&subjects).await?;
        let one = |(subject, (at_ms, why))| {
            let standing = found.remove(&subject);
            OneForgotten { subject, at_ms, why, standing }
        };
        Ok(self.0.into_iter().map(one).collect())
    }
}

impl OneForgotten {
    /// Whether the fence is missing, so that old values can be read.
    pub(crate) fn is_unfenced(&self) -> bool {
        let fence = self.standing.as_ref().and_then(Standing::fence);
        fence.is_none_or(|fence| fence.forgotten_at_ms < self.at_ms)
    }

    fn state(&self) -> &'static str {
        let standing = self.standing.as_ref();
        match (self.is_unfenced(), standing) {
            (true, _) => "readable: run `ringfence subjects verify --reapply`",
            (false, Some(standing)) if standing.has_key() => "forgotten, and known again",
            (false, Some(it)) if it.fence().is_some_and(|fence| fence.again) => {
                "forgotten, and may be known again"
            }
            (false, _) => "forgotten",
        }
    }
}

pub(crate) async fn list(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { feed, keys, output } = arguments;
    let client = dynamo_client().await?;
    let keys = keys.table(&client)?;
    let index = feed.index(client).await?;
    let wants = |it: &Reference| it.event_type == SubjectForgotten::NAME;
    let mut steps = index.read_where(Checkpoint::START, Until::Present, wants);
    let mut last = LastForgotten::default();
    while let Some(step) = steps.next().await {
        if let FeedStep::Event(entry) = step? {
            last.add(&entry.event);
        }
    }
    output.show(&Listed(last.standings(&keys).await?));
    Ok(ExitCode::SUCCESS)
}

struct Listed(Vec<OneForgotten>);

impl Display for Listed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for one in &self.0 {
            let (time, state) = (rfc3339(one.at_ms), one.state());
            write_line!(f, "{time}  {}  {state}  {}", one.subject, one.why)?;
        }
        write_line!(f, "forgotten people: {}", self.0.len())
    }
}

serialize_as!(Listed, |Listed(all)| {
    let one = |one: &OneForgotten| {
        json!({
            "subject": one.subject, "forgottenAt": rfc3339(one.at_ms), "why": one.why, "state": one.state(),
        })
    };
    all.iter().map(one).collect::<Value>()
});
