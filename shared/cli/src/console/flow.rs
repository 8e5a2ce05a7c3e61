//! What caused what: the commands and events of one flow, as a tree.
//!
//! All events of a flow have the same `correlationId`. The `causationId` of an event is the id of the event that led to
//! its command, or the id of the command itself if that came from outside. So the flow is found by looking at events
//! of the index around one of its events.

use std::collections::HashSet;

use futures::{StreamExt, TryStreamExt};
use maud::{Markup, html};
use ringfence::SequencedEvent;
use ringfence_feed::{Checkpoint, Entry, FeedError, Index, Until};
use ringfence_stack::Stack;

use crate::console::event::writers;
use crate::console::events::{cut, event_url, time};
use crate::console::frame::{Problem, url};

/// How many events before and after an event are looked at, if the URL does not say.
const AROUND: usize = 500;
/// The most that a URL can ask for.
const AROUND_MAX: usize = 10_000;
/// The most characters of a command's id in the tree: a UUID fits.
const ID_CHARS_MAX: usize = 36;
/// Commands below each other that are shown.
const LEVELS_MAX: usize = 50;

/// The commands of a flow, by the order of their first events.
pub(crate) struct Flow {
    commands: Vec<Command>,
    around: usize,
    /// Whether there are events before or after those that were looked at.
    has_more: bool,
}

/// A command, as its events tell of it.
struct Command {
    id: Option<String>,
    slice: Option<String>,
    context: String,
    /// The id of the event that led to it; `None` if it came from outside.
    cause: Option<String>,
    events: Vec<Entry>,
}

/// The parameter `around`.
pub(crate) fn around(parameters: &[(String, String)]) -> Result<usize, Problem> {
    let Some((_, text)) = parameters.iter().find(|(name, _)| name == "around") else {
        return Ok(AROUND);
    };
    let wrong = || Problem::bad(format!("around: write a number from 1 to {AROUND_MAX}."));
    text.parse().ok().filter(|around| (1..=AROUND_MAX).contains(around)).ok_or_else(wrong)
}

impl Flow {
    /// The flow of an entry, as far as its events are among so many before and after it.
    pub(crate) async fn of(index: &Index, entry: &Entry, around: usize) -> Result<Self, FeedError> {
        let Some(flow) = entry.event.metadata.text("correlationId") else {
            return Ok(Self::new(vec![entry.clone()], around, false));
        };
        // The first of these is the entry itself.
        let mut entries = index.before(entry.checkpoint, around + 1).await?;
        let has_earlier = entries.len() > around;
        entries.reverse();
        let later = index.read(entry.checkpoint, Until::Present).take(around);
        let later: Vec<_> = later.try_collect().await?;
        let has_more = has_earlier || later.len() == around;
        entries.extend(later);
        entries.retain(|entry| entry.event.metadata.text("correlationId") == Some(flow));
        Ok(Self::new(entries, around, has_more))
    }

    /// Of entries in the order of the index.
    fn new(entries: Vec<Entry>, around: usize, has_more: bool) -> Self {
        let mut commands: Vec<Command> = Vec::new();
        for entry in entries {
            let text = |key| entry.event.metadata.text(key).map(str::to_owned);
            let (id, slice, cause) = (text("commandId"), text("slice"), text("causationId"));
            let context = entry.event.context.clone();
            let is_its = |command: &&mut Command| {
                id.is_some()
                    && (&command.id, &command.slice, &command.context) == (&id, &slice, &context)
            };
            match commands.iter_mut().find(is_its) {
                Some(command) => command.events.push(entry),
                None => {
                    let cause = cause.filter(|cause| Some(cause) != id.as_ref());
                    commands.push(Command { id, slice, context, cause, events: vec![entry] });
                }
            }
        }
        Self { commands, around, has_more }
    }

    /// The tree, in which the event at `here` is marked.
    pub(crate) fn markup(&self, stack: &Stack, here: Checkpoint) -> Markup {
        let ids: HashSet<_> = self.commands.iter().flat_map(Command::event_ids).collect();
        let is_root =
            |command: &&Command| command.cause.as_ref().is_none_or(|it| !ids.contains(it));
        let tree = Tree { flow: self, stack, here };
        let around = AROUND_MAX.to_string();
        html! {
            ul.flow {
                @for root in self.commands.iter().filter(is_root) { (tree.command(root, LEVELS_MAX)) }
            }
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

impl Command {
    fn event_ids(&self) -> impl Iterator<Item = String> {
        self.events.iter().map(|entry| entry.event.id())
    }

    /// The slice, or those that it can have been: they write all the types of its events, and react to its cause
    /// if any of them does.
    fn slices(&self, stack: &Stack, cause: Option<&SequencedEvent>) -> Vec<String> {
        if let Some(slice) = &self.slice {
            return vec![slice.clone()];
        }
        let writes = |name: &&'static str| {
            self.events.iter().all(|entry| writers(stack, &entry.event).any(|it| it == *name))
        };
        let first = self.events.iter().take(1);
        let found = first.flat_map(|entry| writers(stack, &entry.event)).filter(writes);
        let found: Vec<_> = found.collect();
        let reacts = |name: &&&str| {
            let slices = stack.slices().filter(|(_, slice)| slice.name == **name);
            let mut causes = slices.flat_map(|(_, slice)| slice.reacts_to);
            cause.is_some_and(|event| {
                causes.any(|it| it.context == event.context && it.event_type == event.event_type)
            })
        };
        let reacting: Vec<_> = found.iter().filter(reacts).collect();
        let found = if reacting.is_empty() { found.iter().collect() } else { reacting };
        found.into_iter().map(ToString::to_string).collect()
    }
}

struct Tree<'a> {
    flow: &'a Flow,
    stack: &'a Stack,
    here: Checkpoint,
}

impl Tree<'_> {
    fn command(&self, command: &Command, levels: usize) -> Markup {
        let all = self.flow.commands.iter().flat_map(|command| &command.events);
        let is_cause = |event: &&SequencedEvent| Some(event.id()) == command.cause;
        let cause = all.map(|entry| &entry.event).find(is_cause);
        let slices = command.slices(self.stack, cause);
        let slices =
            if slices.is_empty() { "unknown slice".to_owned() } else { slices.join(" or ") };
        let elsewhere = command.cause.as_ref().filter(|_| cause.is_none());
        html! {
            li.command {
                span.kind { "Command" } " " strong { (command.context) "/" (slices) } " "
                @if let Some(id) = &command.id { code title=(id) { (cut(id, ID_CHARS_MAX)) } }
                @if let Some(cause) = elsewhere { span.note { " caused by " (cause) ", which was not looked at" } }
                ul { @for entry in &command.events { (self.event(entry, levels)) } }
            }
        }
    }

    fn event(&self, entry: &Entry, levels: usize) -> Markup {
        let id = entry.event.id();
        let caused = self.flow.commands.iter();
        let caused: Vec<_> = caused.filter(|it| it.cause.as_ref() == Some(&id)).collect();
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
                            Some(levels) => { @for command in caused { (self.command(command, levels)) } }
                        }
                    }
                }
            }
        }
    }
}
