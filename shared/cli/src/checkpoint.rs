//! `ringfence checkpoint`.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Args;
use ringfence_feed::{Checkpoint, Checkpoints, Reader};
use serde_json::json;

use crate::place::Place;
use crate::say;
use crate::tables::{Dynamo, IndexTable, ViewTable};

#[derive(Args)]
#[command(
    after_help = "Without a reader's name it reads the whole table of views, and pays for that.

Example:
  ringfence checkpoint show orders#1"
)]
pub(crate) struct Show {
    #[command(flatten)]
    tables: Tables,
    /// The reader: a name given to `tail --reader`, `replay.<name>`, or `<view>#<generation>`.
    reader: Option<String>,
    /// Prints one JSON document instead of lines for people.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
#[command(
    after_help = "Stop the reader first. A reader that is at work notices the change and ends with an error.

Example:
  ringfence checkpoint set audit 1000"
)]
pub(crate) struct Set {
    #[command(flatten)]
    tables: Tables,
    /// The reader.
    reader: String,
    /// Its new place: a number, `start` or `end`.
    checkpoint: Place,
    /// Prints one JSON document instead of lines for people.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Tables {
    #[command(flatten)]
    index: IndexTable,
    #[command(flatten)]
    views: ViewTable,
    #[command(flatten)]
    dynamo: Dynamo,
}

pub(crate) async fn show(arguments: &Show) -> Result<ExitCode> {
    let Tables { index, views, dynamo } = &arguments.tables;
    let client = dynamo.client().await?;
    let checkpoints = Checkpoints::new(client.clone(), &views.view_table);
    let mut readers = match &arguments.reader {
        None => checkpoints.readers().await?,
        Some(name) => Vec::from_iter(checkpoints.reader(name).await?),
    };
    if let Some(name) = &arguments.reader {
        ensure!(!readers.is_empty(), "reader {name} has no checkpoint");
    }
    readers.sort_by(|a, b| a.name.cmp(&b.name));
    let index = index.index(client);
    let end = index.end().await?;
    let mut shown = Vec::with_capacity(readers.len());
    for Reader { name, checkpoint, updated_at } in readers {
        let behind = index.count(checkpoint, end).await?;
        if arguments.json {
            shown.push(json!({
                "reader": name,
                "checkpoint": checkpoint,
                "behind": behind,
                "updatedAt": updated_at,
            }));
        } else {
            let place = place(checkpoint, end, behind);
            say!("{name}  {checkpoint}  {place}  {updated_at}");
        }
    }
    match arguments.json {
        true => say!("{}", json!({ "end": end, "readers": shown })),
        false => say!("the index ends at {end}"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Where a reader is. A generation of a view that is no longer served has a checkpoint after every event.
pub fn place(at: Checkpoint, end: Checkpoint, behind: u64) -> String {
    match behind {
        _ if at > end => "retired".to_owned(),
        0 => "up to date".to_owned(),
        events => format!("{events} behind"),
    }
}

pub(crate) async fn set(arguments: &Set) -> Result<ExitCode> {
    let Set { tables, reader, checkpoint, json } = arguments;
    if let Some((view, _)) = reader.split_once('#') {
        // A row that misses an event, or folds it twice, stays wrong for ever.
        anyhow::bail!(
            "{reader} is a view, whose checkpoint moves only with its rows; \
             to fold it anew: ringfence replay view {view}"
        );
    }
    let client = tables.dynamo.client().await?;
    let checkpoints = Checkpoints::new(client.clone(), &tables.views.view_table);
    let to = checkpoint.checkpoint(&tables.index.index(client)).await?;
    let from = checkpoints.load(reader).await?;
    checkpoints.set(reader, to).await?;
    match from {
        _ if *json => say!("{}", json!({ "reader": reader, "from": from, "to": to })),
        Some(from) => say!("{reader}: {from} -> {to}"),
        None => say!("{reader}: new -> {to}"),
    }
    Ok(ExitCode::SUCCESS)
}
