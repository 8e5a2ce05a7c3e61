//! `ringfence project import`: the work that another program has recorded, in a local project.
//!
//! The file is of one agent, so the project is in single mode. What the context knows becomes its events, in the order
//! of the lines; every other line is kept as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Args;
use projects::{EdgeRef, ForeignRecorded, ProjectId};
use ringfence::{CommandContext, Envelope, Event, Metadata, rfc3339};
use ringfence_cli::say;
use ringfence_dynamo::Clock;

use super::cache::Cache;
use super::decide::Slices;
use super::folder::Folder;
use super::foreign::{Foreign, Work};
use super::importer::{Importer, Progress};

/// The metadata of an event that says which line it follows from.
const IMPORT_ID: &str = "importId";

#[derive(Args)]
#[command(after_help = "\
The file has a JSON object a line, with `event_type` and `timestamp`. The project is a local one or begins with the
import; `publish` brings it into a stack. Lines of `edge_started`, `iteration_completed`, `edge_converged`,
`spawn_created`, `feature_spawned`, `spawn_folded_back`, `feature_folded_back` and `feature_created` become events of the
project. All others are kept as they are. A line is imported once, so the file can grow and be imported again. Nobody
may work on the project meanwhile: at the end the project is compared with the file.

Example:
  ringfence project import events.jsonl --project shop")]
pub(crate) struct Import {
    /// The file.
    file: PathBuf,
}

pub(crate) async fn run(folder: &Folder, Import { file }: &Import) -> Result<ExitCode> {
    let text = fs::read_to_string(file);
    let text = text.with_context(|| format!("reading {}", file.display()))?;
    let lines = Foreign::read(&text).with_context(|| file.display().to_string())?;
    let (slices, project, folder) = (Slices::all(), &folder.project, folder.write()?);
    let log = Cache::read(&folder, &slices).await?.file_log(&folder, &slices)?;
    let before = log.memory.events();
    let ids: BTreeSet<&str> =
        before.iter().filter_map(|event| event.metadata.text(IMPORT_ID)).collect();
    let mut importer = Importer::new(project, &before, &lines)?;
    let (mut appends, mut kept) = (Vec::new(), 0);
    for line in lines.iter().filter(|line| !ids.contains(&*line.id())) {
        let events = importer.events_of(line);
        kept += events.iter().filter(|event| event.event_type == ForeignRecorded::NAME).count();
        appends.push((events, envelope(line)));
    }
    let imported = appends.len();
    if imported > 0 {
        for (edge, told) in told(project, &lines) {
            let found = importer.progress(&edge);
            ensure!(
                found == told,
                "{edge}: {found} here, and {told} by the file, so somebody has worked on it here since the last \
                 import; nothing is written"
            );
        }
        log.append_all(appends).await?;
    }
    let there = lines.len() - imported;
    say!("{imported} lines imported, {kept} of them kept as they are; {there} were there before");
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

/// How far the edges are, by the lines alone.
fn told(project: &ProjectId, lines: &[Foreign]) -> BTreeMap<EdgeRef, Progress> {
    let mut told = BTreeMap::<EdgeRef, Progress>::new();
    for (edge, work) in lines.iter().filter_map(|line| line.work(project)) {
        let progress = told.entry(edge).or_default();
        if progress.is_converged && work != Work::Converged {
            *progress = Progress::default();
        }
        progress.iterations += u32::from(work == Work::Iteration);
        progress.is_converged |= work == Work::Converged;
    }
    told
}
