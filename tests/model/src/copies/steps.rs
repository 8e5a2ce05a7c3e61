//! The state, and what each step does to it.

use super::rules::{Actor, Alone, COPIES, Rules, Scenario};
use crate::{
    explore::Next,
    property::{Broken, Property},
};

/// How often a writer announces.
pub(super) const ATTEMPTS_MAX: u8 = 2;

/// A fence, without its count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Fence {
    /// The number of the last announcement.
    pub(super) announced: u8,
    /// Who announced, until the announcement ends.
    pub(super) open: Option<u8>,
    /// How many copies there are.
    pub(super) copies: u8,
}

/// The item of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Held {
    /// The announcement that put it.
    pub(super) announced: u8,
    /// `None` if the copy is closed.
    pub(super) count: Option<u8>,
}

/// An announcement, as its actor knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Announced {
    pub(super) number: u8,
    /// The count that the copies get.
    pub(super) count: u8,
    /// How many copies are put.
    pub(super) copies: u8,
    /// How many of these are open.
    pub(super) stay: u8,
}

/// The next request of an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Turn {
    /// Append without an announcement.
    Append,
    Announce,
    /// Put the copies that are not put yet, one bit each.
    Put(Announced, u8),
    /// Append, or say that the levelling is over.
    End(Announced),
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Request {
    Append(u8),
    Announce(u8),
    Put(Announced, usize),
    End(u8, Announced),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) events: u8,
    pub(super) fence: Fence,
    pub(super) copies: [Option<Held>; COPIES],
    /// Appends that are committed, one bit for each id.
    pub(super) appended: u16,
    /// The next request of each actor, and how often it has announced in vain.
    pub(super) actors: Vec<(Turn, u8)>,
    /// How many requests may still stay without an answer.
    pub(super) losses: usize,
    /// Requests that have not arrived, in a canonical order.
    pub(super) late: Vec<Request>,
    /// How many events a check has folded, and how many it requires.
    pub(super) check: Option<(u8, u8)>,
}

pub(super) enum Step {
    /// An actor's request is carried out, or refused.
    Send(usize, Request, bool),
    /// It stays without an answer; the actor will send it again.
    Lose(usize, Request),
    Arrive(Request, bool),
    Crash(usize),
    Read,
    /// Of a copy, or of the fence itself; whether it commits.
    Check(Option<usize>, bool),
}

pub(super) struct Model {
    pub(super) scenario: Scenario,
    pub(super) rules: Rules,
}

/// The append or announcement number `attempt` of an actor.
pub(super) fn id(actor: usize, attempt: u8) -> u8 {
    u8::try_from(actor).unwrap_or(0) * ATTEMPTS_MAX + attempt
}

impl Model {
    pub(super) fn actor(&self, id: u8) -> Actor {
        self.scenario.actors[usize::from(id / ATTEMPTS_MAX)]
    }

    /// How many events the actor of this id appends.
    pub(super) fn adds(&self, id: u8) -> u8 {
        u8::from(matches!(self.actor(id), Actor::Writes(_)))
    }

    /// Carries out a request. Returns false if its condition fails.
    pub(super) fn apply(&self, state: &mut State, request: Request) -> bool {
        let rules = self.rules;
        match request {
            Request::Append(id) | Request::End(id, _) if state.appended & 1 << id != 0 => true,
            Request::Append(id) => {
                let alone = match rules.alone {
                    Alone::Never => state.fence.announced == 0,
                    Alone::WithoutCopies => state.fence.copies == 0,
                    Alone::Always => true,
                };
                if alone {
                    state.events += 1;
                    state.appended |= 1 << id;
                }
                alone
            }
            Request::Announce(id) => {
                let fence = &mut state.fence;
                if fence.open != Some(id) {
                    fence.announced += u8::from(fence.open.is_none() || rules.own_number);
                    fence.open = Some(id);
                    fence.copies = match self.actor(id) {
                        Actor::Writes(declared) if fence.copies == 0 && rules.names_first => {
                            declared
                        }
                        Actor::Levels(Some(wanted)) if !rules.names_closing => wanted,
                        Actor::Levels(Some(wanted)) => wanted.max(fence.copies),
                        Actor::Writes(_) | Actor::Levels(None) => fence.copies,
                    };
                }
                true
            }
            Request::Put(of, n) => {
                let copy = &mut state.copies[n];
                let is_later = copy.is_none_or(|copy| copy.announced <= of.number);
                if is_later || !rules.replaces_earlier {
                    let count = (n < usize::from(of.stay)).then_some(of.count);
                    let held = Held { announced: of.number, count };
                    *copy = (count.is_some() || rules.closes).then_some(held);
                }
                is_later || !rules.replaces_earlier
            }
            Request::End(id, of) => {
                let is_last = state.fence.announced == of.number || !rules.requires_number;
                if is_last {
                    state.events += self.adds(id);
                    state.appended |= u16::from(self.adds(id)) << id;
                    (state.fence.open, state.fence.copies) = (None, of.stay);
                }
                is_last
            }
        }
    }

