//! `ringfence project compact`: a copy without the old lines of features that are done.
//!
//! What the old lines tell is folded into a [`Snapshot`], the first line of the copy. Two files could be torn apart; one
//! is replaced in one step. The lines of features that are still worked on stay, however old they are, because a
//! decision needs whole partitions, also without a network.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use projects::views::project_features::FeatureRow;
use projects::{FeatureId, FeatureRef};
use ringfence::rfc3339;
use ringfence_dynamo::Clock;

use super::folder::{Folder, Writing};
use super::line::{Place, to_text};
use super::pull::of_stack;
use super::standing::{CLAIMS, FEATURES, Part, STATUS, Snapshot, Standing, TRACES};

const DAY_MS: u64 = 86_400_000;
/// What a snapshot tells.
const PARTS: [Part; 4] = [CLAIMS, FEATURES, STATUS, TRACES];
/// How much text is written at once.
const CHUNK_BYTES: usize = 1_000_000;

#[derive(Args)]
#[command(after_help = "\
The lines of a feature are folded if it is done, nothing has happened to it for so long, and no feature that is not done
waits for it. What `status`, `ready`, `claims` and `trace` show stays the same. `log` shows the lines that are left. A
command that names such a feature can't be decided without the stack. `reconstruct` brings all lines back.

Example:
  ringfence project compact --keep 30d")]
pub(crate) struct Compact {
    /// How many days of events stay in any case.
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
    let begin = rfc3339(Clock::system().now_ms().saturating_sub(*keep));
    let Folded { lines, features } = compact(&of_stack(folder)?, &begin)?;
    println!("{lines} events of {} features folded", features.len());
    Ok(ExitCode::SUCCESS)
}

/// What was folded.
#[derive(Debug, Default, PartialEq)]
struct Folded {
    lines: usize,
    features: BTreeSet<FeatureId>,
}

/// Folds what was recorded before a time of RFC 3339.
///
/// # Errors
/// A line is damaged, or the file can't be written. The old file stays then.
fn compact(folder: &Writing<'_>, begin: &str) -> Result<Folded> {
    let old = folder.snapshot()?;
    let folded_before = old.as_ref().map(|old| old.last.checkpoint);
    let (mut last, mut standing, mut folded) = match old {
        Some(old) => (Some(old.last), old.standing, old.folded),
        None => (None, Standing::default(), BTreeSet::new()),
    };
    // How the project stood at that time, and the features to which something has happened since.
    let (mut then, mut recent) = (None, BTreeSet::new());
    folder.lines(|line| {
        let is_recent = line.timestamp.as_str() >= begin;
        recent.extend(line.feature.clone().filter(|_| is_recent));
        if Some(line.checkpoint) <= folded_before {
            return Ok(());
        }
        if is_recent && then.is_none() {
            then = Some(standing.clone());
        }
        if then.is_none() {
            last = Some(Place::of_line(&line));
        }
        Ok(standing.follow(&PARTS, &line.event()?)?)
    })?;
    let over = over(&standing, &recent);
    let Some(last) = last.filter(|_| !over.is_empty()) else { return Ok(Folded::default()) };
    folded.extend(over.iter().cloned());
    let (project, standing) = (folder.project().clone(), then.unwrap_or(standing));
    replace(folder, &Snapshot { folded, last, project, standing }, &over)
}

/// The features that are done, except the recent ones and those that a decision about another feature may ask for:
/// what it waits for, and what was born at its edges and is not folded back.
fn over(standing: &Standing, recent: &BTreeSet<FeatureId>) -> BTreeSet<FeatureId> {
    let features = standing.features.iter();
    let features = features.filter_map(|(id, row)| Some((id.parse::<FeatureRef>().ok()?, row)));
    let (done, open): (Vec<_>, Vec<_>) = features.partition(|(_, row)| is_done(row));
    let mut needed = BTreeSet::new();
    for (feature, row) in open {
        needed.extend(standing.reachable(&feature));
        for edge in row.edges.values() {
            let children = edge.children.iter().filter(|(_, child)| child.outcome.is_none());
            needed.extend(children.map(|(child, _)| child.clone()));
        }
    }
    let over = done.into_iter().map(|(feature, _)| feature).filter(|it| !needed.contains(it));
    over.map(|it| it.feature).filter(|it| !recent.contains(it)).collect()
}

/// Whether all edges of a feature are done, and nobody holds one that is none of its edges any more.
fn is_done(row: &FeatureRow) -> bool {
    row.edges_left() == Some(0) && row.edges.values().all(|edge| edge.holding.holder.is_none())
}

