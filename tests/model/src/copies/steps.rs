//! The state, and what each request does to it.

use super::rules::{Actor, Alone, COPIES, Damage, Rules, Scenario};
use crate::property::{Broken, Property};

/// How often a command is decided, and an append announced.
pub(super) const ATTEMPTS_MAX: u8 = 2;
/// The number of the copies of a torn restore. The fence has announced once.
pub(super) const LATER: u8 = 7;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Fence {
    pub(super) count: u8,
    /// The number of the last announcement.
    pub(super) announced: u8,
    /// Who announced, until the announcement ends.
    pub(super) open: Option<u8>,
    /// How many copies there are.
    pub(super) copies: u8,
    pub(super) is_mended: bool,
}

/// The item of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Held {
    /// The announcement that put it.
    pub(super) announced: u8,
    /// `None` if the copy is closed.
    pub(super) count: Option<u8>,
}

/// A fence with its copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Side {
    /// The events that are committed.
    pub(super) events: u8,
    pub(super) fence: Fence,
    pub(super) copies: [Option<Held>; COPIES],
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

/// The condition of an append on a fence that it only checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Check {
    pub(super) folded: u8,
    /// The count that is required.
    pub(super) required: u8,
    /// The copy that is checked; `None` for the fence itself.
    pub(super) copy: Option<usize>,
}

/// The next request of an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Turn {
    /// Read, and decide.
    Read,
    /// Append without an announcement.
    Append,
    /// Announce, with a number that is later by so much.
    Announce(u8),
    /// Put the copies that are not put yet, one bit each.
    Put(Announced, u8),
    /// Append, or say that the levelling is over.
    End(Announced),
    /// Append elsewhere under a check.
    Check(Check),
    /// Look at the fence, because a copy has refused the check.
    Look(Check),
    /// Put the mended fence.
    Mend,
    /// Compare the copies with the fence.
    Examine,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Request {
    Append(u8),
    Announce(u8, u8),
    /// Of this fence: the copy of this number.
    Put(usize, Announced, usize),
    End(u8, Announced, Option<Check>),
    Check(u8, Check),
    Mend,
}

/// Somebody at the fences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Act {
    pub(super) turn: Turn,
    /// How often it has decided or announced in vain.
    pub(super) attempt: u8,
    /// What a crossing writer has read in the other fence.
    pub(super) seen: u8,
    /// Whether a send of a check has no answer in this attempt.
    pub(super) lost: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) sides: [Side; 2],
    /// Appends that are committed, one bit for each id.
    pub(super) appended: u16,
    pub(super) actors: Vec<Act>,
    /// How many requests may still stay without an answer.
    pub(super) losses: usize,
    /// Requests that have not arrived, in a canonical order.
    pub(super) late: Vec<Request>,
    pub(super) has_crashed: bool,
}

pub(super) enum Step {
    /// An actor's request is carried out, or refused.
    Send(usize, Request, bool),
    /// It stays without an answer; the actor will send it again.
    Lose(usize, Request),
    Arrive(Request, bool),
    Crash(usize),
    /// So many events of the fence are read.
    Read(usize, Check),
    /// The fence is read, and the check goes on so.
    Look(usize, Turn),
    /// The copies are compared with the fence.
    Examine(usize, Turn),
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

    /// How many events the actor of this id appends to its fence.
    pub(super) fn adds(&self, id: u8) -> u8 {
        u8::from(matches!(self.actor(id), Actor::Writes(_) | Actor::Crosses(_)))
    }

    pub(super) fn start(&self) -> State {
        let copies = u8::try_from(COPIES).unwrap_or(0);
        let mut side = Side { events: 0, fence: Fence::default(), copies: [None; COPIES] };
        if self.scenario.has_copies {
            side.fence = Fence { announced: 1, copies, ..Fence::default() };
            side.copies = [Some(Held { announced: 1, count: Some(0) }); COPIES];
        }
        let mut sides = [side; 2];
        match self.scenario.damage {
            None => {}
            Some(Damage::Count) => sides[0].events = 1,
            Some(Damage::Fence) => {
                sides[0].events = 1;
                sides[0].copies = [Some(Held { announced: 1, count: Some(1) }); COPIES];
            }
            // Copies of a torn restore count an append that was announced.
            Some(Damage::Numbers) => {
                sides[0].copies = [Some(Held { announced: LATER, count: Some(1) }); COPIES];
            }
        }
        let first = |actor: &Actor| {
            let turn = match actor {
                Actor::Writes(0) => Turn::Append,
                Actor::Writes(_) | Actor::Levels(_) => Turn::Announce(1),
                Actor::Checks | Actor::Crosses(_) => Turn::Read,
                Actor::Repairs => Turn::Mend,
            };
            Act { turn, attempt: 0, seen: 0, lost: false }
        };
        let actors = self.scenario.actors.iter().map(first).collect();
        let losses = self.scenario.losses;
        State { sides, appended: 0, actors, losses, late: Vec::new(), has_crashed: false }
    }

