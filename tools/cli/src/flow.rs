//! The commands and events of one flow, as a tree with times.
//!
//! All events of a flow have the same `correlationId`. The `causationId` of an event is the id of the event that led to
//! its command, or the id of the command itself if that came from outside. So the tree follows from the events alone,
//! also after years. The spans of the commands follow too, because their ids are computed from the commands' ids.

use std::collections::{BTreeMap, HashMap};

use ringfence_core::{Origin, Traceparent};
use ringfence_feed::Entry;
use ringfence_services::spans::TraceSpan;

/// The commands of a flow, by the order of their first events.
pub struct Flow {
    /// The commands.
    pub commands: Vec<FlowCommand>,
    /// The indexes of the commands that no event of the flow led to.
    pub roots: Vec<usize>,
    /// By an event's id, the indexes of the commands that it led to.
    pub caused: HashMap<String, Vec<usize>>,
}

/// A command, as its events describe it.
pub struct FlowCommand {
    /// Its id.
    pub id: Option<String>,
    /// The slice.
    pub slice: Option<String>,
    /// The slice or service that sent it, if no caller did.
    pub by: Option<String>,
    /// The caller of it, or of the first command of the flow.
    pub principal: Option<String>,
    /// The context of its events.
    pub context: String,
    /// The id of the event that led to it; `None` if it came from outside.
    pub cause: Option<String>,
    /// Its events, at least one.
    pub events: Vec<Entry>,
}

/// A command in its place in the tree.
pub struct FlowRow<'f> {
    /// The command.
    pub command: &'f FlowCommand,
    /// How many commands are above it.
    pub level: usize,
    /// How long it took from the event that led to it to its own first event, in milliseconds.
    pub waited_ms: Option<u64>,
    /// The index of the row of the command that led to it.
    parent: Option<usize>,
}

impl FlowCommand {
    /// The times of its first and its last event, in milliseconds since 1970.
    #[must_use]
    pub fn times(&self) -> (u64, u64) {
        times(self.events.iter())
    }

    /// Its name for people.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}", self.context, self.slice.as_deref().unwrap_or("slice not recorded"))
    }
}

fn times<'e>(events: impl Iterator<Item = &'e Entry> + Clone) -> (u64, u64) {
    let times = events.map(|entry| entry.event.at);
    (times.clone().min().unwrap_or_default(), times.max().unwrap_or_default())
}

impl Flow {
    /// The flow of entries in the order of the index.
    #[must_use]
    pub fn new(entries: Vec<Entry>) -> Self {
        let (mut commands, mut places) = (Vec::<FlowCommand>::new(), HashMap::new());
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
                    commands.push(FlowCommand { id, slice, by, principal, context, cause, events });
                }
            }
        }
        let (roots, caused) = tree(&commands);
        Self { commands, roots, caused }
    }

    /// The times of the first and the last event, in milliseconds since 1970.
    #[must_use]
    pub fn times(&self) -> (u64, u64) {
        times(self.commands.iter().flat_map(|command| &command.events))
    }

    /// The commands in reading order: each before the commands that its events led to.
    #[must_use]
    pub fn rows(&self) -> Vec<FlowRow<'_>> {
        let mut rows = Vec::<FlowRow<'_>>::with_capacity(self.commands.len());
        let mut next: Vec<_> = self.roots.iter().rev().map(|root| (*root, None)).collect();
        while let Some((place, cause)) = next.pop() {
            let command = &self.commands[place];
            let level = cause.map_or(0, |(parent, _): (usize, u64)| rows[parent].level + 1);
            let waited_ms = cause.map(|(_, at)| command.times().0.saturating_sub(at));
            let row = rows.len();
            rows.push(FlowRow { command, level, waited_ms, parent: cause.map(|(it, _)| it) });
            for entry in command.events.iter().rev() {
                let caused = self.caused[&entry.event.id()].iter().rev();
                next.extend(caused.map(|place| (*place, Some((row, entry.event.at)))));
            }
        }
        rows
    }

    /// The spans of the commands, in the order of [`Flow::rows`]. A span lasts from the first event of its command to
    /// the last one. Its parent is the span of the command that led to it, in the same trace.
    #[must_use]
    pub fn spans(&self) -> Vec<TraceSpan> {
        let mut spans = Vec::<TraceSpan>::with_capacity(self.commands.len());
        for FlowRow { command, waited_ms, parent, .. } in self.rows() {
            let first = &command.events[0].event;
            let parent = parent.map(|parent| spans[parent].ids);
            // An older version stored the caller's span, which is in the right trace.
            let trace = parent.or_else(|| Traceparent::of_event(&first.metadata));
            let id = command.id.clone().unwrap_or_else(|| first.id());
            let slice = command.slice.clone().unwrap_or_default();
            let (began_ms, ended_ms) = command.times();
            let event = |entry: &Entry| (entry.event.event_type.clone(), entry.event.at);
            let attributes = [
                ("ringfence.context", Some(command.context.clone().into())),
                ("ringfence.command_id", command.id.clone().map(Into::into)),
                ("ringfence.correlation_id", first.metadata.text("correlationId").map(Into::into)),
                ("ringfence.by", command.by.clone().map(Into::into)),
                ("ringfence.waited_ms", waited_ms.map(Into::into)),
            ];
            let attributes = attributes.into_iter().filter_map(|(key, value)| Some((key, value?)));
            spans.push(TraceSpan {
                ids: Traceparent::of_command(&id, &slice, trace),
                parent,
                name: command.name(),
                service: slice,
                is_reaction: command.by.is_some(),
                began_ms,
                ended_ms,
                attributes: attributes.collect::<BTreeMap<_, _>>(),
                links: Vec::new(),
                events: command.events.iter().map(event).collect(),
                failure: None,
            });
        }
        spans
    }
}

