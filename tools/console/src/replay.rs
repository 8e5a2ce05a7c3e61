//! A flow on the map, step by step: each step is a command with its events.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use ringfence_cli::flow::{Flow, FlowCommand};
use ringfence_cli::listed;
use ringfence_core::visible;
use ringfence_feed::{Checkpoint, Index};
use ringfence_template::map::{Does, Map, Note};

use crate::events::event_url;
use crate::frame::{Cost, Kind, Problem, chip, given, url};
use crate::site::Site;

/// With this many events of the index the page costs less than 20 read units.
const NEAR: usize = 36;
/// The most events that the link to look further reads.
const FAR: usize = 10_000;

type Parameters = [(String, String)];

/// A flow, and the present step.
pub(crate) struct Replay {
    correlation: String,
    /// The parameters of the page, without the step.
    asked: Vec<(String, String)>,
    commands: Vec<FlowCommand>,
    step: usize,
    looked: usize,
    index: Index,
}

impl Replay {
    /// The flow with the parameter `correlation`, among the newest events, or around the parameter `event`. `None` if
    /// neither is there.
    pub(crate) async fn of(site: &Site, parameters: &Parameters) -> Result<Option<Self>, Problem> {
        let event = match given(parameters, "event") {
            None => None,
            Some(text) => {
                let wrong = || Problem::bad("event: write the checkpoint of an event, a number.");
                let number: i64 = text.parse().map_err(|_| wrong())?;
                Some(Checkpoint::try_from(number).map_err(|_| wrong())?)
            }
        };
        let correlation = given(parameters, "correlation");
        if event.is_none() && correlation.is_none() {
            return Ok(None);
        }
        let step = given(parameters, "step").map_or(Ok(1), str::parse);
        let step: usize = step.map_err(|_| Problem::bad("step: write a number from 1."))?;
        let looked = match given(parameters, "further") {
            None => NEAR,
            Some("true") => FAR,
            Some(_) => return Err(Problem::bad("further: write true, or leave it out.")),
        };
        let index = site.index();
        let end = index.end().await?;
        let half = i64::try_from(looked / 2).unwrap_or_default();
        let from = event.and_then(|at| Checkpoint::try_from(i64::from(at) + half).ok());
        let from = from.map_or(end, |from| from.min(end));
        let entries = index.before(from, looked).await?;
        let entries = entries.into_iter().rev().map(listed).collect::<Result<Vec<_>, _>>()?;
        let correlation_of_event = || {
            let entry = entries.iter().find(|entry| Some(entry.checkpoint) == event)?;
            entry.event.metadata.text("correlationId")
        };
        let correlation = correlation.or_else(correlation_of_event);
        let Some(correlation) = correlation.map(str::to_owned) else {
            return Err(Problem::nothing("The index has no such event, or it belongs to no flow."));
        };
        let of_flow = entries
            .into_iter()
            .filter(|entry| entry.event.metadata.text("correlationId") == Some(&*correlation));
        let mut commands = Flow::new(of_flow.collect()).commands;
        commands.sort_by_key(|command| command.times().0);
        let has = |name: &&str| given(parameters, name).is_some();
        let names = ["correlation", "event", "further"].into_iter().filter(has);
        let asked = names
            .map(|name| (name.to_owned(), given(parameters, name).unwrap_or_default().to_owned()));
        let asked = asked.collect();
        let step = step.clamp(1, commands.len().max(1));
        Ok(Some(Self { correlation, asked, commands, step, looked, index }))
    }

    pub(crate) fn cost(&self) -> Cost {
        Some(self.index.usage()).into()
    }

    fn ids_of(command: &FlowCommand) -> impl Iterator<Item = String> {
        let slice = command.slice.iter().map(|slice| format!("{}/{slice}", command.context));
        let event = |entry: &ringfence_feed::Entry| {
            format!("{}/{}", entry.event.context, entry.event.event_type)
        };
        slice.chain(command.events.iter().map(event))
    }

    /// The ids of the nodes of the flow, with the views that show its events.
    pub(crate) fn ids(&self, map: &Map) -> BTreeSet<String> {
        let mut ids: BTreeSet<_> = self.commands.iter().flat_map(Self::ids_of).collect();
        let shows = map.edges.iter().filter(|edge| edge.does == Does::Shows);
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
        let step = step.to_string();
        let asked = self.asked.iter().map(|(name, value)| (&**name, &**value));
        url("/map", asked.chain([("step", &*step)]))
    }

    /// Links to the steps. They work without the script, which adds a button to play them.
    pub(crate) fn controls(&self) -> Markup {
        let count = self.commands.len();
        html! {
            p { "The flow with the correlation id " code { (visible(&self.correlation)) } "." }
            @if count == 0 {
                p role="alert" { "None of the " (self.looked) " events that were looked at belongs to it." }
            } @else {
                nav.pages aria-label="Steps" data-replay="" {
                    @if self.step > 1 { a href=(self.url(self.step - 1)) rel="prev" { "Previous step" } }
                    span { "Step " (self.step) " of " (count) }
                    @if self.step < count { a href=(self.url(self.step + 1)) rel="next" { "Next step" } }
                }
            }
            @if self.looked < FAR {
                p.note {
                    "Of the index, " (self.looked) " events were looked at. "
                    @let further = self.asked.iter().map(|(name, value)| (&**name, &**value));
                    a href=(url("/map", further.chain([("further", "true")]))) { "Look further" }
                    ", in up to " (FAR) " events, for up to half a read unit each."
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
