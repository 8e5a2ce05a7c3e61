//! Views, reactors and deadlines.

use std::collections::BTreeMap;

use anyhow::Result;
use futures::future::try_join_all;
use ringfence_feed::{Checkpoint, Index};
use ringfence_reactors::ReactorTable;
use ringfence_stack::Stack;
use ringfence_views::{Definition, DueReader, DueStanding, ViewReader, ViewStanding};

use super::finding::{READER_LATE_MS, StackFault, StackVerdict, What, counted};
use super::sources::VerdictSources;
use crate::lanes;

/// A fault shows at most four names.
const NAMED_MAX: usize = 4;
const DUE_STEP: &str = "See the cause, mend the slice, then retry";
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

/// Readers of the index at one checkpoint: views, or a reactor.
struct Readers {
    what: What,
    names: Vec<String>,
    /// The words for them that begin a sentence.
    title: String,
    url: String,
    step: &'static str,
    at: Checkpoint,
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

    /// The fault of these readers, if they are late.
    async fn fault(&mut self, readers: Readers, now_ms: u64) -> Result<Option<StackFault>> {
        let Readers { what, names, title, url, step, at } = readers;
        let Some(since_ms) = self.late(at, now_ms).await? else { return Ok(None) };
        let count = self.index.count(at, self.end).await?;
        let text = format!("{title} {} behind", counted(count, "event", "events"));
        let since_ms = Some(since_ms);
        Ok(Some(StackFault { what, names, count, since_ms, text, cause: None, url, step }))
    }
}

/// Late views and rows of deadlines, and parked rows and events of both.
async fn of_views(
    stack: &Stack,
    unread: &mut Unread<'_>,
    views: &ViewReader,
    now_ms: u64,
    verdict: &mut StackVerdict,
) -> Result<()> {
    let rows = stack.rows();
    let names: Vec<_> = rows.iter().map(|view| view.name).collect();
    let standing = views.standing(&names, unread.end).await?;
    let mut together = BTreeMap::<_, Vec<_>>::new();
    // A view that was never run is being built.
    for (Definition { name, is_due, .. }, standing) in rows.iter().zip(standing) {
        let Some(ViewStanding { registered, served, .. }) = standing else { continue };
        let count = registered.parked + registered.parked_events;
        if count > 0 {
            let parked = counted(count, "row or event is", "rows and events are");
            let (what, of, step) = match is_due {
                true => (What::DeadlinesParked, "deadlines of", DUE_STEP),
                false => (What::Parked, "view", "See the cause, mend the view, then retry"),
            };
            verdict.findings.push(StackFault {
                what,
                names: vec![(*name).to_owned()],
                count,
                since_ms: None,
                text: format!("{parked} parked in the {of} {name}"),
                cause: None,
                url: format!("/views/{name}"),
                step,
            });
        }
        if registered.until.is_none() {
            together.entry((*is_due, served)).or_default().push((*name).to_owned());
        }
    }
    for ((is_due, at), names) in together {
        let (url, step) = match &names[..] {
            _ if is_due => ("/views".to_owned(), "Look at their rows"),
            [name] => (format!("/views/{name}"), "Look at the view"),
            _ => ("/views".to_owned(), "Look at the views"),
        };
        let what = if is_due { What::DeadlinesBehind } else { What::View };
        let views = Readers { what, title: titled(&names, is_due), names, url, step, at };
        verdict.findings.extend(unread.fault(views, now_ms).await?);
    }
    verdict.counts.views = Some(stack.contexts.iter().map(|of| of.views.len() as u64).sum());
    Ok(())
}

