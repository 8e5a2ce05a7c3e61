//! Views, reactors and deadlines.

use std::collections::BTreeMap;

use anyhow::Result;
use futures::future::try_join_all;
use ringfence_feed::{Checkpoint, Index};
use ringfence_reactors::ReactorTable;
use ringfence_stack::Stack;
use ringfence_views::{DueReader, DueStanding, ViewReader, ViewStanding};

use super::finding::{READER_LATE_MS, StackFault, StackVerdict, What, counted};
use super::sources::VerdictSources;
use crate::lanes;

const UNNAMED: &str =
    "views, reactors and deadlines, whose table is named with --view-table, VIEW_TABLE or --stack";

pub(super) async fn find(sources: &VerdictSources<'_>, now_ms: u64) -> StackVerdict {
    let Some((views, reactors, due)) = &sources.views else {
        return StackVerdict { unknown: vec![UNNAMED], ..StackVerdict::default() };
    };
    let (stack, index) = (sources.stack, &sources.index);
    let mut verdict = StackVerdict::default();
    match index.end().await {
        Err(error) => verdict.unreadable("index", "/events", &error.into()),
        Ok(end) => {
            let mut unread = Unread { index, end, known: BTreeMap::new() };
            if let Err(error) = of_views(stack, &mut unread, views, now_ms, &mut verdict).await {
                verdict.unreadable("views", "/views", &error);
            }
            let of_reactors = of_reactors(stack, &mut unread, reactors, now_ms, &mut verdict);
            if let Err(error) = of_reactors.await {
                verdict.unreadable("reactors", "/lanes", &error);
            }
        }
    }
    if let Err(error) = of_deadlines(stack, due, now_ms, &mut verdict).await {
        verdict.unreadable("deadlines", "/deadlines", &error);
    }
    verdict
}

/// A reader of the index: a view, or a reactor.
struct IndexReader<'s> {
    what: What,
    name: &'s str,
    /// The words for it that begin a sentence.
    title: String,
    url: String,
    step: &'static str,
    /// Its checkpoint, unless it has not begun or is being built.
    at: Option<Checkpoint>,
    /// What it has parked, if that needs a person.
    parked: Option<StackFault>,
}

/// When the first event after each checkpoint was recorded. Readers often share a checkpoint, so each is read once.
struct Unread<'i> {
    index: &'i Index,
    end: Checkpoint,
    known: BTreeMap<Checkpoint, Option<u64>>,
}

impl Unread<'_> {
    /// The time of the first event that a reader at this checkpoint has not read, if that is late.
    async fn late(&mut self, at: Checkpoint, now_ms: u64) -> Result<Option<u64>> {
        if at >= self.end {
            return Ok(None);
        }
        if !self.known.contains_key(&at) {
            let next = Checkpoint::try_from(i64::from(at) + 1)?;
            let first = self.index.last_before(next).await?;
            self.known.insert(at, first.map(|reference| reference.at));
        }
        let first = self.known.get(&at).copied().flatten();
        Ok(first.filter(|first| now_ms.saturating_sub(*first) > READER_LATE_MS))
    }

    /// The faults of these readers: what is parked, and that they are late.
    async fn faults(
        &mut self,
        readers: Vec<IndexReader<'_>>,
        now_ms: u64,
    ) -> Result<Vec<StackFault>> {
        let mut faults = Vec::new();
        for IndexReader { what, name, title, url, step, at, parked } in readers {
            faults.extend(parked);
            let Some(at) = at else { continue };
            let Some(since_ms) = self.late(at, now_ms).await? else { continue };
            let count = self.index.count(at, self.end).await?;
            let text = format!("{title} is {} behind", counted(count, "event", "events"));
            let (name, since_ms) = (name.to_owned(), Some(since_ms));
            faults.push(StackFault { what, name, count, since_ms, text, url, step });
        }
        Ok(faults)
    }
}

/// Late views, and parked rows and events.
async fn of_views(
    stack: &Stack,
    unread: &mut Unread<'_>,
    views: &ViewReader,
    now_ms: u64,
    verdict: &mut StackVerdict,
) -> Result<()> {
    let names: Vec<_> = stack.rows().iter().map(|view| view.name).collect();
    let standing = views.standing(&names, unread.end).await?;
    // A view that was never run is being built.
    let begun = names.iter().zip(standing).filter_map(|(name, it)| Some((*name, it?)));
    let reader = |(name, ViewStanding { registered, served, .. })| {
        let url = format!("/views/{name}");
        let count = registered.parked + registered.parked_events;
        let parked = (count > 0).then(|| {
            let what = counted(count, "row or event is", "rows and events are");
            StackFault {
                what: What::View,
                name: String::from(name),
                count,
                since_ms: None,
                text: format!("{what} parked in the view {name}"),
                url: url.clone(),
                step: "Mend the view, and retry",
            }
        });
        let (title, step) = (format!("The view {name}"), "Look at the view");
        let at = Some(served).filter(|_| registered.until.is_none());
        IndexReader { what: What::View, name, title, url, step, at, parked }
    };
    let faults = unread.faults(begun.map(reader).collect(), now_ms).await?;
    verdict.findings.extend(faults);
    verdict.counts.views = Some(stack.contexts.iter().map(|of| of.views.len() as u64).sum());
    Ok(())
}

