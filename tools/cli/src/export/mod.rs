//! `ringfence export`.

pub(crate) mod folder;
mod form;
pub(crate) mod subject;
#[cfg(feature = "parquet")]
mod table;

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use futures::StreamExt;
use ringfence_core::visible;
use ringfence_feed::{Checkpoint, Entry, Index, Until};
use serde_json::{Value, json};

use crate::Lists;
use crate::machine::dynamo_client;
use crate::out::{Output, serialize_as, write_line};
use crate::place::CheckpointName;
use crate::progress;
use crate::remark;
use crate::shown::Newest;
use crate::tables::FeedTables;
use folder::{Segment, Written};
use form::OpenSegment;
use subject::{Form, Subject};

/// A segment has at most this many events. An export that is broken off reads at most so many again.
const SEGMENT_EVENTS: u64 = 10_000;
/// A segment reads at most this many entries of the index.
const SEGMENT_ENTRIES: u64 = 100_000;
/// The number of entries between two updates of the progress.
const PROGRESS_ENTRIES: u64 = 1_000;
/// An event that has no newest version ends an export.
const NOT_NEWEST: &str = "this build can't make the newest version of an event, so nothing after it is exported; use a \
                          build that can, or export without --newest into another folder";

#[derive(Args)]
#[command(after_help = "\
The folder gets a file for every 10,000 events, and `export.list`, which has the checkpoint, the number of events and
the SHA-256 of each file. The same command continues the export: after an interruption, and when there are new events.
Each event is in the export once. docs/data.md describes the lines.

Payloads are as they are stored, so `ringfence import` can copy them. With --newest they are in the newest versions of
their types, for other programs.

Examples:
  ringfence export shop-events
  ringfence export --newest shop-events-today
  ringfence export --context ordering --from 120000 orders
  ringfence export --to parquet shop-tables")]
pub(crate) struct Arguments {
    /// The format of the files. Parquet needs a build with the feature `ringfence-cli/parquet`.
    #[arg(long, default_value = "jsonl")]
    to: Form,
    /// The folder.
    folder: PathBuf,
    #[command(flatten)]
    index: FeedTables,
    /// Begins a new export after this checkpoint: a number, `start` or `end`. The default is the start.
    #[arg(long, value_name = "CHECKPOINT")]
    from: Option<CheckpointName>,
    /// Only events of this context. Repeat the flag for several contexts.
    #[arg(long = "context", value_name = "CONTEXT")]
    contexts: Vec<String>,
    #[command(flatten)]
    shown: Newest<false>,
    #[command(flatten)]
    output: Output,
}

/// What an export has done.
struct Done {
    folder: String,
    events: u64,
    segments: usize,
    /// The events of the folder.
    all: u64,
    /// The events that it leaves out because they can't be decoded: each id, and why.
    unreadable: Vec<(String, String)>,
    until: Checkpoint,
    newest: bool,
    read_units: f64,
}