/// `The views a, b and c are`, or `The deadlines of a, b and c are`. Of many names the first three are said.
fn titled(names: &[String], is_due: bool) -> String {
    let of = if is_due { "deadlines of" } else { "views" };
    let (last, first) = match names {
        [name] if is_due => return format!("The {of} {name} are"),
        [name] => return format!("The view {name} is"),
        [first @ .., last] if names.len() <= NAMED_MAX => (last.clone(), first),
        _ => (format!("{} more", names.len() + 1 - NAMED_MAX), &names[..NAMED_MAX - 1]),
    };
    format!("The {of} {} and {last} are", first.join(", "))
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
    let mut lanes_waiting = 0;
    for ((name, standing), lanes) in names.iter().copied().zip(standing).zip(lanes) {
        let (waiting, parked): (Vec<_>, Vec<_>) =
            lanes.iter().partition(|lane| lane.next_ms.is_some() || lane.asked.is_some());
        lanes_waiting += waiting.len() as u64;
        let (url, names, count) = ("/lanes".to_owned(), vec![name.to_owned()], parked.len() as u64);
        if let Some(first) = parked.iter().min_by_key(|lane| lane.at_ms) {
            verdict.findings.push(StackFault {
                what: What::Lane,
                names: names.clone(),
                count,
                since_ms: Some(first.at_ms),
                text: format!("{} parked in {name}", counted(count, "lane is", "lanes are")),
                cause: Some(first.cause.clone()),
                url: url.clone(),
                step: "Retry the lane, or skip the event",
            });
        }
        let Some(at) = standing.checkpoint else { continue };
        let (title, step) = (format!("{name} is"), "Look at the lanes");
        let reactor = Readers { what: What::Reactor, names, title, url, step, at };
        verdict.findings.extend(unread.fault(reactor, now_ms).await?);
    }
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
    let (since_ms, count) = (standing.late_since(now_ms)?, standing.rows as u64);
    Some(StackFault {
        what: What::Deadline,
        names: vec![name.to_owned()],
        count,
        since_ms: Some(since_ms),
        text: match count {
            1 => format!("1 deadline of {name} is late"),
            // Some of them may only be due.
            count => {
                let more = if standing.is_more { " or more" } else { "" };
                format!("{count}{more} deadlines of {name} are due, and the first is late")
            }
        },
        cause: Some(standing.notes.first().map_or_else(
            || "fire-deadlines has not tried".to_owned(),
            |(_, note)| {
                format!("tried {}, {}", counted(note.tries.into(), "time", "times"), note.why)
            },
        )),
        url: "/deadlines".to_owned(),
        step: "Look at the deadlines",
    })
}

#[cfg(test)]
mod tests {
    use ringfence_views::{DUE_LATE_MS, DueNote};

    use super::*;

    #[test]
    fn of_many_views_some_are_named() {
        let said = |count| titled(&["a", "b", "c", "d", "e"].map(str::to_owned)[..count], false);
        assert_eq!(said(1), "The view a is");
        assert_eq!(said(2), "The views a and b are");
        assert_eq!(said(4), "The views a, b, c and d are");
        assert_eq!(said(5), "The views a, b, c and 2 more are");
        assert_eq!(titled(&["a".to_owned()], true), "The deadlines of a are");
    }

    #[test]
    fn deadlines_are_late_after_the_time_of_the_alarm_and_the_fault_says_why() {
        let (cause, why) = ("e/1".to_owned(), "no stock".to_owned());
        let note = DueNote { cause, tries: 7, next_ms: 0, why };
        let notes = vec![("a".to_owned(), note)];
        let standing = DueStanding { rows: 2, is_more: false, earliest_ms: Some(1_000), notes };
        let found = |now_ms| late("release", &standing, now_ms).map(|it| (it.count, it.line()));
        let text = "2 deadlines of release are due, and the first is late: tried 7 times, no stock"
            .to_owned();
        assert_eq!(found(1_000 + DUE_LATE_MS), None);
        assert_eq!(found(1_001 + DUE_LATE_MS), Some((2, text)));
        let many = DueStanding { rows: 100, is_more: true, ..standing.clone() };
        let found = late("release", &many, 1_001 + DUE_LATE_MS).map(|it| it.text);
        let text = "100 or more deadlines of release are due, and the first is late";
        assert_eq!(found.as_deref(), Some(text));
        let untried = DueStanding { notes: Vec::new(), rows: 1, ..standing };
        let found = late("release", &untried, 1_001 + DUE_LATE_MS).map(|it| it.line());
        let text = "1 deadline of release is late: fire-deadlines has not tried";
        assert_eq!(found.as_deref(), Some(text));
    }
}
