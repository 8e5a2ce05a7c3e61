//! `ringfence replay bus`.

use std::fmt::{self, Display, Formatter};
use std::future::ready;
use std::num::NonZeroU32;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Args;
use futures::{StreamExt, TryStreamExt};
use ringfence_feed::{Checkpoint, Checkpoints, Entry, FeedStep, Filter, KnownEntry, Until};
use ringfence_services::topic::{Topic, TopicEntry};
use serde_json::{Value, json};

use crate::Lists;
use crate::machine::dynamo_client;
use crate::machine::sdk_config;
use crate::out::{Output, serialize_as, write_line};
use crate::place::{CheckpointName, Wanted};
use crate::progress;
use crate::remark;
use crate::stack;
use crate::tables::{FeedTables, ViewTable};
use crate::topic::{send, topic};

/// The checkpoint is saved once per this many entries. After an interruption at most so many are sent again.
const KEEP_ENTRIES: usize = 100;
/// Longest name, in bytes.
const NAME_BYTES_MAX: usize = 64;

#[derive(Args)]
#[command(after_help = "\
An entry of a replay has the source `replay.<context>` and the replay's name in its detail, so a rule that names a
context does not take it. A rule that wants replays matches the source by the prefix `replay.`. If no rule
matches, a replay has no effect.

A replay saves its checkpoint under the reader `replay.<name>`. After an interruption the same command continues there,
and at most 100 events are sent twice. Events that the bus refused before are not named again. A name whose checkpoint
is not between `--from` and `--until` belongs to another replay, so it is refused. To begin the replay again, run
`ringfence checkpoint set replay.<name> start`.

Example:
  ringfence replay bus --name new-search --type ProductAdded --from 0 --rate 200")]
pub(crate) struct Arguments {
    #[command(flatten)]
    index: FeedTables,
    #[command(flatten)]
    views: ViewTable,
    /// The bus.
    #[arg(long, env = "EVENT_BUS", value_parser = stack::name)]
    bus: String,
    /// The replay's name: 1 to 64 characters of `A-Z a-z 0-9 . _ -`.
    #[arg(long, value_parser = name)]
    name: String,
    /// Begins a new replay after this checkpoint: a number, `start` or `end`.
    #[arg(long, value_name = "CHECKPOINT", default_value = "start")]
    from: CheckpointName,
    /// Ends at this checkpoint. The default is the present end of the index.
    #[arg(long, value_name = "CHECKPOINT")]
    until: Option<Checkpoint>,
    /// Sends the events between `--from` and `--until` as new events, which every rule receives. For events that never
    /// reached the bus because publish-events was off.
    #[arg(long, requires_all = ["from", "until"])]
    as_new: bool,
    #[command(flatten)]
    wanted: Wanted,
    /// At most this many events a second. A bus takes 400 to 10,000 a second, depending on the Region; leave most of
    /// that to the events that happen meanwhile.
    #[arg(long, default_value = "100")]
    rate: NonZeroU32,
    #[command(flatten)]
    output: Output,
}

fn name(text: &str) -> Result<String, &'static str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let right = (1..=NAME_BYTES_MAX).contains(&text.len()) && text.chars().all(allowed);
    right.then(|| text.to_owned()).ok_or("a name has 1 to 64 characters of A-Z a-z 0-9 . _ -")
}

/// A replay in progress.
struct Replay<'a> {
    arguments: &'a Arguments,
    topic: Topic,
    filter: Filter,
    done: Done,
}

struct Done {
    read: u64,
    sent: u64,
    /// The events that were refused: each id, and why.
    refused: Vec<(String, String)>,
    at: Checkpoint,
}

