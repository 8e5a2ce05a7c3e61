//! Everything that can happen next.

use super::{
    indexer::{Indexer, Turn},
    pages::{Request, until},
    rules::PARTITIONS,
    state::State,
    steps::{Model, Step},
    text::line,
};
use crate::{
    explore::{Machine, Next},
    property::{Broken, Property},
};

impl Machine for Model {
    type State = State;
    type Step = Step;

    fn start(&self) -> (State, Broken) {
        (State::default(), 0)
    }

    fn next(&self, state: &State, next: &mut Vec<Next<Step, State>>) {
        let mut add = |step, state: State| {
            let endless = match step {
                Step::Send(i, Request::Page(_), true) | Step::Acknowledge(i) => {
                    !self.finishes(&state, i)
                }
                _ => false,
            };
            let broken = Property::Indexed.when(endless || Self::is_wrong(&state));
            next.push(Next { step, state, broken });
        };
        if let Some(append) = self.scenario.appends.get(usize::from(state.appended)) {
            let mut after = state.clone();
            after.appended += 1;
            for (p, events) in append.iter().enumerate() {
                after.committed[p] += events;
                after.images[p] |= until(after.committed[p]) & !until(state.committed[p]);
                if !self.scenario.torn {
                    after.visible[p] = until(after.committed[p]);
                }
            }
            add(Step::Append, after);
        }
        for p in 0..PARTITIONS {
            for slot in 1..=state.committed[p] {
                let event = 1 << (slot - 1);
                if state.visible[p] & event == 0 {
                    let mut after = state.clone();
                    after.visible[p] |= event;
                    add(Step::Show(p, slot), after);
                }
            }
        }
        for i in 0..self.scenario.indexers {
            for (step, after) in self.acts(state, i) {
                if let Step::Send(_, request, _) = step
                    && state.late.len() < self.scenario.late
                {
                    let mut after = state.clone();
                    after.late.push(request);
                    after.late.sort_unstable();
                    add(Step::Send(i, request, false), after);
                }
                add(step, after);
            }
            if state.indexers[i].turn != Turn::Take {
                let mut after = state.clone();
                after.indexers[i] = state.indexers[i].idle();
                add(Step::GiveUp(i), after);
            }
            if state.indexers[i] != Indexer::default() {
                let mut after = state.clone();
                after.indexers[i] = Indexer::default();
                add(Step::Crash(i), after);
            }
        }
        for (n, request) in state.late.iter().enumerate() {
            let mut after = state.clone();
            after.late.remove(n);
            after.apply(*request, self.rules);
            add(Step::Arrive(*request), after);
        }
    }

    fn line(&self, before: &State, step: &Step, after: &State) -> String {
        line(self, before, step, after)
    }
}
