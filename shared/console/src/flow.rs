//! What caused what: the commands and events of one flow, as a tree.
//!
//! All events of a flow have the same `correlationId`. The `causationId` of an event is the id of the event that led to
//! its command, or the id of the command itself if that came from outside. So the flow is found by looking at events
//! of the index around one of its events.

use std::collections::HashMap;

use futures::{StreamExt, TryStreamExt};
use maud::{Markup, html};
use ringfence::{Origin, SequencedEvent, visible};
use ringfence_feed::{Checkpoint, Entry, FeedError, Index, Until};
use ringfence_stack::{ContextInfo, SliceInfo, Stack};

use crate::events::{cut, event_url, time};
use crate::frame::{Problem, slice_url, url};

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
    /// The commands that no event of the flow has led to, by their places.
    roots: Vec<usize>,
    /// The commands that an event has led to, by the event's id.
    caused: HashMap<String, Vec<usize>>,
    around: usize,
    /// Whether there are events before or after those that were looked at.
    has_more: bool,
}

/// A command, as its events tell of it.
struct Command {
    id: Option<String>,
    slice: Option<String>,
    /// What gave it, if no caller did.
    by: Option<String>,
    principal: Option<String>,
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
    /// The flow of an entry: those of its events that are among so many entries before and after it.
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
        let (mut commands, mut places) = (Vec::<Command>::new(), HashMap::new());
        for entry in entries {
            let text = |key| entry.event.metadata.text(key).map(str::to_owned);
            let (id, cause) = (text("commandId"), text("causationId"));
            let Origin { slice, by, principal } = entry.event.metadata.origin();
            let [slice, by, principal] = [slice, by, principal].map(|it| it.map(str::to_owned));
            let context = entry.event.context.clone();
            let next = commands.len();
            let known = (id.is_some()).then(|| (id.clone(), slice.clone(), context.clone()));
            match known.map_or(next, |known| *places.entry(known).or_insert(next)) {
                place if place < next => commands[place].events.push(entry),
                _ => {
                    let cause = cause.filter(|cause| Some(cause) != id.as_ref());
                    let events = vec![entry];
                    commands.push(Command { id, slice, by, principal, context, cause, events });
                }
            }
        }
        let (roots, caused) = tree(&commands);
        Self { commands, roots, caused, around, has_more }
    }

    /// The tree, in which the event at `here` is marked.
    pub(crate) fn markup(&self, stack: &Stack, here: Checkpoint) -> Markup {
        let tree = Tree { flow: self, stack, here };
        let around = AROUND_MAX.to_string();
        html! {
            ul.flow {
                @for root in &self.roots { (tree.command(&self.commands[*root], None, LEVELS_MAX)) }
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

/// The commands that begin a tree, and those that each event has led to. Metadata can say anything, even that events
/// led to each other in a circle. Such a circle begins with its first command.
fn tree(commands: &[Command]) -> (Vec<usize>, HashMap<String, Vec<usize>>) {
    let mut caused = HashMap::<_, Vec<_>>::new();
    let events = commands.iter().flat_map(|command| &command.events);
    caused.extend(events.map(|entry| (entry.event.id(), Vec::new())));
    let (mut begin, mut rest) = (Vec::new(), Vec::new());
    for (place, Command { cause, .. }) in commands.iter().enumerate() {
        match cause.as_ref().and_then(|cause| caused.get_mut(cause)) {
            Some(caused) => {
                caused.push(place);
                rest.push(place);
            }
            None => begin.push(place),
        }
    }
    let (mut roots, mut seen) = (Vec::new(), vec![false; commands.len()]);
    for root in begin.into_iter().chain(rest) {
        if seen[root] {
            continue;
        }
        if let Some(caused) = commands[root].cause.as_ref().and_then(|cause| caused.get_mut(cause))
        {
            caused.retain(|place| *place != root);
        }
        roots.push(root);
        let mut next = vec![root];
        while let Some(place) = next.pop() {
            seen[place] = true;
            let ids = commands[place].events.iter().map(|entry| entry.event.id());
            next.extend(ids.flat_map(|id| caused[&id].clone()));
        }
    }
    (roots, caused)
}

struct Tree<'a> {
    flow: &'a Flow,
    stack: &'a Stack,
    here: Checkpoint,
}

impl Tree<'_> {
    fn command(&self, command: &Command, cause: Option<&SequencedEvent>, levels: usize) -> Markup {
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

/// A slice, which leads to its page if this build has it.
pub(crate) fn link(stack: &Stack, context: &str, slice: &str) -> Markup {
    let is_it = |(of, info): (&ContextInfo, &SliceInfo)| of.name == context && info.name == slice;
    let name = format!("{context}/{slice}");
    match stack.slices().any(is_it) {
        true => html! { a href=(slice_url(&name)) { (name) } },
        false => html! { (name) },
    }
}

#[cfg(test)]
mod tests {
    use ringfence::{BoundaryId, Metadata};

    use super::*;

    /// An event with the checkpoint of its slot, of a command that `cause` led to.
    fn entry(slot: u64, command: &str, cause: &str) -> Entry {
        let mut metadata = Metadata::default();
        for (key, value) in [("commandId", command), ("causationId", cause)] {
            metadata.insert(key, value).expect("not reserved");
        }
        let checkpoint = i64::try_from(slot).expect("a small number");
        let event = SequencedEvent {
            partition: BoundaryId::stored("a:b"),
            slot,
            at: 0,
            rest: 0,
            event_type: "E".to_owned(),
            context: "c".to_owned(),
            tags: Vec::new(),
            version: 1,
            data: serde_json::Value::Null,
            metadata,
        };
        Entry { checkpoint: Checkpoint::try_from(checkpoint).expect("not negative"), event }
    }

    /// The places of the commands that begin trees, and of those that each event led to, by slots.
    fn shape(entries: Vec<Entry>) -> (Vec<usize>, Vec<(u64, Vec<usize>)>) {
        let slots: Vec<_> = entries.iter().map(|entry| entry.event.slot).collect();
        let mut flow = Flow::new(entries, 1, false);
        let caused = slots.into_iter().map(|slot| {
            (slot, flow.caused.remove(&format!("a:b/{slot}")).expect("every event is there"))
        });
        let caused = caused.filter(|(_, caused)| !caused.is_empty()).collect();
        (flow.roots, caused)
    }

    #[test]
    fn commands_are_below_the_events_that_led_to_them_whatever_the_order_of_the_index() {
        let entries = vec![
            entry(2, "second", "a:b/1"),
            entry(1, "first", "first"),
            entry(3, "second", "a:b/1"),
            entry(4, "third", "a:b/3"),
            entry(5, "lost", "a:b/9"),
        ];
        assert_eq!(shape(entries), (vec![1, 3], vec![(1, vec![0]), (3, vec![2])]));
    }

    #[test]
    fn a_circle_of_causes_begins_with_its_first_command() {
        let entries =
            vec![entry(1, "one", "a:b/2"), entry(2, "two", "a:b/1"), entry(3, "own", "a:b/3")];
        assert_eq!(shape(entries), (vec![0, 2], vec![(1, vec![1])]));
    }

    #[test]
    fn a_flow_of_twenty_thousand_commands_is_found_soon() {
        let chain = |n: u64| entry(n, &format!("command-{n}"), &format!("a:b/{}", n - 1));
        let (roots, caused) = shape((1..=20_000).map(chain).collect());
        assert_eq!((roots, caused.len()), (vec![0], 19_999));
    }
}