/// The commands that begin a tree, and the commands that each event led to. Metadata can claim anything, even that
/// events led to each other in a circle. Such a circle begins with its first command.
fn tree(commands: &[FlowCommand]) -> (Vec<usize>, HashMap<String, Vec<usize>>) {
    let mut caused = HashMap::<_, Vec<_>>::new();
    let events = commands.iter().flat_map(|command| &command.events);
    caused.extend(events.map(|entry| (entry.event.id(), Vec::new())));
    let (mut begin, mut rest) = (Vec::new(), Vec::new());
    for (place, FlowCommand { cause, .. }) in commands.iter().enumerate() {
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

#[cfg(test)]
mod tests {
    use ringfence_core::{BoundaryId, Metadata, SequencedEvent};
    use ringfence_feed::Checkpoint;

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
            at: 100 * slot,
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

    /// The indexes of the commands that begin trees, and by slot those that each event led to.
    fn shape(entries: Vec<Entry>) -> (Vec<usize>, Vec<(u64, Vec<usize>)>) {
        let slots: Vec<_> = entries.iter().map(|entry| entry.event.slot).collect();
        let mut flow = Flow::new(entries);
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

    /// An event of a flow that began before commands had their own spans.
    fn of_flow(slot: u64, slice: &str, command: &str, cause: &str) -> Entry {
        let mut entry = entry(slot, command, cause);
        let caller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        for (key, value) in [("slice", slice), ("correlationId", "c-1"), ("traceparent", caller)] {
            entry.event.metadata.insert(key, value).expect("not reserved");
        }
        entry
    }

    #[test]
    fn the_spans_of_a_flow_are_one_tree_whose_ids_follow_from_the_commands() {
        let flow = Flow::new(vec![
            of_flow(1, "place-order", "first", "first"),
            of_flow(3, "record-demand", "second", "a:b/1"),
            of_flow(4, "record-demand", "third", "a:b/1"),
            of_flow(5, "reprice", "fourth", "a:b/4"),
            of_flow(6, "reprice", "fourth", "a:b/4"),
        ]);
        let rows: Vec<_> = flow.rows().iter().map(|row| (row.level, row.waited_ms)).collect();
        assert_eq!(rows, [(0, None), (1, Some(200)), (1, Some(300)), (2, Some(100))]);
        assert_eq!(flow.times(), (100, 600));
        let spans = flow.spans();
        let parents: Vec<_> = spans.iter().map(|span| span.parent).collect();
        let ids: Vec<_> = spans.iter().map(|span| span.ids).collect();
        assert_eq!(parents, [None, Some(ids[0]), Some(ids[0]), Some(ids[2])]);
        let own = Traceparent::of_command("third", "record-demand", Some(ids[0]));
        assert_eq!((ids[2], &*ids[2].trace_id()), (own, "4bf92f3577b34da6a3ce929d0e0e4736"));
        let [.., last] = &spans[..] else { panic!("{spans:?}") };
        assert_eq!((last.began_ms, last.ended_ms, last.events.len()), (500, 600, 2));
    }
}
