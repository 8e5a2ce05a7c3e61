//! `ringfence project pull` and `reconstruct`: the file of a project's events, copied from the index or from an export.
//!
//! The index never changes, so the file follows from it: each copy has the same bytes.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use futures::StreamExt;
use projects::ProjectId;
use ringfence_cli::machine::dynamo_client;
use ringfence_cli::say;
use ringfence_cli::tables::EventTable;
use ringfence_feed::{Checkpoint, Index, Until};
use serde::{Deserialize, Serialize};

use super::export::Export;
use super::folder::{Appending, EVENTS, End, Folder, Reading, Writing, listed};
use projects::line::{Line, Place, to_text};

const PULLED: &str = "pull.json";
/// How many entries are read before their lines are written.
const CHUNK_ENTRIES: usize = 1_000;

/// The source of events.
#[derive(Args)]
pub(crate) struct Source {
    /// The table of the index, which has the events of all projects.
    #[arg(long, env = "INDEX_TABLE", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    index_table: Option<String>,
    /// The table with the events of the index. Commands that write need it too, if the project is not local.
    #[arg(long, env = "EVENT_TABLE", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(super) table: Option<String>,
    /// An export, which has a folder for each project: `s3://<bucket>`, or a folder of this machine. It is taken
    /// instead of the index, if both are named.
    #[arg(long, env = "RINGFENCE_EXPORT", value_name = "WHERE")]
    export: Option<Export>,
}

/// The origin of copied events.
pub(crate) enum Origin<'s> {
    Index(Index),
    Export(&'s Export),
}

impl Origin<'_> {
    /// The last entry of the index before the first one of a project, so that a copy can begin after it; `None` if it
    /// has to begin at the start.
    ///
    /// # Errors
    /// There is no such project, or the events can't be read.
    async fn before(&self, project: &ProjectId) -> Result<Option<Place>> {
        let (place, others) = match self {
            Self::Index(index) => {
                let (mut before, mut others) = (None, BTreeSet::new());
                let mut entries = index.read(Checkpoint::START, Until::Present);
                while let Some(entry) = entries.next().await {
                    let entry = entry.context("reading the index")?;
                    let place = Place::of(&entry);
                    match Line::of(entry) {
                        Some(line) if line.project == *project => return Ok(before),
                        line => others.extend(line.map(|line| line.project)),
                    }
                    before = Some(place);
                }
                ("the index", Some(others))
            }
            Self::Export(export) => match export.has(project).await? {
                true => return Ok(None),
                false => ("the export", export.projects()?),
            },
        };
        let others = match others {
            None => "`GET /project-status` of the stack lists those that there are".to_owned(),
            Some(others) if others.is_empty() => "it has none at all".to_owned(),
            Some(others) => format!("it has {}", listed(others.iter())),
        };
        bail!(
            "{place} has no project {project}; {others}. A project that has just begun is in the index a moment later, \
             and in an export within two minutes"
        )
    }
}

impl Source {
    /// The source of events, if it is named.
    pub(crate) async fn origin(&self) -> Result<Option<Origin<'_>>> {
        Ok(match (&self.export, &self.index_table, &self.table) {
            (Some(export), ..) => Some(Origin::Export(export)),
            (None, Some(index), Some(table)) => {
                let client = dynamo_client().await?;
                let log = EventTable::named(table.clone()).bodies(client.clone());
                Some(Origin::Index(Index::new(client, index, log)))
            }
            _ => None,
        })
    }

    /// # Errors
    /// No source of events is named.
    pub(crate) async fn named(&self) -> Result<Origin<'_>> {
        let origin = self.origin().await?;
        origin.context(
            "nothing to copy from: name the index and the events with --index-table and --table, or with --stack, or an export with \
             --export",
        )
    }
}

/// `pull.json`: after the last line, the index has events of others up to a place. Each pull writes it, so the file's
/// time is the time of the last pull.
#[derive(Serialize, Deserialize)]
struct Pulled {
    project: ProjectId,
    /// The checkpoint of the last line; the start if there is none.
    behind: Checkpoint,
    /// Absent if the index was empty.
    read: Option<Place>,
}

/// When the last pull ended, in milliseconds since 1970; `None` if there was none.
pub(crate) fn pulled_ms(folder: &Reading<'_>) -> Result<Option<u64>> {
    let Some(file) = folder.open(PULLED)? else { return Ok(None) };
    let changed = file.metadata().and_then(|file| file.modified());
    let since = changed.with_context(|| format!("reading {}", folder.path(PULLED).display()))?;
    let since = since.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(u64::try_from(since.as_millis()).ok())
}

/// How far an index was copied.
#[derive(Default)]
struct Copied {
    lines: u64,
    /// The checkpoint of the last line.
    last: Option<Checkpoint>,
    /// The last entry that was read.
    read: Option<Place>,
}

/// The folder of a project of the stack.
///
/// # Errors
/// The project is local, so its file is not a copy. Or the file is of another project.
fn of_stack(folder: &Folder) -> Result<Writing<'_>> {
    let folder = folder.write()?;
    ensure!(
        !folder.is_local()?,
        "{} is a local project: `ringfence project publish` imports it into a stack",
        folder.project()
    );
    Ok(folder)
}

