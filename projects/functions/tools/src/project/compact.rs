//! `ringfence project compact`: a copy without the old lines of features that are done.
//!
//! The old lines are folded into a [`Snapshot`], the first line of the copy. It is in the same file, which is replaced
//! in one step. The lines of features that are still worked on stay, however old they are, because a decision needs
//! whole partitions, also without a network.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Args;
use projects::views::project_features::FeatureRow;
use projects::{FeatureId, FeatureRef, Projects};
use ringfence_aws::Clock;
use ringfence_cli::say;
use ringfence_core::{Context, rfc3339};

use super::cache::is_known;
use super::folder::{EVENTS, Folder, Snapshot, Writing};
use super::outbox::Outbox;
use super::standing::{CLAIMS, FEATURES, Part, STATUS, Standing, TRACES, VERSION};
use projects::line::{named, to_text};

const DAY_MS: u64 = 86_400_000;
/// The parts of a snapshot.
const PARTS: [Part; 4] = [CLAIMS, FEATURES, STATUS, TRACES];
/// How much text is written at once.
const CHUNK_BYTES: usize = 1_000_000;

#[derive(Args)]
#[command(after_help = "\
The lines of a feature are folded if it is done and nothing has happened to it for this time. They stay if a feature
that is not done waits for it, directly or through others, or has to fold it back. They also stay if a waiting command
names it. `status`, `ready`, `claims` and `trace` show the same as before. `log` shows the lines that are left.
`reconstruct` brings all lines back.

Example:
  ringfence project compact --keep 30d")]
pub(crate) struct Compact {
    /// A feature is left alone if something has happened to it in this time.
    #[arg(long, value_name = "DAYS", value_parser = days)]
    keep: u64,
}

/// Days, in milliseconds.
fn days(text: &str) -> Result<u64, &'static str> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u64>().ok());
    let ms = days.and_then(|days| days.checked_mul(DAY_MS));
    ms.ok_or("must be a number of days, such as 30d")
}

pub(crate) fn run(folder: &Folder, Compact { keep }: &Compact) -> Result<ExitCode> {
    let folder = folder.write()?;
    ensure!(
        !folder.is_local()?,
        "{} is a local project: its file is its log, and all of the log is needed",
        folder.project()
    );
    let since = rfc3339(Clock::system().now_ms().saturating_sub(*keep));
    let gone = compact(&folder, &since)?;
    say!("features folded: {}, events: {}", gone.len(), gone.values().sum::<u64>());
    Ok(ExitCode::SUCCESS)
}

/// Folds the features that are done, and to which nothing has happened since a time of RFC 3339. Returns how many lines
/// of each are gone.
///
/// # Errors
/// A line is damaged, or the file can't be written. The old file stays then.
fn compact(folder: &Writing<'_>, since: &str) -> Result<BTreeMap<FeatureId, u64>> {
    let catalog = Projects::catalog()?;
    let (mut lines, mut recent, mut kept) = (BTreeMap::new(), BTreeSet::new(), 0);
    let (standing, before, end) = Standing::read(folder, &PARTS, |line, event| {
        kept += 1;
        let Some(feature) = line.feature else { return };
        // An event that this version can't fold keeps its feature.
        if line.timestamp.as_str() >= since || !is_known(&catalog, &event) {
            recent.insert(feature.clone());
        }
        *lines.entry(feature).or_default() += 1;
    })?;
    let over = over(&standing, &Outbox::read(folder)?);
    lines.retain(|feature, _| over.contains(feature) && !recent.contains(feature));
    let Some(last) = end.place().filter(|_| !lines.is_empty()) else { return Ok(lines) };
    let snapshot = Snapshot {
        folded: before.into_iter().chain(lines.keys().cloned()).collect(),
        kept: kept - lines.values().sum::<u64>(),
        last,
        project: folder.project().clone(),
        standing: serde_json::to_value(standing)?,
        version: VERSION.to_owned(),
    };
    replace(folder, &snapshot, |feature| lines.contains_key(feature))?;
    Ok(lines)
}

/// The features that are done, except those that another decision may need. An open feature needs the features that it
/// waits for, and its children that are not folded back. A waiting command needs the features that it names.
fn over(standing: &Standing, outbox: &Outbox) -> BTreeSet<FeatureId> {
    let features = standing.features.iter();
    let features = features.filter_map(|(id, row)| Some((id.parse::<FeatureRef>().ok()?, row)));
    let (done, open): (Vec<_>, Vec<_>) = features.partition(|(_, row)| is_done(row));
    let mut needed: BTreeSet<_> = outbox.iter().flat_map(|queued| named(&queued.data)).collect();
    for (feature, row) in open {
        needed.extend(standing.reachable(&feature));
        for edge in row.edges.values() {
            let children = edge.children.iter().filter(|(_, child)| child.outcome.is_none());
            needed.extend(children.map(|(child, _)| child.clone()));
        }
    }
    let over = done.into_iter().map(|(feature, _)| feature).filter(|it| !needed.contains(it));
    over.map(|it| it.feature).collect()
}

/// Whether all edges of a feature are done. If an edge that its rules once had is still held, it is not done.
fn is_done(row: &FeatureRow) -> bool {
    row.edges_left() == Some(0) && row.edges.values().all(|edge| edge.holding.holder.is_none())
}

/// Replaces the file by one with the snapshot and without the lines of some features.
fn replace(
    folder: &Writing<'_>,
    snapshot: &Snapshot,
    is_gone: impl Fn(&FeatureId) -> bool,
) -> Result<()> {
    let (mut file, mut text) = (folder.new_file(EVENTS)?, to_text(snapshot));
    folder.lines(|line| {
        if !line.feature.as_ref().is_some_and(&is_gone) {
            text += &to_text(&line);
        }
        if text.len() > CHUNK_BYTES {
            file.append(&std::mem::take(&mut text))?;
        }
        Ok(())
    })?;
    file.append(&text)?;
    folder.put(file, EVENTS)
}

#[cfg(test)]
mod tests;