/// Parked lanes, and late reactors.
async fn of_reactors(
    stack: &Stack,
    unread: &mut Unread<'_>,
    table: &ReactorTable,
    now_ms: u64,
    verdict: &mut StackVerdict,
) -> Result<()> {
    let names = lanes::readers(stack);
    let standing = try_join_all(names.iter().map(|name| table.standing(name))).await?;
    let lanes = try_join_all(names.iter().map(|name| table.parked(name))).await?;
    let (mut readers, mut lanes_waiting) = (Vec::new(), 0);
    for ((name, standing), lanes) in names.iter().copied().zip(standing).zip(lanes) {
        let (waiting, parked): (Vec<_>, Vec<_>) =
            lanes.iter().partition(|lane| lane.next_ms.is_some() || lane.asked.is_some());
        lanes_waiting += waiting.len() as u64;
        let (url, count) = ("/lanes".to_owned(), parked.len() as u64);
        let parked = parked.iter().min_by_key(|lane| lane.at_ms).map(|first| StackFault {
            what: What::Lane,
            name: name.to_owned(),
            count,
            since_ms: Some(first.at_ms),
            text: format!(
                "{} parked in {name}: {}",
                counted(count, "lane is", "lanes are"),
                first.cause
            ),
            url: url.clone(),
            step: "Retry the lane, or skip the event",
        });
        let (title, step, at) = (name.to_owned(), "Look at the lanes", standing.checkpoint);
        readers.push(IndexReader { what: What::Reactor, name, title, url, step, at, parked });
    }
    let faults = unread.faults(readers, now_ms).await?;
    verdict.findings.extend(faults);
    verdict.counts.reactors = Some(names.len() as u64);
    verdict.counts.lanes_waiting = Some(lanes_waiting);
    Ok(())
}

/// Deadlines that are late.
async fn of_deadlines(
    stack: &Stack,
    reader: &DueReader,
    now_ms: u64,
    verdict: &mut StackVerdict,
) -> Result<()> {
    let dues: Vec<_> = stack.contexts.iter().flat_map(|context| &context.dues).collect();
    let standing = try_join_all(dues.iter().map(|due| reader.standing(due, now_ms))).await?;
    let mut due_now = 0;
    for (due, standing) in dues.iter().zip(standing) {
        due_now += standing.rows as u64;
        verdict.findings.extend(late(due.name, &standing, now_ms));
    }
    verdict.counts.deadlines = Some(dues.len() as u64);
    verdict.counts.due = Some(due_now);
    Ok(())
}

fn late(name: &str, standing: &DueStanding, now_ms: u64) -> Option<StackFault> {
    let since_ms = standing.late_since(now_ms)?;
    let note = standing.notes.first();
    let why = note.map(|(_, note)| format!(": {}", note.why)).unwrap_or_default();
    Some(StackFault {
        what: What::Deadline,
        name: name.to_owned(),
        count: standing.rows as u64,
        since_ms: Some(since_ms),
        text: format!("Deadlines of {name} are late{why}"),
        url: "/deadlines".to_owned(),
        step: "Mend the cause, then run `ringfence due`",
    })
}

#[cfg(test)]
mod tests {
    use ringfence_views::{DUE_LATE_MS, DueNote};

    use super::*;

    #[test]
    fn deadlines_are_late_after_the_time_of_the_alarm_and_the_fault_says_why() {
        let (cause, why) = ("e/1".to_owned(), "no stock".to_owned());
        let note = DueNote { cause, tries: 7, next_ms: 0, why };
        let notes = vec![("a".to_owned(), note)];
        let standing = DueStanding { rows: 2, is_more: false, earliest_ms: Some(1_000), notes };
        let found = |now_ms| late("release", &standing, now_ms).map(|it| (it.count, it.text));
        let text = "Deadlines of release are late: no stock".to_owned();
        assert_eq!(found(1_000 + DUE_LATE_MS), None);
        assert_eq!(found(1_001 + DUE_LATE_MS), Some((2, text)));
    }
}