    /// Carries out a request. Returns whether its condition holds, and what that breaks.
    pub(super) fn apply(&self, state: &mut State, request: Request) -> (bool, Broken) {
        let rules = self.rules;
        match request {
            Request::Append(id) | Request::End(id, ..) | Request::Check(id, _)
                if state.appended & 1 << id != 0 =>
            {
                (true, 0)
            }
            Request::Append(id) => {
                let side = &mut state.sides[0];
                let alone = match rules.alone {
                    Alone::Never => side.fence.announced == 0,
                    Alone::WithoutCopies => side.fence.copies == 0,
                    Alone::Always => true,
                };
                if alone {
                    side.add(1);
                    state.appended |= 1 << id;
                }
                (alone, 0)
            }
            Request::Announce(id, step) => {
                let fence = &mut state.sides[self.side(id)].fence;
                if fence.open.is_none() || rules.own_number {
                    fence.announced += step;
                }
                fence.open = Some(id);
                fence.copies = match self.actor(id) {
                    Actor::Writes(declared) if fence.copies == 0 && rules.names_first => declared,
                    Actor::Levels(Some(wanted)) if !rules.names_closing => wanted,
                    Actor::Levels(Some(wanted)) => wanted.max(fence.copies),
                    _ => fence.copies,
                };
                (true, 0)
            }
            Request::Put(side, of, n) => {
                let copy = &mut state.sides[side].copies[n];
                let is_later = copy.is_none_or(|copy| copy.announced <= of.number);
                if is_later || !rules.replaces_earlier {
                    let count = (n < usize::from(of.stay)).then_some(of.count);
                    let held = Held { announced: of.number, count };
                    *copy = (count.is_some() || rules.closes).then_some(held);
                }
                (is_later || !rules.replaces_earlier, 0)
            }
            Request::End(id, of, check) => {
                let side = self.side(id);
                let is_last = state.sides[side].fence.announced == of.number;
                let other = check.map_or((true, 0), |check| self.check(state, 1 - side, check));
                let holds = (is_last || !rules.requires_number) && other.0;
                if holds {
                    let side = &mut state.sides[side];
                    side.add(self.adds(id));
                    (side.fence.open, side.fence.copies) = (None, of.stay);
                    state.appended |= u16::from(self.adds(id)) << id;
                }
                (holds, if holds { other.1 } else { 0 })
            }
            Request::Check(id, check) => {
                let (holds, broken) = self.check(state, 0, check);
                state.appended |= u16::from(holds) << id;
                (holds, broken)
            }
            Request::Mend => {
                let fence = &mut state.sides[0].fence;
                let holds = !fence.is_mended;
                fence.count += u8::from(holds);
                fence.is_mended = true;
                (holds, 0)
            }
        }
    }

    /// The fence of an actor.
    pub(super) fn side(&self, id: u8) -> usize {
        match self.actor(id) {
            Actor::Crosses(side) => side,
            _ => 0,
        }
    }

    /// Whether a check holds, and whether it misses an event.
    fn check(&self, state: &State, side: usize, check: Check) -> (bool, Broken) {
        let Side { events, fence, copies } = &state.sides[side];
        let holds = match check.copy.map(|n| copies[n].and_then(|copy| copy.count)) {
            None => fence.count == check.required,
            Some(Some(count)) => count == check.required,
            // Nothing is counted where nothing is.
            Some(None) => !self.rules.requires_copy && check.required == 0,
        };
        (holds, Property::NoLostUpdate.when(holds && check.folded != *events))
    }

    /// Whether everybody has ended by itself who could mend the damage of the start.
    pub(super) fn is_settled(&self, state: &State) -> bool {
        let ends = || self.scenario.actors.iter().zip(&state.actors);
        let is_open = ends().any(|(actor, act)| *actor != Actor::Checks && act.turn != Turn::Over);
        self.scenario.damage.is_none() || !is_open && !state.has_crashed
    }

    /// The properties that a state breaks. If no announcement is open, each open copy must be right: nobody would put
    /// it again. If nobody can go on, and nobody has crashed, they wait for each other.
    pub(super) fn broken(&self, state: &State) -> Broken {
        let differs = |side: &Side| {
            let counts = || side.copies.iter().flatten().filter_map(|copy| copy.count);
            let is_over = self.scenario.damage.is_some() && self.scenario.losses == 0;
            let is_off = counts().any(|count| count != side.fence.count);
            is_off && (side.fence.open.is_none() || is_over)
        };
        let differs = self.is_settled(state) && state.sides.iter().any(differs);
        let is_over = |act: &Act| act.turn == Turn::Over;
        let waits = !state.has_crashed
            && !state.actors.iter().all(is_over)
            && (0..state.actors.len()).all(|actor| self.waits(state, actor));
        let twice = (0..self.scenario.actors.len())
            .any(|actor| (state.appended >> id(actor, 0) & 0b11).count_ones() > 1);
        Property::NoPermanentConflict.when(differs || waits) | Property::NoDoubleEffect.when(twice)
    }

    /// Whether an actor is over, or waits for the announcement of another one.
    pub(super) fn waits(&self, state: &State, actor: usize) -> bool {
        let Act { turn, attempt, seen, .. } = state.actors[actor];
        match turn {
            Turn::Over => true,
            Turn::End(_) if !self.rules.waits_never => {
                let other = &state.sides[1 - self.side(id(actor, attempt))];
                let is_crossing = matches!(self.scenario.actors[actor], Actor::Crosses(_));
                let ahead = other.copies[0].and_then(|copy| copy.count) > Some(seen);
                is_crossing && ahead && other.fence.count == seen && other.fence.open.is_some()
            }
            _ => false,
        }
    }
}

impl Side {
    fn add(&mut self, events: u8) {
        self.events += events;
        self.fence.count += events;
    }
}
