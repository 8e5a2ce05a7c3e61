//! `ringfence project import`: takes work that another program has recorded into a local project, or into one of a
//! stack.
//!
//! Lines that the context knows become its events, in their order; every other line is kept as it is, and the report
//! says why. Work may go on here, and the file may grow: each line is imported once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use ringfence_aws::Clock;
use ringfence_cli::machine::dynamo_client;
use ringfence_cli::tables::EventTable;
use ringfence_cli::{remark, say};
use ringfence_core::{CommandContext, Envelope, Metadata, SequencedEvent, rfc3339};
use tokio::time::sleep;

use super::cache::Cache;
use super::decide::Slices;
use super::folder::{EVENTS, Folder, Writing};
use super::foreign::Foreign;
use super::importer::Importer;
use super::live::Live;
use super::pull::{Source, add_new};
use super::taken::Taken;

/// The metadata that names the line of an event.
const IMPORT_ID: &str = "importId";

#[derive(Args)]
#[command(after_help = "\
The file has a JSON object a line, with `event_type` and `timestamp`. The project is local, or begins with the import;
`publish` brings it into a stack. Or it belongs to a stack, and the folder has a copy; then others can work on it
meanwhile. A line may also have `feature` (or `feature_id`), `edge` and `agent` (or `agent_id`), beside these members,
or in `data` or `payload`. A line of one of these types becomes an event of the project:

  project_initialized             if it is the first line
  edge_started, edge_claim        opens again an edge that was done
  iteration_completed             `delta` or `evaluators.failed`
  edge_converged, edge_released, claim_expired, claim_rejected, convergence_escalated
  review_completed                `decision` or `outcome`: approved, rejected
  spawn_created, feature_created, feature_spawned
                                  `parent` or `parent_vector`, and `edge`, where it was born
  spawn_folded_back, feature_folded_back
  checkpoint_created              `sha256` or `context_hash`
  gaps_validated                  `full`, `partial`, `none` and `total`, or `full_coverage`, `partial_coverage`,
                                  `no_coverage` and `total_req_keys`
  intent_raised                   `intent_id`
  release_created                 `version` and `features`

All others are kept as they are, and so is a line that does not fit. The report says why. A line is imported once, by
its `event_id` or else by what it says. So the file can grow and be imported again, and the project can go on meanwhile.

Examples:
  ringfence project import events.jsonl --project shop
  ringfence --stack ringfence-prod project import events.jsonl")]
pub(crate) struct Import {
    /// The file.
    file: PathBuf,
    #[command(flatten)]
    source: Source,
}

/// Progress is shown each time this many lines are in the stack.
const PROGRESS_LINES: usize = 500;
/// How many lines a reason of the report names.
const SHOWN_MAX: usize = 5;
/// How often in succession a line of a stack's project is tried again, because somebody was faster or the index is
/// behind, and the pause before.
const TRIES: u32 = 40;
const PAUSE: Duration = Duration::from_millis(250);

/// The result of an import.
#[derive(Default)]
struct Report {
    imported: usize,
    /// The numbers of the lines that are kept as they are, by type and reason.
    kept: BTreeMap<(String, String), Vec<usize>>,
}

pub(crate) async fn run(folder: &Folder, arguments: &Import) -> Result<ExitCode> {
    let file = &arguments.file;
    let text = fs::read_to_string(file);
    let text = text.with_context(|| format!("reading {}", file.display()))?;
    let lines = Foreign::read(&text).with_context(|| file.display().to_string())?;
    let (slices, folder) = (Slices::all(), folder.write()?);
    let is_copy = !folder.is_local()? && folder.open(EVENTS)?.is_some();
    let mut report = Report::default();
    let ended = match is_copy {
        true => into_stack(&folder, arguments, &slices, &lines, &mut report).await,
        false => into_file(&folder, &slices, &lines, &mut report).await,
    };
    match &ended {
        Ok(()) => report.print(&format!("{} were there before", lines.len() - report.imported)),
        // Events in the stack stay there. If the import is repeated, these lines are known.
        Err(_) if is_copy && report.imported > 0 => report.print("then it broke off"),
        Err(_) => {}
    }
    ended.map(|()| ExitCode::SUCCESS)
}

