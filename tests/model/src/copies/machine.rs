//! Everything that can happen next.

use super::{
    rules::{Actor, COPIES},
    steps::{ATTEMPTS_MAX, Act, Announced, Check, Model, Request, Side, State, Step, Turn, id},
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
        (Model::start(self), 0)
    }

    fn next(&self, state: &State, next: &mut Vec<Next<Step, State>>) {
        for (actor, act) in state.actors.iter().enumerate() {
            for request in self.requests(state, actor) {
                let mut after = state.clone();
                let (held, broken) = self.apply(&mut after, request);
                self.answered(&mut after, actor, request, held);
                let broken = broken | self.broken(&after);
                next.push(Next { step: Step::Send(actor, request, held), state: after, broken });
                if state.losses > 0 {
                    let mut after = state.clone();
                    after.losses -= 1;
                    after.actors[actor].lost = self.scenario.actors[actor] == Actor::Checks;
                    after.late.push(request);
                    after.late.sort_unstable();
                    next.push(Next::fine(Step::Lose(actor, request), after));
                }
            }
            // A check that crashes is one that does not go on.
            if act.turn != Turn::Over && self.scenario.actors[actor] != Actor::Checks {
                let mut after = state.clone();
                after.actors[actor].turn = Turn::Over;
                after.has_crashed = self.scenario.waits_for_all();
                next.push(Next::fine(Step::Crash(actor), after));
            }
            match act.turn {
                Turn::Read => self.reads(state, actor, next),
                Turn::Look(check) => self.looks(state, actor, check, next),
                Turn::Examine => self.examines(state, actor, next),
                _ => {}
            }
        }
        for (n, &request) in state.late.iter().enumerate() {
            let mut after = state.clone();
            after.late.remove(n);
            let (held, broken) = self.apply(&mut after, request);
            let broken = broken | self.broken(&after);
            next.push(Next { step: Step::Arrive(request, held), state: after, broken });
        }
    }

    fn line(&self, before: &State, step: &Step, after: &State) -> String {
        line(self, before, step, after)
    }
}

impl Model {
    /// The requests that an actor can send next.
    fn requests(&self, state: &State, actor: usize) -> Vec<Request> {
        let Act { turn, attempt, seen, .. } = state.actors[actor];
        let id = id(actor, attempt);
        match turn {
            Turn::Append => vec![Request::Append(id)],
            Turn::Announce(step) => vec![Request::Announce(id, step)],
            Turn::Put(of, open) => {
                let open = (0..COPIES).filter(|n| open & 1 << n != 0);
                open.map(|n| Request::Put(self.side(id), of, n)).collect()
            }
            Turn::End(_) if self.waits(state, actor) => Vec::new(),
            Turn::End(of) => {
                let copy = (!self.rules.waits_never).then_some(0);
                let check = Check { folded: seen, required: seen, copy };
                let is_crossing = matches!(self.scenario.actors[actor], Actor::Crosses(_));
                vec![Request::End(id, of, is_crossing.then_some(check))]
            }
            Turn::Check(check) => vec![Request::Check(id, check)],
            Turn::Mend => vec![Request::Mend],
            Turn::Read | Turn::Look(_) | Turn::Examine | Turn::Over => Vec::new(),
        }
    }

    /// The actor's next turn, after the answer to its request.
    fn answered(&self, state: &mut State, actor: usize, request: Request, held: bool) {
        let act = state.actors[actor];
        let levels = matches!(self.scenario.actors[actor], Actor::Levels(_));
        let next = match (request, act.turn) {
            (Request::Append(_), _) if !held => Turn::Announce(1),
            (Request::Announce(id, _), _) => self.announced(state, id),
            (Request::Put(_, of, n), Turn::Put(_, open)) if held => match open & !(1 << n) {
                0 => Turn::End(of),
                open => Turn::Put(of, open),
            },
            (Request::Append(_) | Request::End(..) | Request::Check(..), _) if held => Turn::Over,
            (Request::Check(_, check), _) if check.copy.is_some() && !self.rules.same_append => {
                self.decide_again(state, actor, Turn::Check(Check { copy: None, ..check }));
                return;
            }
            (Request::Check(_, check), _) if check.copy.is_some() => Turn::Look(check),
            // Somebody has taken over the announcement, or the copies are of a later number.
            (Request::Put(side, of, n), _) => {
                let Side { fence, copies, .. } = &state.sides[side];
                let found = copies[n].map_or(0, |copy| copy.announced);
                let behind = if self.rules.steps_over { found - of.number } else { 0 };
                if levels && fence.announced != of.number {
                    state.actors[actor].turn = Turn::Over;
                } else {
                    self.decide_again(state, actor, Turn::Announce(1 + behind));
                }
                return;
            }
            (Request::End(..), _) if !levels => {
                let turn = match self.scenario.actors[actor] {
                    Actor::Crosses(_) => Turn::Read,
                    _ => Turn::Announce(1),
                };
                self.decide_again(state, actor, turn);
                return;
            }
            (Request::Check(..), _) => {
                self.decide_again(state, actor, Turn::Read);
                return;
            }
            (Request::Mend, _) if held || self.rules.mend_examines => Turn::Examine,
            _ => Turn::Over,
        };
        state.actors[actor].turn = next;
    }

