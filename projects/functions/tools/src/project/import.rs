//! `ringfence project import`: the work that another program has recorded, in a local project.
//!
//! What the context knows becomes its events, in the order of the lines; every other line is kept as it is, and the report
//! says why. The project may go on here, and the file may grow: each line is imported once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use ringfence::{CommandContext, Envelope, Metadata, rfc3339};
use ringfence_cli::say;
use ringfence_dynamo::Clock;

use super::cache::Cache;
use super::decide::Slices;
use super::folder::Folder;
use super::foreign::Foreign;
use super::importer::Importer;

/// The metadata of an event that says which line it follows from.
const IMPORT_ID: &str = "importId";

#[derive(Args)]
#[command(after_help = "\
The file has a JSON object a line, with `event_type` and `timestamp`. The project is a local one or begins with the
import; `publish` brings it into a stack. A line becomes an event of the project if it is of one of these types:
project_initialized, edge_started, iteration_completed, edge_converged, edge_released, claim_rejected, claim_expired,
convergence_escalated, review_completed, spawn_created, spawn_folded_back, checkpoint_created, gaps_validated,
intent_raised, release_created. All others are kept as they are, and so is a line that does not fit. The report says why. A
line is imported once, by its `event_id` or else by what it says. So the file can grow and be imported again, and the
project can go on meanwhile.

Example:
  ringfence project import events.jsonl --project shop")]
pub(crate) struct Import {
    /// The file.
    file: PathBuf,
}

/// How many lines a reason of the report names.
const SHOWN_MAX: usize = 5;

pub(crate) async fn run(folder: &Folder, Import { file }: &Import) -> Result<ExitCode> {
    let text = fs::read_to_string(file);
    let text = text.with_context(|| format!("reading {}", file.display()))?;
    let lines = Foreign::read(&text).with_context(|| file.display().to_string())?;
    let (slices, project, folder) = (Slices::all(), &folder.project, folder.write()?);
    let log = Cache::read(&folder, &slices).await?.file_log(&folder, &slices)?;
    let before = log.memory.events();
    let mut ids: BTreeSet<String> = before
        .iter()
        .filter_map(|event| event.metadata.text(IMPORT_ID).map(str::to_owned))
        .collect();
    let mut importer = Importer::new(project, &before, &lines)?;
    let (mut appends, mut kept) = (Vec::new(), BTreeMap::<_, Vec<usize>>::new());
    for line in lines.iter().filter(|line| ids.insert(line.id())) {
        let taken = importer.take(line);
        if let Some(why) = taken.kept {
            kept.entry((line.event_type.clone(), why)).or_default().push(line.number);
        }
        appends.push((taken.events, envelope(line)));
    }
    let imported = appends.len();
    if imported > 0 {
        log.append_all(appends).await?;
    }
    let (there, foreign) = (lines.len() - imported, kept.values().map(Vec::len).sum::<usize>());
    say!(
        "{imported} lines imported, {foreign} of them kept as they are; {there} were there before"
    );
    for ((event_type, why), numbers) in kept {
        let shown = numbers.iter().take(SHOWN_MAX).map(ToString::to_string);
        let shown = shown.collect::<Vec<_>>().join(", ");
        let more = if numbers.len() > SHOWN_MAX { ", …" } else { "" };
        say!("kept {event_type} ({}): {why}; lines {shown}{more}", numbers.len());
    }
    Ok(ExitCode::SUCCESS)
}

fn envelope(line: &Foreign) -> Envelope {
    let mut metadata = Metadata::default();
    let at = line.at_ms().map(rfc3339);
    for (name, text) in [(IMPORT_ID, Some(line.id())), ("effectiveAt", at)] {
        if let Some(text) = text {
            metadata.insert(name, text).expect("none of these keys is the log's own");
        }
    }
    let context = CommandContext { now_ms: Clock::system().now_ms(), ..CommandContext::default() };
    Envelope { context, metadata, ..Envelope::default() }
}
