//! Finds the flow of an event in the index, and shows it on one time axis.
//!
//! The index has no causes, so bodies must be read. First come the references around the event, which are cheap. Then
//! the causes are read one by one, because each event names its own. Of the other events, those nearest to the event
//! are read, if the stack can write their types in such a flow.

use std::collections::{BTreeSet, HashMap};

use maud::{Markup, html};
use ringfence_cli::flow::{Flow, FlowCommand, FlowRow};
use ringfence_cli::readable;
use ringfence_cli::shown::cut;
use ringfence_core::{rfc3339, visible};
use ringfence_feed::{Checkpoint, Entry, FeedError, Index, Reference};
use ringfence_stack::Stack;
use ringfence_template::map::{Edge, EdgeKind, Map};

use crate::axis::{Axis, WIDTH, duration};
use crate::events::{event_link, event_url, slice_chip};
use crate::followed::{After, Followed};
use crate::frame::{Kind, Problem, given, url};

/// The parameter of a page that searches for the flow as far as a page may.
pub(crate) const FURTHER: &str = "further";
/// The most entries before and after the event whose bodies a page may read.
const FURTHER_MAX: usize = 10_000;
/// So many bodies are read at once.
const BODIES_MAX: usize = 500;
/// The most characters of a command's id. A UUID fits.
const ID_CHARS_MAX: usize = 36;
/// Deeper lines are not indented further.
const LEVELS_MAX: usize = 8;
/// The most commands that are shown.
const COMMANDS_MAX: usize = 200;

/// How far a page searches for the flow of an event.
pub(crate) struct Reach {
    /// How many entries of the index before and after the event.
    around: usize,
    /// How many blocks of bodies, besides the event's own; half a read unit each.
    blocks: u64,
    /// Whether events of all types are read, also if no list says that they can be in the flow.
    is_far: bool,
}

impl Reach {
    /// With this reach a page costs about 15 read units at most.
    const NEAR: Self = Self { around: 200, blocks: 16, is_far: false };
    const FAR: Self = Self { around: FURTHER_MAX, blocks: u64::MAX, is_far: true };

    /// The parameter `further`.
    pub(crate) fn of(parameters: &[(String, String)]) -> Result<Self, Problem> {
        match given(parameters, FURTHER) {
            None => Ok(Self::NEAR),
            Some("true") => Ok(Self::FAR),
            Some(_) => Err(Problem::bad(format!("{FURTHER}: write true, or leave it out."))),
        }
    }
}

/// An event, and its flow as far as it was found.
pub(crate) struct Found {
    pub(crate) entry: Entry,
    pub(crate) flow: Flow,
    pub(crate) is_far: bool,
    /// Whether there are events that were not looked at.
    pub(crate) has_more: bool,
}