impl Report {
    fn note(&mut self, line: &Foreign, kept: Option<String>) {
        self.imported += 1;
        if let Some(why) = kept {
            self.kept.entry((line.event_type.clone(), why)).or_default().push(line.number);
        }
    }

    fn print(&self, rest: &str) {
        let (imported, kept) = (self.imported, self.kept.values().map(Vec::len).sum::<usize>());
        say!("{imported} lines imported, {kept} of them kept as they are; {rest}");
        for ((event_type, why), numbers) in &self.kept {
            let shown = numbers.iter().take(SHOWN_MAX).map(ToString::to_string);
            let shown = shown.collect::<Vec<_>>().join(", ");
            let more = if numbers.len() > SHOWN_MAX { ", …" } else { "" };
            say!("kept {event_type} ({}): {why}; lines {shown}{more}", numbers.len());
        }
    }
}

/// The lines that these events follow from.
fn imported(events: &[SequencedEvent]) -> BTreeSet<String> {
    let ids = events.iter().filter_map(|event| event.metadata.text(IMPORT_ID));
    ids.map(str::to_owned).collect()
}

/// Into a local project, or one that begins here: all lines or none.
async fn into_file(
    folder: &Writing<'_>,
    slices: &Slices,
    lines: &[Foreign],
    report: &mut Report,
) -> Result<()> {
    let log = Cache::read(folder, slices).await?.file_log(folder, slices)?;
    let before = log.memory.events();
    let mut ids = imported(&before);
    let mut importer = Importer::new(folder.project(), &before, lines)?;
    let mut appends = Vec::new();
    for line in lines.iter().filter(|line| ids.insert(line.id())) {
        let Taken { events, kept } = importer.take(line);
        report.note(line, kept);
        appends.push((line.number, events, envelope(line)));
    }
    if report.imported > 0 {
        log.append_all(appends).await?;
    }
    Ok(())
}

/// Into a project of a stack: line by line, so a run that broke off is repeated.
async fn into_stack(
    folder: &Writing<'_>,
    arguments: &Import,
    slices: &Slices,
    lines: &[Foreign],
    report: &mut Report,
) -> Result<()> {
    let table = arguments.source.table.clone().context(
        "the project is of a stack: name its event table with --table or --stack, and where its events are",
    )?;
    let (table, client) = (EventTable::named(table), dynamo_client().await?);
    table.check(&client).await?;
    let log = table.log_at(client, slices.catalog(), Clock::system());
    let (origin, mut tries) = (arguments.source.named().await?, 0);
    loop {
        add_new(&origin, folder).await?;
        ensure!(
            folder.snapshot()?.is_none(),
            "some events of the copy are folded: `ringfence project reconstruct` brings them back"
        );
        let mut before = Vec::new();
        folder.lines(|line| {
            before.push(line.event()?);
            Ok(())
        })?;
        let mut ids = imported(&before);
        let mut importer = Importer::new(folder.project(), &before, lines)?;
        let mut live = Live::new(&log, slices.catalog(), before);
        let mut is_done = true;
        for line in lines.iter().filter(|line| ids.insert(line.id())) {
            let Taken { events, kept } = importer.take(line);
            let appended = live.append(events, &envelope(line)).await;
            if !appended.with_context(|| format!("line {}", line.number))? {
                is_done = false;
                break;
            }
            report.note(line, kept);
            tries = 0;
            if report.imported.is_multiple_of(PROGRESS_LINES) {
                remark!("{} of {} lines imported", report.imported, lines.len());
            }
        }
        if is_done {
            add_new(&origin, folder).await?;
            return Ok(());
        }
        tries += 1;
        ensure!(
            tries < TRIES,
            "others keep changing the edge of the next line, or the index is behind: repeat the import"
        );
        sleep(PAUSE).await;
    }
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
