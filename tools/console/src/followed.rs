//! What followed an event outside of the log: rows, deadlines, and effects of reactors.
//!
//! Rows and deadlines follow from the events alone, so they are computed and cost nothing. The state of an effect is
//! read from the reactor's items.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use ringfence_cli::flow::Flow;
use ringfence_cli::lanes::next;
use ringfence_core::{BoundaryId, Current, rfc3339, visible};
use ringfence_feed::{Checkpoint, Entry};
use ringfence_reactors::{ParkedLane, ReactorError, ReactorTable};
use ringfence_stack::{ContextInfo, ReactorInfo, Stack};
use ringfence_views::Definition;
use serde_json::Value;

use crate::axis::duration;
use crate::frame::{Kind, chip, slice_url, url};

/// What followed each event of a flow, in words.
#[derive(Default)]
pub(crate) struct Followed(BTreeMap<Checkpoint, Vec<(Kind, Markup)>>);

/// An effect of an event: the reactor handles the event in this lane.
struct Effect<'a> {
    entry: &'a Entry,
    lane: BoundaryId,
}

/// The effects of a flow, by the names of their reactors.
#[derive(Default)]
pub(crate) struct Effects<'a>(BTreeMap<&'static str, Vec<Effect<'a>>>);

impl Followed {
    pub(crate) fn of(&self, event: Checkpoint) -> impl Iterator<Item = &(Kind, Markup)> {
        self.0.get(&event).into_iter().flatten()
    }

    fn add(&mut self, entry: &Entry, kind: Kind, what: Markup) {
        self.0.entry(entry.checkpoint).or_default().push((kind, what));
    }

    /// The rows and deadlines of a flow. An event that this build can't read has neither.
    pub(crate) fn computed(stack: &Stack, flow: &Flow) -> Self {
        let mut followed = Self::default();
        let mut entries: Vec<_> = flow.commands.iter().flat_map(|it| &it.events).collect();
        entries.sort_by_key(|entry| entry.checkpoint);
        for view in stack.views() {
            for entry in &entries {
                let Some(event) = read(stack, &view, entry) else { continue };
                for id in view.touch(&event).unwrap_or_default() {
                    followed.add(entry, Kind::View, row(&view, &id));
                }
            }
        }
        for context in &stack.contexts {
            for due in &context.dues {
                let mut rows = BTreeMap::new();
                for entry in &entries {
                    let Some(event) = read(stack, due, entry) else { continue };
                    followed.deadlines(context, due, &mut rows, entry, &event);
                }
            }
        }
        followed
    }

    /// The deadlines that an event sets and clears. `rows` are those of the flow's earlier events.
    fn deadlines(
        &mut self,
        context: &ContextInfo,
        due: &Definition,
        rows: &mut BTreeMap<String, Value>,
        entry: &Entry,
        event: &Current<'_>,
    ) {
        let ids: BTreeSet<_> = due.touch(event).unwrap_or_default();
        let time = |rows: &BTreeMap<String, Value>, id: &str| rows.get(id)?["due"].as_u64();
        let before: Vec<_> = ids.iter().map(|id| time(rows, id)).collect();
        if due.fold(rows, event).is_err() {
            return;
        }
        let name = format!("{}/{}", context.name, due.name);
        for (id, before) in ids.iter().zip(before) {
            let after = time(rows, id);
            let does = match (before, after) {
                // Also if the flow shows no deadline that it could clear.
                (before, after) if before == after => continue,
                (_, None) => "clears the deadline of ",
                (None, Some(_)) => "sets a deadline for ",
                (Some(_), Some(_)) => "moves the deadline of ",
            };
            let what = html! {
                (does) (chip(Kind::Reaction, &name, &slice_url(&name))) " " code { (visible(id)) }
                @if let Some(at) = after {
                    ", due at " (rfc3339(at)) ", " (duration(at.saturating_sub(entry.event.at))) " later"
                }
            };
            self.add(entry, Kind::Reaction, what);
        }
    }

