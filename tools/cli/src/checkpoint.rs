//! `ringfence checkpoint`.

use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Args;
use ringfence_feed::{Checkpoint, Checkpoints, Reader};
use serde::Serialize;
use serde_json::{Value, json};

use crate::machine::dynamo_client;
use crate::out::{Output, serialize_as, write_line};
use crate::place::CheckpointName;
use crate::tables::{IndexTable, ViewTable};

#[derive(Args)]
#[command(
    after_help = "Without a reader's name it reads the whole table of views, which costs read units.

Example:
  ringfence checkpoint show orders#1"
)]
pub(crate) struct Show {
    #[command(flatten)]
    tables: Tables,
    /// The reader: a name given to `tail --reader`, `replay.<name>`, or `<view>#<generation>`.
    reader: Option<String>,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
#[command(
    after_help = "Stop the reader first. A running reader notices the change and ends with an error.

Example:
  ringfence checkpoint set audit 1000"
)]
pub(crate) struct Set {
    #[command(flatten)]
    tables: Tables,
    /// The reader.
    reader: String,
    /// Its new place: a number, `start` or `end`.
    checkpoint: CheckpointName,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
struct Tables {
    #[command(flatten)]
    index: IndexTable,
    #[command(flatten)]
    views: ViewTable,
}

pub(crate) async fn show(arguments: &Show) -> Result<ExitCode> {
    let Tables { index, views } = &arguments.tables;
    let client = dynamo_client().await?;
    let checkpoints = Checkpoints::new(client.clone(), &views.view_table);
    let mut readers = match &arguments.reader {
        None => checkpoints.readers().await?,
        Some(name) => Vec::from_iter(checkpoints.reader(name).await?),
    };
    if let Some(name) = &arguments.reader {
        ensure!(!readers.is_empty(), "reader {name} has no checkpoint");
    }
    readers.sort_by(|a, b| a.name.cmp(&b.name));
    let index = index.index(client).await?;
    let end = index.end().await?;
    let mut shown = Shown { end, readers: Vec::with_capacity(readers.len()) };
    for reader in readers {
        let behind = index.count(reader.checkpoint, end).await?;
        shown.readers.push((reader, behind));
    }
    Ok(arguments.output.end(&shown, true))
}

/// The readers, and how many entries each is behind.
struct Shown {
    end: Checkpoint,
    readers: Vec<(Reader, u64)>,
}

impl Display for Shown {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (Reader { name, checkpoint, updated_at }, behind) in &self.readers {
            let place = place(*checkpoint, self.end, *behind);
            write_line!(f, "{name}  {checkpoint}  {place}  {updated_at}")?;
        }
        write_line!(f, "the index ends at {}", self.end)
    }
}

serialize_as!(Shown, |Shown { end, readers }| {
    let reader = |(Reader { name, checkpoint, updated_at }, behind): &_| {
        json!({
            "reader": name, "checkpoint": checkpoint, "behind": behind, "updatedAt": updated_at,
        })
    };
    json!({ "end": end, "readers": readers.iter().map(reader).collect::<Value>() })
});

/// How far a reader is. A generation of a view that is no longer served has a checkpoint after every event.
pub fn place(at: Checkpoint, end: Checkpoint, behind: u64) -> String {
    match behind {
        _ if at > end => "retired".to_owned(),
        0 => "up to date".to_owned(),
        events => format!("{events} behind"),
    }
}

pub(crate) async fn set(arguments: &Set) -> Result<ExitCode> {
    let Set { tables, reader, checkpoint, output } = arguments;
    if let Some((view, _)) = reader.split_once('#') {
        // If a view's checkpoint moves without its rows, a row misses an event or folds one twice, and stays wrong.
        anyhow::bail!(
            "{reader} is a view, whose checkpoint moves only with its rows; \
             to fold it again from the start: ringfence replay view {view}"
        );
    }
    let client = dynamo_client().await?;
    let checkpoints = Checkpoints::new(client.clone(), &tables.views.view_table);
    let to = checkpoint.checkpoint(&tables.index.index(client).await?).await?;
    let from = checkpoints.load(reader).await?;
    checkpoints.set(reader, to).await?;
    Ok(output.end(&Moved { reader, from, to }, true))
}

/// A reader whose checkpoint was set.
#[derive(Serialize)]
struct Moved<'a> {
    reader: &'a str,
    from: Option<Checkpoint>,
    to: Checkpoint,
}

impl Display for Moved<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { reader, from, to } = self;
        let from = from.map_or_else(|| "new".to_owned(), |from| from.to_string());
        write_line!(f, "{reader}: {from} -> {to}")
    }
}