pub(crate) async fn replay(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let client = dynamo_client().await?;
    let index = arguments.index.index(client.clone()).await?;
    let checkpoints = Checkpoints::new(client, &arguments.views.view_table);
    let reader = format!("replay.{}", arguments.name);
    let end = index.end().await?;
    let until = arguments.until.unwrap_or(end);
    ensure!(until <= end, "--until {until} is after the end of the index, {end}");
    let begun = checkpoints.load(&reader).await?;
    let begin = arguments.from.checkpoint(&index).await?;
    if let Some(at) = begun {
        ensure_same(arguments, begin, at, until)?;
        remark!("replay {} goes on after checkpoint {at}", arguments.name);
    }
    let from = begun.unwrap_or(begin);
    arguments.wanted.warn(&lists.stack);
    let mut replay = Replay {
        arguments,
        topic: topic(&sdk_config().await?, &arguments.bus),
        filter: arguments.wanted.filter(),
        done: Done { read: 0, sent: 0, refused: Vec::new(), at: from },
    };
    let total = index.count(from, until).await?;
    let mut chunks = index
        .read_where(from, Until::Present, replay.filter.wants())
        .map(FeedStep::or_known)
        .try_take_while(|(checkpoint, _)| ready(Ok(*checkpoint <= until)))
        .try_chunks(KEEP_ENTRIES);
    let mut at = begun;
    while let Some(chunk) = chunks.try_next().await.map_err(|error| error.1)? {
        let last = chunk.last().map(|(checkpoint, _)| *checkpoint);
        let kept = || format!("broken off after checkpoint {}", at.unwrap_or(from));
        replay.send(chunk).await.with_context(kept)?;
        if let Some(to) = last {
            checkpoints.advance(&reader, at, to).await?;
            (at, replay.done.at) = (Some(to), to);
        }
        let Done { read, sent, .. } = &replay.done;
        progress::show(format_args!("{read} of {total} events read, {sent} sent"));
    }
    Ok(arguments.output.end(&replay.done, replay.done.refused.is_empty()))
}

/// Fails if another replay has used the name. Its checkpoint would make this one send the wrong events.
fn ensure_same(
    arguments: &Arguments,
    begin: Checkpoint,
    at: Checkpoint,
    until: Checkpoint,
) -> Result<()> {
    let name = &arguments.name;
    ensure!(
        begin <= at && at <= until,
        "--name {name} was used before, for a replay that is at checkpoint {at}, which is not between \
         --from {begin} and --until {until}; take another --name, or begin this one again: \
         ringfence checkpoint set replay.{name} {begin}"
    );
    Ok(())
}

impl Replay<'_> {
    /// Sends the events of entries, and notes those that can't be decoded.
    async fn send(&mut self, chunk: Vec<(Checkpoint, Option<KnownEntry>)>) -> Result<()> {
        let Self { arguments, topic, filter, done } = self;
        let (mut ids, mut entries, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        done.read += chunk.len() as u64;
        for (Entry { event, .. }, unread) in chunk.into_iter().filter_map(|(_, known)| known) {
            let id = event.id();
            if let Some(why) = unread {
                done.refused.push((id, why));
                continue;
            }
            if !filter.matches(&event) {
                continue;
            }
            let entry = match arguments.as_new {
                true => TopicEntry::of_event(event),
                false => TopicEntry::of_replay(event, &arguments.name),
            };
            match entry {
                Ok(entry) => {
                    ids.push(id);
                    entries.push(entry);
                }
                Err(error) => refused.push((id, format!("{:#}", anyhow::Error::new(error)))),
            }
        }
        let by_bus = send(topic, &entries, Some(arguments.rate)).await?;
        done.sent += (entries.len() - by_bus.len()) as u64;
        refused.extend(by_bus.into_iter().map(|(place, cause)| (ids[place].clone(), cause)));
        // Print this before the checkpoint moves: if the replay breaks off, the next run does not know the refused
        // events.
        for (id, cause) in &refused {
            arguments.output.tell(&format!("refused  {id}: {cause}"));
        }
        done.refused.extend(refused);
        Ok(())
    }
}

impl Display for Done {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { read, sent, at, .. } = self;
        write_line!(f, "{read} events read, {sent} sent, at checkpoint {at}")
    }
}

serialize_as!(Done, |Done { read, sent, refused, at }| {
    let refused = refused.iter().map(|(id, cause)| json!({ "id": id, "cause": cause }));
    json!({
        "read": read, "sent": sent, "refused": refused.collect::<Value>(), "checkpoint": at,
    })
});