/// Writes the file anew, without the lines of some features for which the snapshot stands.
fn replace(
    folder: &Writing<'_>,
    snapshot: &Snapshot,
    over: &BTreeSet<FeatureId>,
) -> Result<Folded> {
    let (mut file, mut text) = (folder.anew()?, to_text(snapshot));
    let mut gone = Folded::default();
    folder.lines(|line| {
        let is_over = line.feature.as_ref().filter(|it| over.contains(it));
        match is_over.filter(|_| line.checkpoint <= snapshot.last.checkpoint) {
            Some(feature) => {
                gone.lines += 1;
                gone.features.insert(feature.clone());
            }
            None => text += &to_text(&line),
        }
        if text.len() > CHUNK_BYTES {
            file.append(&std::mem::take(&mut text))?;
        }
        Ok(())
    })?;
    file.append(&text)?;
    folder.put(file)?;
    Ok(gone)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use futures::executor::block_on;
    use projects::facts::*;
    use projects::{EdgeConverged, FeatureCreated};
    use ringfence::kit::{BEGIN_MS, id};
    use ringfence::{Append, Envelope, EventLog, MemoryLog, NewEvent, events};
    use ringfence_feed::{Checkpoint, Entry};
    use serde_json::{Value, json};

    use super::super::cache::Cache;
    use super::super::decide::Slices;
    use super::super::folder::{EVENTS, Reading};
    use super::super::line::Line;
    use super::super::outbox::Queued;
    use super::*;

    /// The end of an edge of another feature than the usual one.
    fn done(feature: &str, edge: &str) -> EdgeConverged {
        converged(&format!("{feature}/{edge}"), "c1")
    }

    /// AUTH and SEARCH are done, in turns, and PAY waits for AUTH. Then more work comes up in SEARCH.
    fn work() -> Vec<NewEvent> {
        let pay = FeatureCreated { dependencies: vec![id(AUTH)], ..created(PAY) };
        events![
            initialized(single()),
            created(AUTH),
            created(SEARCH),
            started("primary", "c1", 1),
            done(SEARCH, "requirements_design"),
            done(AUTH, "requirements_design"),
            pay,
            done(SEARCH, "design_code"),
            converged(DESIGN_CODE, "c1"),
            projects::EdgeReopened { edge: id(&format!("{SEARCH}/design_code")), ..reopened(2) },
            done(SEARCH, "design_code"),
        ]
    }

    /// The lines of events, a second apart.
    fn lines(events: Vec<NewEvent>, slices: &Slices) -> Vec<Line> {
        let log = MemoryLog::new(slices.catalog().clone());
        for (second, event) in (0..).zip(events) {
            let mut envelope = Envelope::default();
            envelope.context.now_ms = BEGIN_MS + second * 1_000;
            let (events, envelope) = (vec![event], &envelope);
            block_on(log.append(Append { events, seen: None, record: None, envelope })).unwrap();
        }
        let line =
            |(n, event)| Line::of(Entry { checkpoint: Checkpoint::try_from(n).unwrap(), event });
        (1..).zip(log.events()).filter_map(line).collect()
    }

    fn text(lines: &[Line]) -> String {
        lines.iter().map(to_text).collect()
    }

    fn standing(folder: &Reading<'_>) -> Standing {
        Standing::read(folder, &PARTS, drop).unwrap().0
    }

    /// What becomes of a claim by `primary` here, as text.
    fn claims(folder: &Reading<'_>, slices: &Slices, edge: &str, after: &[&str]) -> String {
        let data = json!({ "edge": edge, "agent": "primary", "claim": "c9", "after": after });
        let (slice, key) = ("claim-edge".to_owned(), "key".to_owned().try_into().unwrap());
        let queued = Queued { slice, data, key, effective_at: rfc3339(BEGIN_MS + 1_000_000) };
        let mut cache = block_on(Cache::read(folder, slices)).unwrap();
        match block_on(cache.try_out(slices, &queued)) {
            Ok(decided) => format!("{:?}", decided.unwrap().outcome),
            Err(error) => error.to_string(),
        }
    }

    /// Two compactions, at all times and with all numbers of lines that have come by then.
    #[test]
    fn whenever_a_copy_is_compacted_it_tells_the_same_and_decides_the_same() {
        let (root, slices) = (tempfile::tempdir().unwrap(), Slices::all());
        let folder = Folder::at(root.path(), &"shop".parse().unwrap());
        let folder = folder.write().unwrap();
        let lines = lines(work(), &slices);
        folder.replace(EVENTS, &text(&lines)).unwrap();
        let (all, free) = (standing(&folder), format!("{PAY}/requirements_design"));
        let granted = claims(&folder, &slices, &free, &[AUTH]);
        assert!(granted.starts_with("Accepted("), "{granted}");
        let mut most = 0;
        for pulled in 0..=lines.len() {
            for first in 0..=pulled {
                for second in 0..=lines.len() {
                    folder.replace(EVENTS, &text(&lines[..pulled])).unwrap();
                    let time = |n: usize| rfc3339(BEGIN_MS + n as u64 * 1_000);
                    compact(&folder, &time(first)).unwrap();
                    let end = folder.lines(|_| Ok(())).unwrap();
                    folder.behind(&end).unwrap().append(&text(&lines[pulled..])).unwrap();
                    compact(&folder, &time(second)).unwrap();
                    let context = format!("{pulled} lines, before {first}, then before {second}");
                    assert_eq!(standing(&folder), all, "{context}");
                    assert_eq!(claims(&folder, &slices, &free, &[AUTH]), granted, "{context}");
                    let end = folder.lines(|_| Ok(())).unwrap();
                    let last = Place::of_line(lines.last().unwrap());
                    assert_eq!(end.place(), Some(last), "{context}");
                    most = most
                        .max(lines.len() - folder.text(EVENTS).unwrap().unwrap().lines().count());
                }
            }
        }
        // All five lines of SEARCH, and the snapshot is one more. PAY waits for AUTH.
        assert_eq!(most, 4);
    }

    /// Clocks differ, so a line can have an older time than the lines before it.
    #[test]
    fn nothing_of_what_comes_behind_the_snapshot_is_lost() {
        let (root, slices) = (tempfile::tempdir().unwrap(), Slices::all());
        let folder = Folder::at(root.path(), &"shop".parse().unwrap());
        let folder = folder.write().unwrap();
        let mut lines = lines(work(), &slices);
        for n in [7, 9, 10] {
            lines[n].timestamp = lines[0].timestamp.clone();
        }
        folder.replace(EVENTS, &text(&lines)).unwrap();
        let all = standing(&folder);
        let folded = compact(&folder, &lines[5].timestamp).unwrap();
        assert_eq!(folded, Folded { lines: 2, features: [id("REQ-F-SEARCH-001")].into() });
        assert_eq!(standing(&folder), all);
    }

    #[test]
    fn what_needs_events_that_are_gone_is_not_decided() {
        let (root, slices) = (tempfile::tempdir().unwrap(), Slices::all());
        let folder = Folder::at(root.path(), &"shop".parse().unwrap());
        let folder = folder.write().unwrap();
        let lines = lines(work(), &slices);
        folder.replace(EVENTS, &text(&lines)).unwrap();
        let folded = compact(&folder, &rfc3339(BEGIN_MS + 3_600_000)).unwrap();
        assert_eq!(folded, Folded { lines: 5, features: [id("REQ-F-SEARCH-001")].into() });
        let refused = format!("the events of {SEARCH} are folded, so a command that names it");
        let edge = format!("{SEARCH}/design_code");
        assert!(claims(&folder, &slices, &edge, &[]).starts_with(&refused));
        let other = format!("{PAY}/requirements_design");
        assert!(claims(&folder, &slices, &other, &[AUTH, SEARCH]).starts_with(&refused));
        // It is worked on again. Its new events alone tell no decision enough.
        let reopened = Line { checkpoint: Checkpoint::try_from(12).unwrap(), ..lines[9].clone() };
        let end = folder.lines(|_| Ok(())).unwrap();
        folder.behind(&end).unwrap().append(&to_text(&reopened)).unwrap();
        assert!(claims(&folder, &slices, &edge, &[]).starts_with(&refused));
        assert!(claims(&folder, &slices, &other, &[AUTH]).starts_with("Accepted("));
        // Nothing of an open feature is folded, even if it was before.
        let later = rfc3339(BEGIN_MS + 7_200_000);
        assert_eq!(compact(&folder, &later).unwrap(), Folded::default());
        let is_search = |line: &Value| line["feature"] == "REQ-F-SEARCH-001";
        let text = fs::read_to_string(folder.path(EVENTS)).unwrap();
        let left = text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap());
        assert_eq!(left.filter(is_search).count(), 1);
    }
}
