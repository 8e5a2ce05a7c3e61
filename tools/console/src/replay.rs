//! A flow on the map, step by step: each step is a command with its events.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use ringfence_cli::flow::FlowCommand;
use ringfence_feed::{Checkpoint, Entry, Index};
use ringfence_template::map::{EdgeKind, Map, Note};

use crate::events::event_url;
use crate::flow::{self, FURTHER, Found, Reach};
use crate::frame::{Cost, Kind, Problem, chip, given, url};
use crate::site::Site;

type Parameters = [(String, String)];

/// A flow, and the present step.
pub(crate) struct Replay {
    /// The event of which it is the flow.
    event: Checkpoint,
    has_more: bool,
    is_far: bool,
    commands: Vec<FlowCommand>,
    step: usize,
    index: Index,
}

impl Replay {
    /// The flow of the event with the checkpoint in the parameter `event`; `None` without this parameter.
    pub(crate) async fn of(site: &Site, parameters: &Parameters) -> Result<Option<Self>, Problem> {
        let Some(text) = given(parameters, "event") else { return Ok(None) };
        let wrong = || Problem::bad("event: write the checkpoint of an event, a number.");
        let number: i64 = text.parse().map_err(|_| wrong())?;
        let event = Checkpoint::try_from(number).map_err(|_| wrong())?;
        let step = given(parameters, "step").map_or(Ok(1), str::parse);
        let step: usize = step.map_err(|_| Problem::bad("step: write a number from 1."))?;
        let (index, reach) = (site.index(), Reach::of(parameters)?);
        let found = flow::find(&index, &site.lists.stack, event, &reach).await?;
        let nothing = || Problem::nothing(format!("The index has no event at {event}."));
        let Found { flow, has_more, is_far, .. } = found.ok_or_else(nothing)?;
        let mut commands = flow.commands;
        commands.sort_by_key(|command| command.times().0);
        let step = step.clamp(1, commands.len().max(1));
        Ok(Some(Self { event, has_more, is_far, commands, step, index }))
    }

    pub(crate) fn cost(&self) -> Cost {
        Some(self.index.usage()).into()
    }

    fn ids_of(command: &FlowCommand) -> impl Iterator<Item = String> {
        let slice = command.slice.iter().map(|slice| format!("{}/{slice}", command.context));
        let event = |entry: &Entry| format!("{}/{}", entry.event.context, entry.event.event_type);
        slice.chain(command.events.iter().map(event))
    }

    /// The ids of the nodes of the flow, with the views that show its events.
    pub(crate) fn ids(&self, map: &Map) -> BTreeSet<String> {
        let mut ids: BTreeSet<_> = self.commands.iter().flat_map(Self::ids_of).collect();
        let shows = map.edges.iter().filter(|edge| edge.does == EdgeKind::Shows);
        let views: Vec<_> =
            shows.filter(|edge| ids.contains(&edge.from)).map(|edge| edge.to.clone()).collect();
        ids.extend(views);
        ids
    }

    /// The marks of the present step, and of the steps before it.
    pub(crate) fn notes(&self) -> BTreeMap<String, Note> {
        let mut notes = BTreeMap::<_, Note>::new();
        for (place, command) in self.commands.iter().take(self.step).enumerate() {
            for id in Self::ids_of(command) {
                let note = notes.entry(id).or_default();
                note.is_now = place + 1 == self.step;
                note.was = !note.is_now;
            }
        }
        notes
    }

    fn url(&self, step: usize) -> String {
        let (event, step) = (self.event.to_string(), step.to_string());
        let further = if self.is_far { "true" } else { "" };
        url("/map", [("event", &*event), (FURTHER, further), ("step", &*step)])
    }

    /// Links to the steps. They work without the script, which adds a button to play them. Each step reads the flow
    /// again, so a flow that was searched far is not played.
    pub(crate) fn controls(&self) -> Markup {
        let (count, event) = (self.commands.len(), self.event.to_string());
        html! {
            nav.pages aria-label="Steps" data-replay[!self.is_far] {
                @if self.step > 1 { a href=(self.url(self.step - 1)) rel="prev" { "Previous step" } }
                span { "Step " (self.step) " of " (count) }
                @if self.step < count { a href=(self.url(self.step + 1)) rel="next" { "Next step" } }
                a href=(event_url(self.event)) { "The event" }
            }
            @if self.has_more && !self.is_far {
                p.note {
                    "There may be more: only the nearest events of the index were read. "
                    a href=(url("/map", [("event", &*event), (FURTHER, "true")])) { "Look further" }
                    ", for up to 10,000 read units each step."
                }
            }
        }
    }

    /// The steps as a list.
    pub(crate) fn steps(&self) -> Markup {
        let began = self.commands.first().map_or(0, |command| command.times().0);
        html! {
            ol.list {
                @for (place, command) in self.commands.iter().enumerate() {
                    li aria-current=[(place + 1 == self.step).then_some("step")] {
                        a href=(self.url(place + 1)) { "Step " (place + 1) } " "
                        (command.name()) " after " (command.times().0 - began) " ms: "
                        @for entry in &command.events {
                            (chip(Kind::Event, &entry.event.event_type, &event_url(entry.checkpoint))) " "
                        }
                    }
                }
            }
        }
    }
}
