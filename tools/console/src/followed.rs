//! What followed an event outside of the log: rows, deadlines, and effects of reactors, each with its time and state.
//!
//! Which effects an event has follows from the event alone. Their state is read from the reactor's items.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use ringfence_cli::flow::Flow;
use ringfence_cli::lanes::next;
use ringfence_cli::shown::cut;
use ringfence_core::personal::{Form, has};
use ringfence_core::{BoundaryId, visible};
use ringfence_feed::{Checkpoint, Entry};
use ringfence_reactors::{ParkedLane, ReactorError, ReactorTable, Receipt};
use ringfence_stack::{ContextInfo, ReactorInfo, Stack};
use ringfence_template::written::effect_words;

use crate::events::event_link;
use crate::frame::{Kind, chip};

/// The most characters of an effect.
const EFFECT_CHARS_MAX: usize = 240;

/// Something that followed an event.
pub(crate) struct After {
    /// Its time on the axis, in milliseconds since 1970.
    pub(crate) at_ms: u64,
    pub(crate) kind: Kind,
    pub(crate) what: Markup,
}

/// What followed each event of a flow.
#[derive(Default)]
pub(crate) struct Followed(BTreeMap<Checkpoint, Vec<After>>);

/// The effects of an event. The reactor handles the event in this lane.
struct Effect<'a> {
    entry: &'a Entry,
    lane: BoundaryId,
    /// Empty if this build can't read the event.
    planned: Vec<String>,
}

/// The effects of a flow, by their reactors.
#[derive(Default)]
pub(crate) struct Effects<'a>(Vec<(&'a ReactorInfo, Vec<Effect<'a>>)>);

impl Followed {
    pub(crate) fn of(&self, event: Checkpoint) -> impl Iterator<Item = &After> {
        self.0.get(&event).into_iter().flatten()
    }

    pub(crate) fn add(&mut self, entry: &Entry, at_ms: u64, kind: Kind, what: Markup) {
        self.0.entry(entry.checkpoint).or_default().push(After { at_ms, kind, what });
    }
}

impl<'a> Effects<'a> {
    /// The effects of a flow.
    pub(crate) fn of(stack: &'a Stack, flow: &'a Flow) -> Self {
        let entries: Vec<_> = flow.commands.iter().flat_map(|it| &it.events).collect();
        let effect = |(context, reactor): (&ContextInfo, &ReactorInfo), entry: &'a Entry| {
            let event = &entry.event;
            let is_of = event.partition.is_of_dcb_log() || context.name == event.context;
            (is_of && reactor.reads.contains(&&*event.event_type)).then_some(())?;
            let current = stack.catalogs.current(event).ok();
            let planned = current.and_then(|event| (reactor.plan)(&event).ok());
            let has_effect = planned.as_ref().is_none_or(|planned| !planned.is_empty());
            has_effect.then(|| Effect {
                entry,
                lane: reactor.lane.of(event),
                planned: planned.unwrap_or_default(),
            })
        };
        let of_reactor = |it: (&'a ContextInfo, &'a ReactorInfo)| {
            let effects = entries.iter().filter_map(|entry| effect(it, entry));
            (it.1, effects.collect::<Vec<_>>())
        };
        let found = stack.reactors().map(of_reactor);
        Self(found.filter(|(_, effects)| !effects.is_empty()).collect())
    }

    /// The read units for their states, if no reactor has more than 4 KB of parked lanes.
    pub(crate) fn units(&self) -> f64 {
        self.0.iter().map(|(_, effects)| 2.0 + 1.5 * effects.len() as f64).sum()
    }

    /// Adds them, with their states if these were read.
    pub(crate) fn add_to(&self, followed: &mut Followed, states: Option<&States>) {
        for (reactor, effects) in &self.0 {
            let state = states.and_then(|states| states.0.get(reactor.name));
            for effect in effects {
                let planned = effect.planned.join("; ");
                let what = html! {
                    (chip(Kind::Reaction, reactor.name, "/lanes")) " "
                    @for word in effect_words(reactor) { (word) " " }
                    @if has(&effect.entry.event.data, Form::Sealed) && planned.is_empty() {
                        "for personal values, which are not opened here"
                    }
                    @else if planned.is_empty() { "for an event that this build can't read" }
                    @else { code { (cut(&planned, EFFECT_CHARS_MAX)) } }
                    @if let Some(state) = state { " " (state.of(effect)) }
                };
                followed.add(effect.entry, effect.entry.event.at, Kind::Reaction, what);
            }
        }
    }
}

/// How far reactors are.
pub(crate) struct States(BTreeMap<&'static str, State>);

struct State {
    checkpoint: Option<Checkpoint>,
    lanes: Vec<ParkedLane>,
    receipts: BTreeMap<BoundaryId, Receipt>,
    skipped: BTreeMap<Checkpoint, String>,
}

impl States {
    pub(crate) async fn read(
        table: &ReactorTable,
        effects: &Effects<'_>,
    ) -> Result<Self, ReactorError> {
        let mut states = BTreeMap::new();
        for (ReactorInfo { name, .. }, effects) in &effects.0 {
            let checkpoint = table.standing(name).await?.checkpoint;
            let lanes = table.parked(name).await?;
            let places: Vec<_> = effects.iter().map(|effect| effect.entry.checkpoint).collect();
            let skipped = table.skipped(name, &places).await?;
            let of: BTreeSet<_> = effects.iter().map(|effect| effect.lane.clone()).collect();
            let of: Vec<_> = of.into_iter().collect();
            let receipts = table.receipts(name, &of).await?;
            let receipts = of.into_iter().zip(receipts).collect();
            states.insert(*name, State { checkpoint, lanes, receipts, skipped });
        }
        Ok(Self(states))
    }
}

impl State {
    /// The state of the effects of an event, for people.
    fn of(&self, Effect { entry, lane, planned }: &Effect<'_>) -> Markup {
        let place = entry.checkpoint;
        let parked = self.lanes.iter().find(|it| it.lane == *lane);
        let receipt = &self.receipts[lane];
        let done = if receipt.began == Some(place) { receipt.n } else { 0 };
        let id = entry.event.id();
        html! {
            @match (self.skipped.get(&place), parked) {
                (Some(why), _) => { "was skipped by a person: " (visible(why)) }
                (None, Some(it)) if it.event == id => {
                    strong.bad { "failed" }
                    @if planned.len() > 1 { " after " (done) " of " (planned.len()) }
                    ": " (visible(&it.cause)) "; " (next(it))
                }
                (None, Some(it)) if it.from < place => { "waits in its lane behind " (event_link(&it.event)) }
                _ if receipt.done >= place => { "is done" }
                _ if self.checkpoint.is_some_and(|at| at >= place) => { "has no receipt: the reactor began later" }
                _ => { "waits: the reactor is not there yet" }
            }
        }
    }
}
