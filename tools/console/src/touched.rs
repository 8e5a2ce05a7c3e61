//! The rows that a flow touched, and the deadlines that it set and cleared.
//!
//! They follow from the events alone. What the rows show now is read from the table of the views, because an event of
//! another flow can have cleared a deadline.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use ringfence_cli::flow::Flow;
use ringfence_core::{Current, rfc3339, visible};
use ringfence_feed::{Checkpoint, Entry};
use ringfence_stack::{ContextInfo, Stack};
use ringfence_views::{Content, DUE_LATE_MS, Definition, Shown, ViewError, ViewReader};
use serde_json::Value;

use crate::axis::duration;
use crate::events::event_link;
use crate::followed::Followed;
use crate::frame::{Kind, ago, chip, slice_url, url};

/// The rows and deadlines of a flow.
pub(crate) struct Touched<'a> {
    views: Vec<(Definition, Vec<(&'a Entry, String)>)>,
    dues: Vec<Deadlines<'a>>,
}

/// The deadlines of a slice, which is named `<context>/<slice>`.
struct Deadlines<'a> {
    name: String,
    due: Definition,
    /// The ids of the flow's events that it reads.
    events: BTreeSet<String>,
    changes: Vec<Change<'a>>,
}

/// An event sets, moves or clears the deadline of a row.
struct Change<'a> {
    entry: &'a Entry,
    id: String,
    /// In milliseconds since 1970.
    due_ms: Option<u64>,
}

/// The rows of a view or due, and the checkpoint that all of them show.
type Read = (Checkpoint, BTreeMap<String, Shown>);