pub(crate) async fn run_pull(folder: &Folder, source: &Source) -> Result<ExitCode> {
    let lines = pull(&source.named().await?, folder).await?;
    say!("{lines} events added to {}", folder.project);
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn run_reconstruct(folder: &Folder, source: &Source) -> Result<ExitCode> {
    let origin = source.named().await?;
    let begun = folder.is_begun()?.then(|| of_stack(folder)).transpose()?;
    let before = origin.before(&folder.project).await?;
    let writing = begun.map_or_else(|| of_stack(folder), Ok)?;
    let lines = reconstruct(&origin, &writing, before).await?;
    say!("{lines} events of {}", folder.project);
    Ok(ExitCode::SUCCESS)
}

/// Pulls into a folder, which is made only if there is such a project.
///
/// # Errors
/// There is no such project, its file is not a copy, or as [`add_new`].
pub(crate) async fn pull(origin: &Origin<'_>, folder: &Folder) -> Result<u64> {
    if folder.is_begun()? {
        return add_new(origin, &of_stack(folder)?).await;
    }
    let read = origin.before(&folder.project).await?;
    let folder = of_stack(folder)?;
    keep(&folder, Copied { read, ..Copied::default() })?;
    add_new(origin, &folder).await
}

/// Appends the events after the last line, and returns how many. From the index it reads the events of all projects.
///
/// # Errors
/// A line is damaged, the events can't be read, or the lines are of other events.
pub(crate) async fn add_new(origin: &Origin<'_>, folder: &Writing<'_>) -> Result<u64> {
    let end = folder.lines(|_| Ok(()))?;
    let from = match origin {
        Origin::Index(_) => place(folder, &end)?,
        Origin::Export(_) => end.place(),
    };
    let mut file = folder.behind(&end)?;
    let last = end.place().map(|place| place.checkpoint);
    let copied = copy(origin, folder, from.clone(), &mut file).await?;
    let (last, read) = (copied.last.or(last), copied.read.or(from));
    keep(folder, Copied { last, read, ..copied })
}

/// Writes the whole file again from the events after a place, and returns how many lines it has. The old file is kept,
/// unless a line shows that it is a copy.
///
/// # Errors
/// The events can't be read. The old file stays then.
pub(crate) async fn reconstruct(
    origin: &Origin<'_>,
    folder: &Writing<'_>,
    from: Option<Place>,
) -> Result<u64> {
    let mut file = folder.new_file(EVENTS)?;
    let copied = copy(origin, folder, from, &mut file).await?;
    folder.keep_unknown()?;
    folder.put(file, EVENTS)?;
    keep(folder, copied)
}

/// Appends the lines of the events after a place.
async fn copy(
    origin: &Origin<'_>,
    folder: &Writing<'_>,
    from: Option<Place>,
    file: &mut Appending,
) -> Result<Copied> {
    match origin {
        Origin::Index(index) => copy_index(index, folder, from, file).await,
        Origin::Export(export) => {
            let (lines, read) = export.copy(folder.project(), from, file).await?;
            Ok(Copied { lines, last: read.as_ref().map(|place| place.checkpoint), read })
        }
    }
}

/// The last entry that was read. `pull.json` counts only if it is of this project and of the last line.
fn place(folder: &Writing<'_>, end: &End) -> Result<Option<Place>> {
    let text = folder.text(PULLED)?.unwrap_or_default();
    let last = end.place();
    let behind = last.as_ref().map_or(Checkpoint::START, |place| place.checkpoint);
    let pulled = serde_json::from_str::<Pulled>(&text).ok();
    let pulled = pulled.filter(|it| it.project == *folder.project() && it.behind == behind);
    Ok(pulled.and_then(|pulled| pulled.read).or(last))
}

fn keep(folder: &Writing<'_>, Copied { lines, last, read }: Copied) -> Result<u64> {
    let project = folder.project().clone();
    let pulled = Pulled { project, behind: last.unwrap_or(Checkpoint::START), read };
    folder.replace(PULLED, &serde_json::to_string(&pulled)?)?;
    Ok(lines)
}

/// Appends the lines of the entries after a place.
async fn copy_index(
    index: &Index,
    folder: &Writing<'_>,
    from: Option<Place>,
    file: &mut Appending,
) -> Result<Copied> {
    let begin = from.as_ref().map_or(Checkpoint::START, Place::before);
    let mut entries = index.read(begin, Until::Present);
    if let Some(from) = from {
        let found = entries.next().await.transpose().context("reading the index")?;
        if found.as_ref().map(Place::of).as_ref() != Some(&from) {
            let Place { checkpoint, event_id, .. } = from;
            bail!(
                "IndexChanged: the index does not have the event {event_id} at checkpoint {checkpoint}, so it is \
                 another index or a new one. `ringfence project reconstruct` writes the file again from it; \
                 commands that wait to be sent stay"
            );
        }
    }
    let mut copied = Copied::default();
    let mut chunks = entries.ready_chunks(CHUNK_ENTRIES);
    while let Some(chunk) = chunks.next().await {
        let (mut text, mut failed) = (String::new(), None);
        for entry in chunk {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            };
            copied.read = Some(Place::of(&entry));
            if let Some(line) = Line::of(entry).filter(|line| line.project == *folder.project()) {
                text += &to_text(&line);
                copied.lines += 1;
                copied.last = Some(line.checkpoint);
            }
        }
        file.append(&text)?;
        if let Some(error) = failed {
            return Err(error).context("reading the index");
        }
    }
    Ok(copied)
}