    /// Begins the next attempt, if one is left.
    fn decide_again(&self, state: &mut State, actor: usize, turn: Turn) {
        let act = &mut state.actors[actor];
        if act.attempt + 1 < ATTEMPTS_MAX {
            *act = Act { turn, attempt: act.attempt + 1, lost: false, ..*act };
        } else {
            act.turn = Turn::Over;
            // It does not say that all is in order.
            state.has_crashed |= self.scenario.actors[actor] == Actor::Repairs;
        }
    }

    /// The turn after an announcement.
    fn announced(&self, state: &State, id: u8) -> Turn {
        let fence = state.sides[self.side(id)].fence;
        let copies = match self.actor(id) {
            Actor::Writes(declared) if fence.copies == 0 => declared,
            Actor::Levels(Some(wanted)) => wanted.max(fence.copies),
            _ => fence.copies,
        };
        let stay = match self.actor(id) {
            Actor::Levels(Some(wanted)) => wanted,
            _ => copies,
        };
        let count = fence.count + self.adds(id);
        let of = Announced { number: fence.announced, count, copies, stay };
        match copies {
            0 => Turn::End(of),
            _ if !self.rules.puts_copies => Turn::End(of),
            _ => Turn::Put(of, (1 << copies) - 1),
        }
    }

    /// A check reads any part of the events, and a crossing writer all of them.
    fn reads(&self, state: &State, actor: usize, next: &mut Vec<Next<Step, State>>) {
        let mut push = |check: Check, turn| {
            let mut after = state.clone();
            (after.actors[actor].turn, after.actors[actor].seen) = (turn, check.folded);
            next.push(Next::fine(Step::Read(actor, check), after));
        };
        if let Actor::Crosses(side) = self.scenario.actors[actor] {
            let folded = state.sides[1 - side].events;
            push(Check { folded, required: folded, copy: None }, Turn::Announce(1));
            return;
        }
        if !self.is_settled(state) {
            return;
        }
        let side = &state.sides[0];
        for folded in 0..=side.events {
            for n in 0..COPIES {
                let counts = side.copies.iter().flatten().filter_map(|copy| copy.count);
                let required: Vec<u8> =
                    if self.rules.requires_folded { vec![folded] } else { counts.collect() };
                for required in required {
                    let check = Check { folded, required, copy: Some(n) };
                    push(check, Turn::Check(check));
                }
            }
        }
    }

    /// A check may check the fence itself at any time. If the fence counts more, that is a conflict.
    fn looks(&self, state: &State, actor: usize, check: Check, next: &mut Vec<Next<Step, State>>) {
        let mut push = |turn, is_again| {
            let mut after = state.clone();
            match is_again {
                true => self.decide_again(&mut after, actor, turn),
                false => after.actors[actor].turn = turn,
            }
            let step = Step::Look(actor, after.actors[actor].turn);
            next.push(Next::fine(step, after));
        };
        let is_more = state.sides[0].fence.count > check.required;
        if is_more && (!state.actors[actor].lost || !self.rules.settles) {
            push(Turn::Read, true);
        } else {
            push(Turn::Check(Check { copy: None, ..check }), false);
            push(Turn::Check(check), false);
        }
    }

    /// A repair levels the copies if they differ, or if an announcement is open.
    fn examines(&self, state: &State, actor: usize, next: &mut Vec<Next<Step, State>>) {
        let side = &state.sides[0];
        let counts = side.copies.iter().flatten().filter_map(|copy| copy.count);
        let is_open = side.fence.open.is_some() && self.rules.mend_levels;
        let turn = match is_open || counts.into_iter().any(|count| count != side.fence.count) {
            true => Turn::Announce(1),
            false => Turn::Over,
        };
        let mut after = state.clone();
        after.actors[actor].turn = turn;
        let broken = self.broken(&after);
        next.push(Next { step: Step::Examine(actor, turn), state: after, broken });
    }
}
