//! Everything that can happen next.

use super::{
    rules::{Actor, COPIES},
    steps::{Fence, Held, Model, State, Step, Turn},
    text::line,
};
use crate::{
    explore::{Machine, Next},
    property::Broken,
};

impl Machine for Model {
    type State = State;
    type Step = Step;

    fn start(&self) -> (State, Broken) {
        let first = |actor: &Actor| match actor {
            Actor::Writes(0) => (Turn::Append, 0),
            _ => (Turn::Announce, 0),
        };
        let copies = u8::try_from(COPIES).unwrap_or(0);
        let mut state = State {
            events: 0,
            fence: Fence::default(),
            copies: [None; COPIES],
            appended: 0,
            actors: self.scenario.actors.iter().map(first).collect(),
            losses: self.scenario.losses,
            late: Vec::new(),
            check: None,
        };
        if self.scenario.has_copies {
            state.fence = Fence { announced: 1, open: None, copies };
            state.copies = [Some(Held { announced: 1, count: Some(0) }); COPIES];
        }
        (state, 0)
    }

    fn next(&self, state: &State, next: &mut Vec<Next<Step, State>>) {
        for actor in 0..state.actors.len() {
            for request in self.requests(state, actor) {
                let mut after = state.clone();
                let held = self.apply(&mut after, request);
                self.answered(&mut after, actor, request, held);
                let broken = self.broken(&after);
                next.push(Next { step: Step::Send(actor, request, held), state: after, broken });
                if state.losses > 0 {
                    let mut after = state.clone();
                    after.losses -= 1;
                    after.late.push(request);
                    after.late.sort_unstable();
                    next.push(Next::fine(Step::Lose(actor, request), after));
                }
            }
            if !matches!(state.actors[actor].0, Turn::Over) {
                let mut after = state.clone();
                after.actors[actor].0 = Turn::Over;
                next.push(Next::fine(Step::Crash(actor), after));
            }
        }
        for (n, &request) in state.late.iter().enumerate() {
            let mut after = state.clone();
            after.late.remove(n);
            let held = self.apply(&mut after, request);
            let broken = self.broken(&after);
            next.push(Next { step: Step::Arrive(request, held), state: after, broken });
        }
        self.checks(state, next);
    }

    fn line(&self, before: &State, step: &Step, after: &State) -> String {
        line(self, before, step, after)
    }
}
