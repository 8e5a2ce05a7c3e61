//! A context whose decisions read, across partitions, events that they never write: visitors pass a gate unless it is
//! closed. In the examples a check of such a fence never decides alone. Each command stores a snapshot, whereas the
//! examples wait for a hundred events.

use std::collections::BTreeSet;

use ringfence_core::prelude::*;
use ringfence_core::{Event, id_type};
use serde::Serialize;

id_type!(GateId, "names a gate");
id_type!(HallId, "names the hall that a gate leads to");
id_type!(VisitorId, "names a visitor");

/// A gate is closed, for good.
#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct GateClosed {
    #[tag(partition)]
    pub(crate) gate_id: GateId,
    #[tag(cross_partition)]
    pub(crate) hall_id: HallId,
}

/// A visitor is in a hall.
#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct VisitorPassed {
    #[tag(partition)]
    visitor_id: VisitorId,
    #[tag(skip)]
    hall_id: HallId,
}

pub(crate) fn catalog() -> Result<Catalog, CatalogError> {
    Catalog::new("gates", [GateClosed::SCHEMA, VisitorPassed::SCHEMA])
}

/// Closes a gate.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct CloseGate {
    #[tag(partition)]
    pub(crate) gate_id: GateId,
    #[tag(cross_partition)]
    pub(crate) hall_id: HallId,
}

/// Closes several gates of a hall in one transaction.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct CloseHall {
    #[tag(cross_partition)]
    pub(crate) hall_id: HallId,
    pub(crate) gate_ids: Vec<GateId>,
}

/// Lets a visitor into a hall, through any gate.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct PassGate {
    #[tag(partition)]
    pub(crate) visitor_id: VisitorId,
    #[tag(cross_partition)]
    pub(crate) hall_id: HallId,
}

#[derive(Reads)]
pub(crate) enum Closed {
    GateClosed,
}

#[derive(Reads)]
pub(crate) enum ClosedGates {
    GateClosed { gate_id: GateId },
}

#[derive(Reads)]
pub(crate) enum ClosedOrPassed {
    GateClosed,
    VisitorPassed,
}

#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code")]
pub(crate) enum Rejection {
    #[error("no gate of the hall is open")]
    HallClosed,
}

/// Whether the gate is closed.
#[ringfence::value]
#[derive(Default)]
pub(crate) struct Gate {
    closed: bool,
}

/// The gates that are closed.
#[ringfence::value]
#[derive(Default)]
pub(crate) struct Hall(BTreeSet<GateId>);

/// Whether the hall is closed, and whether the visitor has passed.
#[ringfence::value]
#[derive(Default)]
pub(crate) struct Passing {
    closed: bool,
    passed: bool,
}

pub(crate) struct Gates;

impl Context for Gates {
    const NAME: &'static str = "gates";
    type Log = ringfence_dcb_log::Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        catalog()
    }
}

impl State for Gate {
    const SNAPSHOTS: Option<Snapshots<Self>> = Some(Snapshots::every(0));
    type Reads = Closed;

    fn evolve(self, _: Closed) -> Self {
        Self { closed: true }
    }
}

impl Slice for CloseGate {
    const NAME: &'static str = "close-gate";
    type Context = Gates;
    type State = Gate;
    type Writes = GateClosed;
    type Rejection = Never;

    fn decide(&self, state: &Gate, _: &CommandContext) -> Result<Vec<GateClosed>, Never> {
        let Self { gate_id, hall_id } = self.clone();
        Ok(if state.closed { vec![] } else { vec![GateClosed { gate_id, hall_id }] })
    }
}

impl State for Hall {
    const SNAPSHOTS: Option<Snapshots<Self>> = Some(Snapshots::every(0));
    type Reads = ClosedGates;

    fn evolve(mut self, event: ClosedGates) -> Self {
        let ClosedGates::GateClosed { gate_id } = event;
        self.0.insert(gate_id);
        self
    }
}

impl Slice for CloseHall {
    const NAME: &'static str = "close-hall";
    type Context = Gates;
    type State = Hall;
    type Writes = GateClosed;
    type Rejection = Never;

    fn decide(&self, Hall(closed): &Hall, _: &CommandContext) -> Result<Vec<GateClosed>, Never> {
        let Self { hall_id, gate_ids } = self;
        let open: BTreeSet<_> = gate_ids.iter().filter(|gate| !closed.contains(gate)).collect();
        let close =
            |gate_id: &GateId| GateClosed { gate_id: gate_id.clone(), hall_id: hall_id.clone() };
        Ok(open.into_iter().map(close).collect())
    }
}

impl State for Passing {
    const SNAPSHOTS: Option<Snapshots<Self>> = Some(Snapshots::every(0));
    type Reads = ClosedOrPassed;

    fn evolve(self, event: ClosedOrPassed) -> Self {
        match event {
            ClosedOrPassed::GateClosed => Self { closed: true, ..self },
            ClosedOrPassed::VisitorPassed => Self { passed: true, ..self },
        }
    }
}

impl Slice for PassGate {
    const NAME: &'static str = "pass-gate";
    type Context = Gates;
    type State = Passing;
    type Writes = VisitorPassed;
    type Rejection = Rejection;

    fn decide(&self, state: &Passing, _: &CommandContext) -> Result<Vec<VisitorPassed>, Rejection> {
        let Self { visitor_id, hall_id } = self.clone();
        match state {
            Passing { closed: true, .. } => Err(Rejection::HallClosed),
            Passing { passed: true, .. } => Ok(vec![]),
            _ => Ok(vec![VisitorPassed { visitor_id, hall_id }]),
        }
    }
}
