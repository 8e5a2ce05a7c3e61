//! The flow of an event, as a tree and with the times of its commands. The flow is searched in the index, among the
//! events around the event.

use futures::{StreamExt, TryStreamExt};
use maud::{Markup, html};
use ringfence_cli::flow::{Flow, FlowCommand, FlowRow};
use ringfence_cli::listed;
use ringfence_core::{SequencedEvent, rfc3339, visible};
use ringfence_feed::{Checkpoint, Entry, FeedError, Index, Until};
use ringfence_stack::{ContextInfo, SliceInfo, Stack};

use crate::events::{cut, event_url, time};
use crate::frame::{Problem, slice_url, url};

/// This many events before and after an event are read, if the URL does not set it.
const AROUND: usize = 500;
/// The most that a URL can set.
const AROUND_MAX: usize = 10_000;
/// The most characters of a command's id in the tree. A UUID fits.
const ID_CHARS_MAX: usize = 36;
/// The tree shows at most this many levels of commands.
const LEVELS_MAX: usize = 50;
/// The most commands whose times are shown.
const ROWS_MAX: usize = 200;
/// The width of the picture of times.
const WIDTH: u64 = 1_000;

/// The parameter `around`.
pub(crate) fn around(parameters: &[(String, String)]) -> Result<usize, Problem> {
    let Some((_, text)) = parameters.iter().find(|(name, _)| name == "around") else {
        return Ok(AROUND);
    };
    let wrong = || Problem::bad(format!("around: write a number from 1 to {AROUND_MAX}."));
    text.parse().ok().filter(|around| (1..=AROUND_MAX).contains(around)).ok_or_else(wrong)
}

/// The flow of an event, as far as it was found.
pub(crate) struct Around {
    flow: Flow,
    around: usize,
    /// Whether there are events before or after those that were read.
    has_more: bool,
}

impl Around {
    /// The flow of an entry, found among so many entries before and after it.
    pub(crate) async fn of(index: &Index, entry: &Entry, around: usize) -> Result<Self, FeedError> {
        let Some(flow) = entry.event.metadata.text("correlationId") else {
            let flow = Flow::new(vec![entry.clone()]);
            return Ok(Self { flow, around, has_more: false });
        };
        // The first of these is the entry itself.
        let entries = index.before(entry.checkpoint, around + 1).await?.into_iter().rev();
        let mut entries = entries.map(listed).collect::<Result<Vec<_>, _>>()?;
        let has_earlier = entries.len() > around;
        let later = index.read(entry.checkpoint, Until::Present).take(around);
        let later: Vec<_> = later.map(listed).try_collect().await?;
        let has_more = has_earlier || later.len() == around;
        entries.extend(later);
        entries.retain(|entry| entry.event.metadata.text("correlationId") == Some(flow));
        Ok(Self { flow: Flow::new(entries), around, has_more })
    }

    /// The tree and its times. The tree marks the event at `here`.
    pub(crate) fn markup(&self, stack: &Stack, here: Checkpoint) -> Markup {
        let tree = Tree { flow: &self.flow, stack, here };
        let around = AROUND_MAX.to_string();
        html! {
            ul.flow {
                @for root in &self.flow.roots { (tree.command(&self.flow.commands[*root], None, LEVELS_MAX)) }
            }
            @if self.flow.commands.len() > 1 { (times(&self.flow)) }
            @if self.has_more {
                p.note {
                    "Of the index, " (self.around) " events before and after this one were looked at. "
                    @if self.around < AROUND_MAX {
                        a href=(url(&event_url(here), [("around", &*around)])) { "Look further" }
                    }
                }
            }
        }
    }
}

struct Tree<'a> {
    flow: &'a Flow,
    stack: &'a Stack,
    here: Checkpoint,
}

impl Tree<'_> {
    fn command(
        &self,
        command: &FlowCommand,
        cause: Option<&SequencedEvent>,
        levels: usize,
    ) -> Markup {
        let elsewhere = command.cause.as_ref().filter(|_| cause.is_none());
        html! {
            li.command {
                span.kind { "Command" } " "
                strong {
                    @match &command.slice {
                        Some(slice) => { (link(self.stack, &command.context, slice)) }
                        None => { (command.context) ", slice not recorded" }
                    }
                }
                " "
                @if let Some(id) = &command.id { code title=(visible(id)) { (cut(id, ID_CHARS_MAX)) } }
                @if let Some(by) = &command.by { span.note { " by " (by) } }
                @if let Some(principal) = &command.principal { span.note { " for " (visible(principal)) } }
                @if let Some(cause) = elsewhere { span.note { " caused by " (cause) ", which is not shown above it" } }
                ul { @for entry in &command.events { (self.event(entry, levels)) } }
            }
        }
    }

    fn event(&self, entry: &Entry, levels: usize) -> Markup {
        let id = entry.event.id();
        let caused = &self.flow.caused[&id];
        let is_here = entry.checkpoint == self.here;
        html! {
            li.event {
                span.kind { "Event" } " "
                a href=(event_url(entry.checkpoint)) aria-current=[is_here.then_some("true")] {
                    (entry.event.event_type)
                }
                " " code { (id) } " " (time(&entry.event))
                @if !caused.is_empty() {
                    ul {
                        @match levels.checked_sub(1) {
                            None => { li { "and more" } }
                            Some(levels) => {
                                @for place in caused {
                                    (self.command(&self.flow.commands[*place], Some(&entry.event), levels))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The times of a flow's commands: a table with a picture in its last column.
fn times(flow: &Flow) -> Markup {
    let (began, ended) = flow.times();
    let rows = flow.rows();
    let bar = |command: &FlowCommand| {
        let (first, last) = command.times();
        let whole = (ended - began).max(1);
        let place = |at: u64| (at - began) * WIDTH / whole;
        html! {
            svg viewBox={ "0 0 " (WIDTH) " 10" } preserveAspectRatio="none" aria-hidden="true" {
                rect x=(place(first).min(WIDTH - 5)) width=((place(last) - place(first)).max(5)) height="10" {}
            }
        }
    };
    html! {
        h3 { "When" }
        p { "The first event was recorded at " (rfc3339(began)) ", the last one " (ended - began) " ms later." }
        div.wide tabindex="0" role="region" aria-label="Times" {
            table.figures.times {
                thead {
                    tr {
                        th scope="col" { "Command" }
                        th scope="col" { "After the first event, in ms" }
                        th scope="col" { "After its cause, in ms" }
                        th aria-hidden="true" {}
                    }
                }
                tbody {
                    @for FlowRow { command, level, waited_ms, .. } in rows.iter().take(ROWS_MAX) {
                        tr {
                            th scope="row" { span.level aria-hidden="true" { ("\u{2003}".repeat((*level).min(LEVELS_MAX))) } (command.name()) }
                            td.number { (command.times().0 - began) }
                            td.number { @if let Some(ms) = waited_ms { (ms) } }
                            td.bar aria-hidden="true" { (bar(command)) }
                        }
                    }
                }
            }
        }
        @if rows.len() > ROWS_MAX { p.note { "These are the first " (ROWS_MAX) " of " (rows.len()) " commands." } }
    }
}

/// The name of a slice, with a link to its page if this build has the slice.
pub(crate) fn link(stack: &Stack, context: &str, slice: &str) -> Markup {
    let is_it = |(of, info): (&ContextInfo, &SliceInfo)| of.name == context && info.name == slice;
    let name = format!("{context}/{slice}");
    match stack.slices().any(is_it) {
        true => html! { a href=(slice_url(&name)) { (name) } },
        false => html! { (name) },
    }
}
