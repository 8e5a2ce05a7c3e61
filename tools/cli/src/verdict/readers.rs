//! Views, reactors and deadlines.

use std::collections::BTreeMap;

use anyhow::Result;
use futures::future::try_join_all;
use ringfence_reactors::ReactorTable;
use ringfence_stack::Stack;
use ringfence_views::{DueReader, DueStanding, ViewReader};

use super::finding::{StackFault, StackVerdict, Unread, VerdictSources, What, counted};
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

/// Readers that are late, and parked rows.
async fn of_views(
    stack: &Stack,
    unread: &mut Unread<'_>,
    views: &ViewReader,
    now_ms: u64,
    verdict: &mut StackVerdict,
) -> Result<()> {
    let names: Vec<_> = stack.rows().iter().map(|view| view.name).collect();
    let standing = views.reached(&names, unread.end).await?;
    for (name, standing) in names.into_iter().zip(standing) {
        let url = format!("/views/{name}");
        // A view that was never served is being built.
        let Some((registered, at)) = standing else { continue };
        let parked = registered.parked + registered.parked_events;
        if parked > 0 {
            let what = counted(parked, "row or event is", "rows and events are");
            verdict.findings.push(StackFault {
                what: What::View,
                name: name.to_owned(),
                count: parked,
                since_ms: None,
                text: format!("{what} parked in the view {name}"),
                url: url.clone(),
                step: "Mend the view, and retry",
            });
        }
        let late = unread.late(at, now_ms).await?;
        if let Some(since_ms) = late.filter(|_| registered.until.is_none()) {
            let count = unread.index.count(at, unread.end).await?;
            let what = counted(count, "event", "events");
            verdict.findings.push(StackFault {
                what: What::View,
                name: name.to_owned(),
                count,
                since_ms: Some(since_ms),
                text: format!("The view {name} is {what} behind"),
                url,
                step: "Look at the view",
            });
        }
    }
    verdict.counts.views = Some(stack.contexts.iter().map(|of| of.views.len() as u64).sum());
    Ok(())
}

/// Parked lanes, and readers that are late.
async fn of_reactors(
    stack: &Stack,
    unread: &mut Unread<'_>,
    table: &ReactorTable,
    now_ms: u64,
    verdict: &mut StackVerdict,
) -> Result<()> {
    let names = lanes::readers(stack);
    let standing = try_join_all(names.iter().map(|name| table.standing(name))).await?;
    let parked = try_join_all(names.iter().map(|name| table.parked(name))).await?;
    let (reactors, mut lanes_waiting) = (names.len() as u64, 0);
    for ((name, standing), lanes) in names.into_iter().zip(standing).zip(parked) {
        let (waiting, parked): (Vec<_>, Vec<_>) =
            lanes.iter().partition(|lane| lane.next_ms.is_some() || lane.asked.is_some());
        lanes_waiting += waiting.len() as u64;
        if let Some(first) = parked.iter().min_by_key(|lane| lane.at_ms) {
            let count = parked.len() as u64;
            let what = counted(count, "lane is", "lanes are");
            verdict.findings.push(StackFault {
                what: What::Lane,
                name: name.to_owned(),
                count,
                since_ms: Some(first.at_ms),
                text: format!("{what} parked in {name}: {}", first.cause),
                url: "/lanes".to_owned(),
                step: "Retry the lane, or skip the event",
            });
        }
        let Some(at) = standing.checkpoint else { continue };
        if let Some(since_ms) = unread.late(at, now_ms).await? {
            let count = unread.index.count(at, unread.end).await?;
            verdict.findings.push(StackFault {
                what: What::Reactor,
                name: name.to_owned(),
                count,
                since_ms: Some(since_ms),
                text: format!("{name} is {} behind", counted(count, "event", "events")),
                url: "/lanes".to_owned(),
                step: "Look at the lanes",
            });
        }
    }
    verdict.counts.reactors = Some(reactors);
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