/// The event at a checkpoint, with its flow; `None` if the index has no such entry.
pub(crate) async fn find(
    index: &Index,
    stack: &Stack,
    at: Checkpoint,
    reach: &Reach,
) -> Result<Option<Found>, FeedError> {
    let end = index.end().await?;
    if at > end {
        return Ok(None);
    }
    let after = i64::try_from(reach.around).unwrap_or(i64::MAX);
    let after = Checkpoint::try_from(i64::from(at).saturating_add(after));
    let from = after.unwrap_or(end).min(end);
    let references = index.references(from, 2 * reach.around + 1, false).await?;
    let Some(here) = references.iter().position(|(it, _)| *it == at) else { return Ok(None) };
    let read = async |some: Vec<usize>| {
        let some = some.into_iter().map(|n| references[n].clone()).collect();
        let read = index.events(some).await?;
        Ok::<Vec<Entry>, FeedError>(read.into_iter().map(readable).collect())
    };
    let Some(entry) = read(vec![here]).await?.pop() else { return Ok(None) };
    let is_far = reach.is_far;
    let Some(correlation) = entry.event.metadata.text("correlationId") else {
        let flow = Flow::new(vec![entry.clone()]);
        return Ok(Some(Found { flow, entry, is_far, has_more: false }));
    };

    let ids = references.iter().map(|(_, it)| id(it)).zip(0..).collect::<HashMap<_, usize>>();
    let (mut entries, mut taken, mut blocks) =
        (vec![entry.clone()], BTreeSet::from([here]), reach.blocks);
    let mut take = |n: usize| {
        let size = references[n].1.blocks();
        let is_new = size <= blocks && taken.insert(n);
        blocks -= if is_new { size } else { 0 };
        is_new
    };
    let cause =
        |entries: &[Entry]| ids.get(entries.last()?.event.metadata.text("causationId")?).copied();
    while let Some(n) = cause(&entries) {
        if !take(n) {
            break;
        }
        entries.extend(read(vec![n]).await?);
    }
    let related = related(stack, entries.iter().map(|entry| entry.event.event_type.clone()));
    let known: BTreeSet<_> = entries.iter().map(|entry| entry.checkpoint).collect();
    let is_wanted = |(it, reference): &&(Checkpoint, Reference)| {
        !known.contains(it) && (is_far || related.contains(&reference.event_type))
    };
    let wanted = references.iter().enumerate().filter(|(_, it)| is_wanted(it));
    let mut wanted: Vec<_> = wanted.map(|(n, _)| n).collect();
    wanted.sort_by_key(|n| n.abs_diff(here));
    let count = wanted.len();
    let mut near: Vec<_> = wanted.into_iter().take_while(|n| take(*n)).collect();
    let oldest = references.last().and_then(|(it, _)| it.previous());
    let has_more =
        near.len() < count || from < end || oldest.is_some_and(|it| it > Checkpoint::START);
    near.sort_unstable();
    let is_of_flow = |it: &Entry| it.event.metadata.text("correlationId") == Some(correlation);
    for some in near.chunks(BODIES_MAX) {
        entries.extend(read(some.to_vec()).await?.into_iter().filter(is_of_flow));
    }
    entries.sort_by_key(|entry| entry.checkpoint);
    Ok(Some(Found { flow: Flow::new(entries), entry, is_far, has_more }))
}

fn id(reference: &Reference) -> String {
    format!("{}/{}", reference.partition.id, reference.slot)
}

/// The types that a flow with events of these types can have: those to which the map leads in any direction.
fn related(stack: &Stack, types: impl Iterator<Item = String>) -> BTreeSet<String> {
    let map = Map::of(stack);
    let mut found: BTreeSet<_> = types.collect();
    let mut ids: BTreeSet<_> =
        map.nodes.iter().filter(|node| found.contains(&node.name)).map(|node| &node.id).collect();
    let leads = [EdgeKind::Writes, EdgeKind::Reacts, EdgeKind::Sets];
    loop {
        let before = ids.len();
        for Edge { from, to, does } in &map.edges {
            if leads.contains(does) && (ids.contains(from) || ids.contains(to)) {
                ids.extend([from, to]);
            }
        }
        if ids.len() == before {
            break;
        }
    }
    found.extend(ids.into_iter().filter_map(|id| map.get(id)).map(|node| node.name.clone()));
    found
}

/// An entry of the axis.
struct Line {
    at_ms: u64,
    /// When the last event of a command was recorded, or the same time again.
    until_ms: u64,
    level: usize,
    kind: Kind,
    is_here: bool,
    what: Markup,
}

impl Found {
    /// The flow on its axis, with everything that followed.
    pub(crate) fn markup(&self, stack: &Stack, followed: &Followed) -> Markup {
        let lines = self.lines(stack, followed);
        let axis = Axis::of(lines.iter().flat_map(|line| [line.at_ms, line.until_ms]));
        let began = lines.first().map_or(0, |line| line.at_ms);
        let hidden = self.flow.commands.len().saturating_sub(COMMANDS_MAX);
        let here = event_url(self.entry.checkpoint);
        html! {
            p {
                "The first event was recorded at " (rfc3339(began)) ". Times are after it. "
                "Deadlines are as far as this flow shows."
            }
            ol.flow {
                @for (n, line) in lines.iter().enumerate() {
                    @let before = lines[n.saturating_sub(1)].at_ms;
                    @if axis.breaks(before, line.at_ms) {
                        li.gap { "Nothing for " (duration(line.at_ms - before)) }
                    }
                    (line.markup(&axis, began))
                }
            }
            @if hidden > 0 { p.note { "Of the flow " (hidden) " more commands are not shown." } }
            @if self.has_more && !self.is_far {
                p.note {
                    "There may be more: only the nearest events of the index were read. "
                    a href=(url(&here, [(FURTHER, "true")])) { "Look further" }
                    ", in up to " (FURTHER_MAX) " events before and after this one, for half a read unit each."
                }
            }
            @if self.has_more && self.is_far {
                p.note { (FURTHER_MAX) " events of the index before and after this one were looked at." }
            }
        }
    }

