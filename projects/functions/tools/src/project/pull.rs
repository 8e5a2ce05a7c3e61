//! `ringfence project pull` and `reconstruct`: the file of a project's events, copied from the index.
//!
//! The index never changes, so the file follows from it: each copy has the same bytes.

use std::process::ExitCode;
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use futures::StreamExt;
use projects::ProjectId;
use ringfence_cli::say;
use ringfence_cli::tables::{DynamoEndpoint, IndexTable};
use ringfence_feed::{Checkpoint, Index, Until};
use serde::{Deserialize, Serialize};

use super::folder::{Appending, EVENTS, End, Folder, Reading, Writing};
use super::line::{Line, Place, to_text};

const PULLED: &str = "pull.json";
/// How many entries are read before their lines are written.
const CHUNK_ENTRIES: usize = 1_000;

/// Where the index is.
#[derive(Args)]
pub(crate) struct Source {
    #[command(flatten)]
    index: IndexTable,
    #[command(flatten)]
    dynamo: DynamoEndpoint,
}

impl Source {
    pub(crate) async fn index(&self) -> Result<Index> {
        Ok(self.index.index(self.dynamo.client().await?))
    }
}

/// `pull.json`: after the last line, the index has events of others up to a place. Each pull writes it, so the time
/// of the file is that of the last pull.
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
/// The project is local, so its file is not a copy. Or the file is another project's.
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
    let lines = pull(&source.index().await?, &of_stack(folder)?).await?;
    say!("{lines} events added to {}", folder.project);
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn run_reconstruct(folder: &Folder, source: &Source) -> Result<ExitCode> {
    let lines = reconstruct(&source.index().await?, &of_stack(folder)?).await?;
    say!("{lines} events of {}", folder.project);
    Ok(ExitCode::SUCCESS)
}

/// Appends the events that the index has after the last line, and returns how many. It reads the events of all projects.
///
/// # Errors
/// A line is damaged, the index can't be read, or it is not the one that the lines are of.
pub(crate) async fn pull(index: &Index, folder: &Writing<'_>) -> Result<u64> {
    let end = folder.lines(|_| Ok(()))?;
    let from = place(folder, &end)?;
    let mut file = folder.behind(&end)?;
    let last = end.place().map(|place| place.checkpoint);
    let copied = copy(index, folder, from.clone(), &mut file).await?;
    let (last, read) = (copied.last.or(last), copied.read.or(from));
    keep(folder, Copied { last, read, ..copied })
}

/// Writes the whole file again, and returns how many lines it has.
///
/// # Errors
/// The index can't be read. The old file stays then.
pub(crate) async fn reconstruct(index: &Index, folder: &Writing<'_>) -> Result<u64> {
    let mut file = folder.anew(EVENTS)?;
    let copied = copy(index, folder, None, &mut file).await?;
    folder.put(file, EVENTS)?;
    keep(folder, copied)
}

/// The last entry that is known to be read. Of another project, or after another line than the last, `pull.json` says
/// nothing.
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
async fn copy(
    index: &Index,
    folder: &Writing<'_>,
    from: Option<Place>,
    file: &mut Appending,
) -> Result<Copied> {
    let begin = from.as_ref().map_or(Ok(Checkpoint::START), Place::before)?;
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
