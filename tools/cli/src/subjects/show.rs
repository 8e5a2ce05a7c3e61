//! `ringfence subjects show`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use futures::StreamExt;
use ringfence_aws::Clock;
use ringfence_core::personal::{self, Form, subject as subject_of, values};
use ringfence_core::{SUBJECT_BYTES_MAX, SequencedEvent, Vault};
use ringfence_feed::{Entry, Until};
use serde_json::Value;

use crate::Lists;
use crate::line::of_entry;
use crate::machine::dynamo_client;
use crate::place::CheckpointName;
use crate::progress;
use crate::tables::{FeedTables, KeyFlags};
use crate::{remark, say};

/// The number of events between two updates of the progress.
const PROGRESS_EVENTS: u64 = 1_000;

#[derive(Args)]
#[command(after_help = "\
For a request for access. It reads all events of the index, for half a read unit for each 4 KB of an event, and prints
the events with values of the person. These values are opened; sealed ones of other persons are null. Events from
before a field was personal are shown as they are. If it is broken off, go on with the last checkpoint that it has
shown. Rows of views, snapshots and copies have nothing that is not in the events.

Examples:
  ringfence subjects show ada > ada.jsonl
  ringfence subjects show ada --from 120000")]
pub(crate) struct Arguments {
    /// The person's id, as in the field that is marked `#[subject]`.
    #[arg(value_parser = id)]
    subject: String,
    #[command(flatten)]
    feed: FeedTables,
    #[command(flatten)]
    keys: KeyFlags,
    /// Begins after this checkpoint: a number, `start` or `end`.
    #[arg(long, value_name = "CHECKPOINT", default_value = "start")]
    from: CheckpointName,
}

/// The id of a person.
pub(super) fn id(text: &str) -> std::result::Result<String, String> {
    match text.len() {
        1..=SUBJECT_BYTES_MAX => Ok(text.to_owned()),
        bytes => Err(format!("has {bytes} bytes; an id has 1 to {SUBJECT_BYTES_MAX}")),
    }
}

pub(crate) async fn show(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let Arguments { subject, feed, keys, from } = arguments;
    let client = dynamo_client().await?;
    let vault = keys.vault(&feed.logs.logs(client.clone(), Clock::system())).await?;
    let index = feed.index(client).await?;
    let from = from.checkpoint(&index).await?;
    let total = index.count(from, index.end().await?).await?;
    remark!("{total} events are read, each for half a read unit for each 4 KB");
    let (mut read, mut printed, mut unreadable) = (0, 0, 0);
    let mut entries = index.read(from, Until::Present);
    while let Some(entry) = entries.next().await {
        let (mut entry, why) = Entry::or_known(entry)?;
        read += 1;
        if why.is_some() {
            progress::clear();
            remark!("{} can't be decoded", entry.event.id());
            unreadable += 1;
        } else if is_about(lists, &entry.event, subject) {
            progress::clear();
            if let Err(error) = open(&mut entry.event.data, subject, &vault).await {
                remark!("{}: {error:#}", entry.event.id());
                unreadable += 1;
                personal::show(&mut entry.event.data);
            }
            say!("{}", of_entry(entry.checkpoint, &entry.event.into()));
            printed += 1;
        }
        if read % PROGRESS_EVENTS == 0 {
            let at = entry.checkpoint;
            progress::show(format_args!("{read} of {total} events read, at checkpoint {at}"));
        }
    }
    progress::clear();
    let units = index.usage().total().read;
    remark!("{printed} of {read} events, {unreadable} can't be read, {units} read units");
    Ok(if unreadable == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether an event has personal values of the subject: sealed ones, or such as were stored before they were personal.
fn is_about(lists: &Lists, event: &SequencedEvent, subject: &str) -> bool {
    let mut data = event.data.clone();
    if of_subject(&mut data, subject).next().is_some() {
        return true;
    }
    let catalog = lists.catalog(&event.context, &event.event_type);
    let Some(schema) = catalog.and_then(|it| it.schema(&event.event_type)) else { return false };
    let of_fields = schema.subjects.of_fields.iter().map(|(_, of)| *of);
    let mut fields = schema.subjects.of_all.into_iter().chain(of_fields).peekable();
    let is_of_stream = fields.peek().is_some() && event.stream_id().as_deref() == Some(subject);
    let newest = lists.newest(event);
    is_of_stream || newest.is_ok_and(|newest| fields.any(|field| newest.data[field] == subject))
}

/// The sealed values of the subject.
pub(super) fn of_subject<'v>(
    data: &'v mut Value,
    subject: &str,
) -> impl Iterator<Item = &'v mut Value> {
    values(data, Form::Sealed).into_iter().filter(move |value| subject_of(value) == Some(subject))
}

/// Opens the subject's values, and only them.
async fn open(data: &mut Value, subject: &str, vault: &impl Vault) -> Result<()> {
    vault.open(of_subject(data, subject).collect()).await?;
    personal::show(data);
    Ok(())
}