/// The rows that were read, by their view or due; `None` if it is not served yet.
pub(crate) struct Rows(BTreeMap<(bool, &'static str), Option<Read>>);

impl<'a> Touched<'a> {
    /// An event that this build can't read touches nothing.
    pub(crate) fn of(stack: &Stack, flow: &'a Flow) -> Self {
        let mut entries: Vec<_> = flow.commands.iter().flat_map(|it| &it.events).collect();
        entries.sort_by_key(|entry| entry.checkpoint);
        let read = |definition: &Definition| {
            let reads = entries.iter().filter(|entry| definition.reads(&entry.event));
            let read =
                reads.map(|entry| Some((*entry, stack.catalogs.current(&entry.event).ok()?)));
            read.flatten().collect::<Vec<_>>()
        };
        let rows = |view: Definition| {
            let mut rows = Vec::new();
            for (entry, event) in read(&view) {
                let ids = view.touch(&event).unwrap_or_default();
                rows.extend(ids.into_iter().map(|id| (entry, id)));
            }
            (view, rows)
        };
        let deadlines = |context: &ContextInfo, due: &Definition| {
            let name = format!("{}/{}", context.name, due.name);
            let entries = read(due);
            let events = entries.iter().map(|(entry, _)| entry.event.id()).collect();
            Deadlines { name, due: *due, events, changes: changes(due, entries) }
        };
        let dues = stack.contexts.iter().flat_map(|it| it.dues.iter().map(move |due| (it, due)));
        Self {
            views: stack.views().into_iter().map(rows).filter(|(_, it)| !it.is_empty()).collect(),
            dues: dues
                .map(|(it, due)| deadlines(it, due))
                .filter(|it| !it.changes.is_empty())
                .collect(),
        }
    }

    /// The ids of the rows to read, by their view or due. A deadline that the flow cleared needs no look.
    fn wanted(&self) -> impl Iterator<Item = (&Definition, BTreeSet<&str>)> {
        let views = self.views.iter();
        let views = views.map(|(view, rows)| (view, rows.iter().map(|(_, id)| &**id).collect()));
        let dues = self.dues.iter().map(|it| (&it.due, it.open().into_keys().collect()));
        views.chain(dues).filter(|(_, ids): &(_, BTreeSet<_>)| !ids.is_empty())
    }

    /// The read units for the rows, if none has more than 4 KB.
    pub(crate) fn units(&self) -> f64 {
        self.wanted().map(|(_, ids)| 1.5 + 0.5 * ids.len() as f64).sum()
    }

    /// Adds them, with what the rows show at `now_ms` if they were read.
    pub(crate) fn add_to(&self, followed: &mut Followed, rows: Option<&Rows>, now_ms: u64) {
        let found = |it: &Definition| rows.and_then(|rows| rows.0.get(&(it.is_due, it.name)));
        for (view, touched) in &self.views {
            for (entry, id) in touched {
                let page = url(&format!("/views/{}/row", view.name), [("id", &**id)]);
                let what = html! {
                    (chip(Kind::View, view.name, &page)) " " code { (visible(id)) }
                    @if let Some(rows) = found(view) { " " (shows(entry, id, rows.as_ref())) }
                };
                followed.add(entry, entry.event.at, Kind::View, what);
            }
        }
        for deadlines in &self.dues {
            let rows = found(&deadlines.due).and_then(Option::as_ref);
            deadlines.add_to(followed, rows, now_ms);
        }
    }
}

/// What the events change in the rows of a due, in order.
fn changes<'a>(due: &Definition, entries: Vec<(&'a Entry, Current<'_>)>) -> Vec<Change<'a>> {
    let (mut rows, mut changes) = (BTreeMap::<String, Value>::new(), Vec::new());
    for (entry, event) in entries {
        let ids = due.touch(&event).unwrap_or_default();
        let times = |rows: &BTreeMap<String, Value>| {
            let time = |id| rows.get(id).and_then(|row| row["due"].as_u64());
            ids.iter().map(time).collect::<Vec<_>>()
        };
        let before = times(&rows);
        if due.fold(&mut rows, &event).is_err() {
            continue;
        }
        for (id, (before, due_ms)) in ids.iter().zip(before.into_iter().zip(times(&rows))) {
            // An event changes nothing if the flow shows no deadline that it could clear.
            if before != due_ms {
                changes.push(Change { entry, id: id.clone(), due_ms });
            }
        }
    }
    changes
}

/// What a row shows of an event that touches it.
fn shows(entry: &Entry, id: &str, rows: Option<&Read>) -> Markup {
    html! {
        @match rows.map(|(at, rows)| (at, rows.get(id))) {
            None => { "is not served yet" }
            Some((at, None)) if *at < entry.checkpoint => {
                strong { "does not show it yet" } ", as of checkpoint " (at)
            }
            Some((_, None)) => { "has no such row now" }
            Some((_, Some(Shown { content: Content::Parked(parked), .. }))) => {
                strong.bad { "is parked" } " by " (event_link(&parked.event)) ": " (visible(&parked.cause))
            }
            Some((_, Some(Shown { as_of, .. }))) => {
                @if *as_of >= entry.checkpoint { "shows it" } @else { strong { "does not show it yet" } }
                ", as of checkpoint " (as_of)
            }
        }
    }
}

impl Deadlines<'_> {
    /// The deadlines that the flow does not clear: by the id of the row, the event and the time.
    fn open(&self) -> BTreeMap<&str, (&Entry, u64)> {
        let mut open = BTreeMap::new();
        for Change { entry, id, due_ms } in &self.changes {
            match due_ms {
                Some(due_ms) => open.insert(&**id, (*entry, *due_ms)),
                None => open.remove(&**id),
            };
        }
        open
    }

    fn add_to(&self, followed: &mut Followed, rows: Option<&Read>, now_ms: u64) {
        let name = chip(Kind::Reaction, &self.name, &slice_url(&self.name));
        let mut add = |entry: &Entry, at_ms: u64, before: &str, id: &str, after: Markup| {
            let what = html! { (before) (name) " " code { (visible(id)) } (after) };
            followed.add(entry, at_ms, Kind::Reaction, what);
        };
        let mut times = BTreeMap::<&str, (&Entry, u64)>::new();
        let late = |due_ms: u64| now_ms.saturating_sub(due_ms) > DUE_LATE_MS;
        for Change { entry, id, due_ms } in &self.changes {
            let at_ms = entry.event.at;
            // An event may set another time than the flow shows, because its time can depend on what was there before.
            let stored = rows.and_then(|(_, rows)| match &rows.get(id)?.content {
                Content::Row(row) if row["cause"] == *entry.event.id() => Some(row),
                _ => None,
            });
            let due_ms = &stored.map_or(*due_ms, |row| row["due"].as_u64());
            let before = match due_ms {
                Some(due_ms) => times.insert(id, (entry, *due_ms)),
                None => times.remove(&**id),
            };
            let does = match (before, due_ms) {
                (_, None) => "clears the deadline of ",
                (None, Some(_)) => "sets a deadline for ",
                (Some(_), Some(_)) => "moves the deadline of ",
            };
            let due = due_ms.map(|it| (rfc3339(it), duration(it.saturating_sub(at_ms))));
            let after = html! { @if let Some((at, after)) = due { ", due at " (at) ", " (after) " later" } };
            add(entry, at_ms, does, id, after);
            if let Some((entry, due_ms)) = before.filter(|(_, due_ms)| *due_ms <= at_ms) {
                add(entry, due_ms, "", id, html! { " was due" });
            }
        }
        for (id, (entry, due_ms)) in times {
            let due = |due_ms: u64, is_late: bool| {
                let is = if due_ms > now_ms { " is due " } else { " was due " };
                html! { (is) (ago(due_ms)) @if is_late { ", and is " strong.bad { "late" } } }
            };
            // A row that is not there is gone only if the event is folded.
            let row = rows.map(|(at, rows)| (rows.get(id), *at >= entry.checkpoint));
            let row =
                row.filter(|(row, is_folded)| row.is_some() || *is_folded).map(|(row, _)| row);
            match row {
                Some(Some(Shown { content: Content::Row(row), as_of, .. }))
                    if *as_of >= entry.checkpoint =>
                {
                    let now_due = row["due"].as_u64();
                    if now_due == Some(due_ms) {
                        add(entry, due_ms, "", id, due(due_ms, late(due_ms)));
                        continue;
                    }
                    let does = if now_due.is_some() { " is moved by " } else { " is cleared by " };
                    let cause = row["cause"].as_str().unwrap_or_default();
                    let at_ms = row["causeMs"].as_u64().unwrap_or(entry.event.at);
                    let of = if self.events.contains(cause) { "" } else { ", of another flow" };
                    add(entry, at_ms, "", id, html! { (does) (event_link(cause)) (of) });
                    if let Some(now_due) = now_due {
                        add(entry, now_due, "", id, due(now_due, late(now_due)));
                    }
                }
                Some(Some(Shown { content: Content::Parked(parked), .. })) => {
                    let why = html! { " is parked: " (visible(&parked.cause)) };
                    add(entry, due_ms, "", id, why);
                }
                Some(None) => {
                    add(entry, entry.event.at, "", id, html! { " has no deadline any more" });
                }
                _ => add(entry, due_ms, "", id, due(due_ms, false)),
            }
        }
    }
}

impl Rows {
    pub(crate) async fn read(
        reader: &ViewReader,
        touched: &Touched<'_>,
    ) -> Result<Self, ViewError> {
        let mut rows = BTreeMap::new();
        for (definition, ids) in touched.wanted() {
            let found = reader.some(definition, &ids).await?;
            rows.insert((definition.is_due, definition.name), found);
        }
        Ok(Self(rows))
    }
}
