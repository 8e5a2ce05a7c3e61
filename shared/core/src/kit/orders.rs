//! The facts of a case in other fold orders (rule 4). A case gives its facts in one order. Facts of different
//! boundaries could have been recorded in another order, because the clocks of writers differ and nothing orders
//! their appends. So the kit decides the command on the facts in every order that keeps the order within each
//! boundary, up to a number of orders. Each decision must be the same.
//!
//! If the case waits between two facts, they keep their order, because their times show it. All facts of one moment
//! are folded with the same time, so decisions do not differ by the milliseconds between them.
//!
//! A fact can also lie in the future of a decision, if the clock of its writer was far ahead (rule 4). So the command
//! is also decided once on such facts, and must not panic.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;

use super::same::difference;
use super::vault::tags;
use crate::{
    AHEAD_MAX_MS, BoundaryId, Catalog, CommandContext, EventError, NewEvent, Reads, ReadsOf, Seen,
    SequencedEvent, Slice, State,
    decide::case::{Came, Case, Fact, written},
    decide::shapes::{Declared, plan},
};

/// At most this many orders of a case's facts are tried.
const ORDERS_MAX: usize = 100;

/// A fact that the decision folds.
struct Folded {
    event: SequencedEvent,
    /// Its partition, and each boundary whose fence counts it. The log orders the events of each.
    boundaries: BTreeSet<BoundaryId>,
}

/// Decides the case's command on its facts in other orders. `events` are the facts as a log stores them. Panics if a
/// decision differs from the decision on the facts in the case's order.
pub(super) fn check<S: Slice>(case: &Case<S>, catalog: &Catalog, events: Vec<SequencedEvent>) {
    let (shape, tags) = (case.command.shape(), tags(&case.command));
    let (_, plan) = plan(Declared::of::<S>(), shape, vec![tags], catalog)
        .expect("the command was planned when the case ran");
    let facts = case.given.iter().zip(events).map(|(fact, event)| folded(catalog, fact, event));
    let mut facts: Vec<_> = facts.collect();
    let mut seen = Seen::nothing(&plan);
    for fact in &facts {
        seen.observe(&plan, &fact.event);
    }
    facts.retain(|fact| plan.matches(&fact.event));
    let orders = orders(&facts);
    let now_ms = seen.newest_ms(case.context.now_ms);
    let decide = Decide { case, catalog, facts: &facts };
    let first = decide.after(&orders[0], now_ms, |_, state| state);
    for order in &orders[1..] {
        let other = decide.after(order, now_ms, |_, state| state);
        if let Some(difference) = difference(&first, &other) {
            panic!(
                "{}: the decision depends on the order of events of different boundaries, which no \
                 log promises. Write a fold that gives the same for each order, or an event that carries the \
                 fact.\n  - after {}\n  + after {}\n{difference}",
                case.at,
                names(&facts, &orders[0]),
                names(&facts, order),
            );
        }
    }
    let earliest = facts.iter().map(|fact| fact.event.at).min().unwrap_or(now_ms);
    let before = earliest.saturating_sub(AHEAD_MAX_MS + 1);
    let early = || decide.after(&orders[0], seen.newest_ms(before), |_, state| state);
    assert!(
        catch_unwind(AssertUnwindSafe(early)).is_ok(),
        "{}: the decision panics if its facts lie more than a minute ahead of the clock, as they do when the \
         clock of their writer was wrong. Take an age with `saturating_sub`.",
        case.at,
    );
    if S::State::SNAPSHOTS.is_some() {
        let other = decide.after(&orders[0], now_ms, Decide::again);
        if let Some(difference) = difference(&first, &other) {
            panic!(
                "{}: the state is another one after a snapshot. Write all of it with serde.\n  \
                 - without a snapshot\n  + after a snapshot\n{difference}",
                case.at
            );
        }
    }
}

fn folded(catalog: &Catalog, fact: &Fact, event: SequencedEvent) -> Folded {
    let event_type = event.event_type.clone().into();
    let new = NewEvent { event_type, tags: event.tags.clone(), data: Value::Null };
    let filing = catalog.filing(&new).expect("it was filed when it was added");
    let boundaries = filing.fences.into_iter().chain([filing.partition]).collect();
    Folded { event: SequencedEvent { at: fact.at_ms, ..event }, boundaries }
}

/// Decides a case on its facts.
struct Decide<'a, S: Slice> {
    case: &'a Case<S>,
    catalog: &'a Catalog,
    facts: &'a [Folded],
}

impl<S: Slice> Decide<'_, S> {
    /// The state after a snapshot was written and read.
    fn again(&self, state: S::State) -> S::State {
        let Some(snapshots) = S::State::SNAPSHOTS else { return state };
        let again = snapshots.again(&state);
        again.unwrap_or_else(|error| self.case.fail("the state's JSON", error))
    }

    /// The result of the decision on the facts in this order, at the time `now_ms`. `kept` is applied to the state
    /// before and after each fact.
    fn after(&self, order: &[usize], now_ms: u64, kept: fn(&Self, S::State) -> S::State) -> Came {
        let Self { case, catalog, facts } = self;
        let state = order.iter().fold(kept(self, S::State::default()), |state, n| {
            let current = catalog.current(&facts[*n].event).expect("it was current in the case");
            let read = ReadsOf::<S>::decode(&current).expect("it was decoded when the case ran");
            kept(self, state.evolve(read))
        });
        let context = CommandContext { now_ms, ..case.context.clone() };
        let wrote =
            |events: Result<_, EventError>| events.unwrap_or_else(|e| case.fail("a new event", e));
        match case.command.decide(&state, &context) {
            Ok(events) => Came::accepted(wrote(written(&events))),
            Err(rejection) => {
                let left = case.command.leaves(&rejection, &state, &context);
                Came::rejected(&rejection, wrote(written(&left)))
            }
        }
    }
}

/// First the order of the case, then the order with each fact as early as possible, then orders that differ from an
/// earlier one by a swap of two neighbours.
fn orders(facts: &[Folded]) -> Vec<Vec<usize>> {
    let is_fixed = |a: usize, b: usize| {
        let (a, b) = (&facts[a], &facts[b]);
        a.event.at != b.event.at || !a.boundaries.is_disjoint(&b.boundaries)
    };
    let mut orders: Vec<Vec<usize>> = vec![(0..facts.len()).collect(), Vec::new()];
    for n in 0..facts.len() {
        let last = orders[1].iter().rposition(|before| is_fixed(*before, n));
        orders[1].insert(last.map_or(0, |place| place + 1), n);
    }
    orders.dedup();
    let mut next = 0;
    while let Some(order) = orders.get(next).cloned() {
        for n in 1..order.len() {
            let mut other = order.clone();
            other.swap(n - 1, n);
            let is_new = !is_fixed(order[n - 1], order[n]) && !orders.contains(&other);
            if is_new && orders.len() < ORDERS_MAX {
                orders.push(other);
            }
        }
        next += 1;
    }
    orders
}

fn names(facts: &[Folded], order: &[usize]) -> String {
    let name = |n: &usize| format!("{} {}", facts[*n].event.event_type, facts[*n].event.id());
    order.iter().map(name).collect::<Vec<_>>().join(", ")
}