    /// Adds the effects of a flow, with their states if these were read.
    pub(crate) fn add_effects(&mut self, effects: &Effects<'_>, states: Option<&States>) {
        for (reactor, effects) in &effects.0 {
            let state = states.and_then(|states| states.0.get(reactor));
            for effect in effects {
                let what = html! {
                    (chip(Kind::Reaction, reactor, "/lanes"))
                    @if let Some(state) = state { " " (state.of(effect)) }
                };
                self.add(effect.entry, Kind::Reaction, what);
            }
        }
    }
}

/// The event of an entry for a view or a due that reads it.
fn read<'e>(stack: &Stack, reader: &Definition, entry: &'e Entry) -> Option<Current<'e>> {
    reader.reads(&entry.event).then(|| stack.catalogs.current(&entry.event).ok()).flatten()
}

fn row(view: &Definition, id: &str) -> Markup {
    let page = url(&format!("/views/{}/row", view.name), [("id", id)]);
    html! { (chip(Kind::View, view.name, &page)) " " code { (visible(id)) } }
}

impl<'a> Effects<'a> {
    /// The effects of a flow. A reactor may find that an event has none.
    pub(crate) fn of(stack: &Stack, flow: &'a Flow) -> Self {
        let mut found = Self::default();
        for entry in flow.commands.iter().flat_map(|command| &command.events) {
            let event = &entry.event;
            let reads = |(context, it): &(&ContextInfo, &ReactorInfo)| {
                let is_of = event.partition.is_of_dcb_log() || context.name == event.context;
                is_of && it.reads.contains(&&*event.event_type)
            };
            for (_, reactor) in stack.reactors().filter(reads) {
                let effect = Effect { entry, lane: reactor.lane.of(event) };
                found.0.entry(reactor.name).or_default().push(effect);
            }
        }
        found
    }

    /// The read units for their states, if no reactor has more than 4 KB of parked lanes.
    pub(crate) fn units(&self) -> f64 {
        self.0.values().map(|effects| 2.0 + 0.5 * effects.len() as f64).sum()
    }
}

/// How far reactors are.
pub(crate) struct States(BTreeMap<&'static str, State>);

struct State {
    checkpoint: Option<Checkpoint>,
    lanes: Vec<ParkedLane>,
    skipped: BTreeMap<Checkpoint, String>,
}

impl States {
    pub(crate) async fn read(
        table: &ReactorTable,
        effects: &Effects<'_>,
    ) -> Result<Self, ReactorError> {
        let mut states = BTreeMap::new();
        for (reactor, effects) in &effects.0 {
            let checkpoint = table.standing(reactor).await?.checkpoint;
            let lanes = table.parked(reactor).await?;
            let places: Vec<_> = effects.iter().map(|effect| effect.entry.checkpoint).collect();
            let skipped = table.skipped(reactor, &places).await?;
            states.insert(*reactor, State { checkpoint, lanes, skipped });
        }
        Ok(Self(states))
    }
}

impl State {
    /// The state of an effect, for people.
    fn of(&self, Effect { entry, lane }: &Effect<'_>) -> Markup {
        let place = entry.checkpoint;
        let parked = self.lanes.iter().find(|it| it.lane == *lane);
        let id = entry.event.id();
        html! {
            @match (self.skipped.get(&place), parked) {
                (Some(why), _) => { "was skipped by a person: " (visible(why)) }
                (None, Some(it)) if it.event == id => {
                    strong.bad { "failed" } ": " (visible(&it.cause)) "; " (next(it))
                }
                (None, Some(it)) if it.from < place => { "waits in its lane behind " (it.event) }
                _ if self.checkpoint.is_some_and(|done| done >= place) => { "is done with it" }
                _ => { "has not handled it yet" }
            }
        }
    }
}