pub(crate) async fn export(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let Arguments { to, folder, index, from, contexts, shown, output } = arguments;
    OpenSegment::ensure_built(*to)?;
    for name in contexts {
        lists.context(name)?;
    }
    let table = &index.index.index_table;
    let index = index.index(dynamo_client().await?).await?;
    let begin = from.unwrap_or(CheckpointName::Start).checkpoint(&index).await?;
    let subject = Subject::new(*to, table, begin, contexts, shown.newest);
    // If the index can't be read, no folder stays.
    let end = index.end().await?;
    let mut written = Written::open(folder, subject, from.is_some())?;
    let before = written.folder.segments.len();
    let begin = written.folder.until();
    ensure!(
        begin <= end,
        "{} has the entries up to checkpoint {begin}, and the index ends at {end}: it is another index, or it was made \
         again; name another folder",
        folder.display()
    );
    if shown.newest
        && let Some((file, name, version)) = written.folder.other_version(lists)
    {
        bail!(
            "{} has {name} in version {version}, which is not the newest version of this build: name another folder",
            written.folder.file(file).display()
        );
    }
    if before > 0 {
        remark!("{} goes on after checkpoint {begin}", folder.display());
        for file in written.folder.damaged() {
            remark!(
                "warning: {} is gone, or has another length than the list says: `import` and `sql` need it as it was",
                file.display()
            );
        }
    }
    let done =
        write(&mut written, &index, end, lists).await.map(|unreadable| (written, unreadable));
    let (written, unreadable) = done.inspect_err(|_| {
        remark!("the export was broken off: the same command goes on with it");
    })?;
    let segments = &written.folder.segments;
    let events = |of: &[Segment]| of.iter().map(|segment| segment.events).sum();
    let done = Done {
        folder: folder.display().to_string(),
        events: events(&segments[before..]),
        segments: segments.len() - before,
        all: events(segments),
        unreadable,
        until: written.folder.until(),
        newest: shown.newest,
        read_units: index.usage().total().read,
    };
    Ok(output.end(&done, done.unreadable.is_empty()))
}

/// Writes the entries of the index that the folder lacks, segment by segment. Returns the events that can't be decoded.
async fn write(
    written: &mut Written,
    index: &Index,
    end: Checkpoint,
    lists: &Lists,
) -> Result<Vec<(String, String)>> {
    let (from, Subject { contexts, newest, .. }) =
        (written.folder.until(), written.folder.subject.clone());
    let total = index.count(from, end).await?;
    let mut entries = index.read(from, Until::Present);
    let (mut read, mut events) = (0, 0);
    let mut segment = None;
    let mut last = None;
    let mut unreadable = Vec::new();
    while let Some(entry) = entries.next().await {
        let (entry, why) = Entry::or_known(entry)?;
        let open = match &mut segment {
            Some(open) => open,
            none => none.insert(OpenSegment::begin(written)?),
        };
        read += 1;
        open.entries += 1;
        if contexts.is_empty() || contexts.contains(&entry.event.context) {
            match why {
                Some(why) => unreadable.push((entry.event.id(), why)),
                None => {
                    let event = match newest {
                        true => lists.newest(&entry.event).context(NOT_NEWEST)?,
                        false => entry.event.into(),
                    };
                    open.add(entry.checkpoint, &event)?;
                    events += 1;
                }
            }
        }
        last = Some(entry.checkpoint);
        if open.events == SEGMENT_EVENTS || open.entries == SEGMENT_ENTRIES {
            let whole = segment.take().expect("it is open");
            whole.end(written, entry.checkpoint)?;
        }
        if read % PROGRESS_ENTRIES == 0 {
            progress::show(format_args!("{read} of {total} entries read, {events} events written"));
        }
    }
    if let (Some(rest), Some(last)) = (segment, last) {
        rest.end(written, last)?;
    }
    Ok(unreadable)
}

impl Display for Done {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { folder, events, segments, all, unreadable, until, newest, read_units } = self;
        for (event, why) in unreadable {
            write_line!(f, "left out {}: {}", visible(event), visible(why))?;
        }
        let shape = if *newest { "in the newest versions" } else { "as they are stored" };
        write_line!(
            f,
            "{events} events in {segments} new files, {read_units} read units; {folder} has {all} events {shape}, up to \
             checkpoint {until}"
        )
    }
}

serialize_as!(Done, |Done {
                         folder,
                         events,
                         segments,
                         all,
                         unreadable,
                         until,
                         newest,
                         read_units,
                     }| {
    let unreadable = unreadable.iter().map(|(event, why)| json!({ "event": event, "cause": why }));
    json!({
        "unreadable": unreadable.collect::<Value>(),
        "folder": folder, "events": events, "files": segments, "allEvents": all, "checkpoint": until,
        "newest": newest, "readUnits": read_units,
    })
});