    /// The requests that an actor can send next.
    pub(super) fn requests(&self, state: &State, actor: usize) -> Vec<Request> {
        let (turn, attempt) = state.actors[actor];
        let id = id(actor, attempt);
        match turn {
            Turn::Append => vec![Request::Append(id)],
            Turn::Announce => vec![Request::Announce(id)],
            Turn::Put(of, open) => {
                let open = (0..COPIES).filter(|n| open & 1 << n != 0);
                open.map(|n| Request::Put(of, n)).collect()
            }
            Turn::End(of) => vec![Request::End(id, of)],
            Turn::Over => Vec::new(),
        }
    }

    /// The actor's next turn, after the answer to its request.
    pub(super) fn answered(&self, state: &mut State, actor: usize, request: Request, held: bool) {
        let (turn, attempt) = &mut state.actors[actor];
        let fence = state.fence;
        *turn = match (request, *turn) {
            (Request::Append(_), _) if !held => Turn::Announce,
            (Request::Announce(id), _) => {
                let copies = match self.actor(id) {
                    Actor::Writes(declared) if fence.copies == 0 => declared,
                    Actor::Writes(_) | Actor::Levels(None) => fence.copies,
                    Actor::Levels(Some(wanted)) => wanted.max(fence.copies),
                };
                let stay = match self.actor(id) {
                    Actor::Levels(Some(wanted)) => wanted,
                    _ => copies,
                };
                let count = state.events + self.adds(id);
                let of = Announced { number: fence.announced, count, copies, stay };
                match copies {
                    0 => Turn::End(of),
                    _ if !self.rules.puts_copies => Turn::End(of),
                    _ => Turn::Put(of, (1 << copies) - 1),
                }
            }
            (Request::Put(of, n), Turn::Put(_, open)) if held => match open & !(1 << n) {
                0 => Turn::End(of),
                open => Turn::Put(of, open),
            },
            (Request::Append(_) | Request::End(..), _) if held => Turn::Over,
            // Somebody has taken over the announcement.
            (Request::Put(..) | Request::End(..), _)
                if matches!(self.scenario.actors[actor], Actor::Writes(_))
                    && *attempt + 1 < ATTEMPTS_MAX =>
            {
                *attempt += 1;
                Turn::Announce
            }
            _ => Turn::Over,
        };
    }

    /// The properties that a state breaks. If no announcement is open, each open copy must be right: nobody would put
    /// it again.
    pub(super) fn broken(&self, state: &State) -> Broken {
        let counts = || state.copies.iter().flatten().filter_map(|copy| copy.count);
        let differs = state.fence.open.is_none() && counts().any(|count| count != state.events);
        let twice = (0..self.scenario.actors.len())
            .any(|actor| (state.appended >> id(actor, 0) & 0b11).count_ones() > 1);
        Property::NoPermanentConflict.when(differs) | Property::NoDoubleEffect.when(twice)
    }

    /// What a check can do.
    pub(super) fn checks(&self, state: &State, next: &mut Vec<Next<Step, State>>) {
        let Some((folded, required)) = state.check else {
            let counts = state.copies.iter().flatten().filter_map(|copy| copy.count);
            let counts: Vec<u8> = counts.collect();
            for folded in 0..=state.events {
                let required =
                    if self.rules.requires_folded { vec![folded] } else { counts.clone() };
                next.extend(required.into_iter().map(|required| {
                    let check = Some((folded, required));
                    Next::fine(Step::Read, State { check, ..state.clone() })
                }));
            }
            return;
        };
        for n in 0..COPIES {
            let count = state.copies[n].and_then(|copy| copy.count);
            let (of, commits) = match count {
                Some(count) => (Some(n), count == required),
                None if self.rules.requires_copy => (None, state.events == required),
                // Nothing is counted where nothing is.
                None => (Some(n), required == 0),
            };
            let broken = Property::NoLostUpdate.when(commits && folded != state.events);
            let state = State { check: None, ..state.clone() };
            next.push(Next { step: Step::Check(of, commits), state, broken });
        }
    }
}