    fn lines(&self, stack: &Stack, followed: &Followed) -> Vec<Line> {
        let mut lines = Vec::new();
        for FlowRow { command, level, waited_ms, .. } in
            self.flow.rows().into_iter().take(COMMANDS_MAX)
        {
            let (at_ms, until_ms) = command.times();
            let kind = if command.by.is_some() { Kind::Reaction } else { Kind::Command };
            let what = of_command(stack, command, waited_ms);
            lines.push(Line { at_ms, until_ms, level, kind, is_here: false, what });
            for entry in &command.events {
                let is_here = entry.checkpoint == self.entry.checkpoint;
                let (event, at) = (&entry.event, entry.event.at);
                let what = html! {
                    a.chip.event href=(event_url(entry.checkpoint)) aria-current=[is_here.then_some("true")] {
                        span.hidden { "event " } (event.event_type)
                    }
                    " " code { (event.id()) }
                };
                let (kind, level) = (Kind::Event, level + 1);
                lines.push(Line { at_ms: at, until_ms: at, level, kind, is_here, what });
                for After { at_ms, kind, what } in followed.of(entry.checkpoint) {
                    let (at_ms, kind, what, level) = (*at_ms, *kind, what.clone(), level + 1);
                    lines.push(Line { at_ms, until_ms: at_ms, level, kind, is_here: false, what });
                }
            }
        }
        lines.sort_by_key(|line| line.at_ms);
        lines
    }
}

/// A command in words. `waited_ms` is the time after its cause, if that is in the flow.
fn of_command(stack: &Stack, command: &FlowCommand, waited_ms: Option<u64>) -> Markup {
    let cause = command.cause.as_ref().filter(|_| waited_ms.is_none());
    html! {
        @match &command.slice {
            Some(slice) => { (slice_chip(stack, &command.context, slice)) }
            None => { (command.context) ", slice not recorded" }
        }
        @if let Some(id) = &command.id { " " code title=(visible(id)) { (cut(id, ID_CHARS_MAX)) } }
        @if let Some(by) = &command.by { span.note { " by " (by) } }
        @if let Some(principal) = &command.principal { span.note { " for " (visible(principal)) } }
        @if let Some(ms) = waited_ms { span.note { " " (duration(ms)) " after its cause" } }
        @if let Some(cause) = cause {
            span.note { " caused by " (event_link(cause)) ", which is not shown here" }
        }
    }
}

impl Line {
    fn markup(&self, axis: &Axis, began: u64) -> Markup {
        let Self { at_ms, until_ms, level, kind, is_here, what } = self;
        let class = format!("{} level-{}", kind.name(), (*level).min(LEVELS_MAX));
        let (from, exact) = (axis.place(*at_ms).min(WIDTH - 8), rfc3339(*at_ms));
        let width = (axis.place(*until_ms).saturating_sub(from)).max(8);
        html! {
            li class=(class) data-here[*is_here] {
                time.after datetime=(exact) title=(exact) { "+" (duration(at_ms.saturating_sub(began))) }
                div { (what) }
                svg viewBox={ "0 0 " (WIDTH) " 10" } preserveAspectRatio="none" aria-hidden="true" {
                    line x2=(WIDTH) y1="5" y2="5" {}
                    rect x=(from) width=(width) height="10" {}
                }
            }
        }
    }
}
