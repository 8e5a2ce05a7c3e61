//! Visits every reachable state, nearest first, so a trace is as short as possible.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    hash::{BuildHasher, BuildHasherDefault, Hash, Hasher},
};

use indexmap::IndexMap;
use indexmap::map::raw_entry_v1::{RawEntryApiV1, RawEntryMut};

use crate::property::{Broken, Property};

/// A system that can be explored.
pub(crate) trait Machine {
    /// Everything at a moment.
    type State: Clone + Eq + Hash;
    /// One event of the system.
    type Step;

    /// The start, and the properties that are broken there.
    fn start(&self) -> (Self::State, Broken);

    /// Everything that can happen in `state`.
    fn next(&self, state: &Self::State, next: &mut Vec<Next<Self::Step, Self::State>>);

    /// One line for a step.
    fn line(&self, before: &Self::State, step: &Self::Step, after: &Self::State) -> String;
}

/// A step, the next state, and the properties that it breaks.
pub(crate) struct Next<Step, State> {
    pub step: Step,
    pub state: State,
    pub broken: Broken,
}

impl<Step, State> Next<Step, State> {
    /// A step that breaks nothing.
    pub(crate) fn fine(step: Step, state: State) -> Self {
        Self { step, state, broken: 0 }
    }
}

/// Each state with the index of the one from which it was first reached.
pub(crate) type States<State> = IndexMap<State, u32, BuildHasherDefault<Mix>>;

/// The result of an exploration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Explored {
    /// Distinct states.
    pub states: u64,
    /// Steps between them.
    pub transitions: u64,
    /// The shortest way to break each property that can be broken, one line a step.
    pub broken: BTreeMap<Property, Vec<String>>,
}

/// Explores everything that can happen within so many steps, or until all of `enough` is broken. The states are stored
/// whole, so no two count as one. They are left in `states`, whose memory the next exploration uses.
pub(crate) fn explore<M: Machine>(
    machine: &M,
    enough: Broken,
    within: usize,
    states: &mut States<M::State>,
) -> Explored {
    let mut explored = Explored::default();
    let mut next = Vec::new();
    let (start, mut broken) = machine.start();
    states.clear();
    states.insert(start, 0);
    note(&mut explored, broken, &[]);
    // The number of the next step, and the index of the first state after it.
    let (mut step, mut after_step) = (1, 1);
    let mut at = 0;
    while let Some((state, _)) = states.get_index(at) {
        if at == after_step {
            (step, after_step) = (step + 1, states.len());
        }
        if step > within || enough != 0 && broken & enough == enough {
            break;
        }
        let state = state.clone();
        let parent = u32::try_from(at).expect("a scenario has fewer than 2^32 states");
        machine.next(&state, &mut next);
        for Next { step, state: after, broken: now } in next.drain(..) {
            explored.transitions += 1;
            if now & !broken != 0 {
                let mut trace = trace(machine, states, at);
                trace.push(machine.line(&state, &step, &after));
                note(&mut explored, now & !broken, &trace);
                broken |= now;
            }
            let hash = states.hasher().hash_one(&after);
            let found = states.raw_entry_mut_v1().from_key_hashed_nocheck(hash, &after);
            if let RawEntryMut::Vacant(place) = found {
                place.insert_hashed_nocheck(hash, after, parent);
            }
        }
        at += 1;
    }
    explored.states = states.len() as u64;
    explored
}

fn note(explored: &mut Explored, broken: Broken, trace: &[String]) {
    for property in Property::ALL {
        if property.when(true) & broken != 0 {
            explored.broken.insert(property, trace.to_vec());
        }
    }
}

/// The steps from the start to the state at `end`.
fn trace<M: Machine>(machine: &M, states: &States<M::State>, end: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut at = end;
    while at != 0 {
        let (after, parent) = states.get_index(at).expect("a trace leads through known states");
        at = *parent as usize;
        let (before, _) = states.get_index(at).expect("a parent is known");
        let mut next = Vec::new();
        machine.next(before, &mut next);
        let step = next.iter().find(|next| next.state == *after).expect("a child is reached");
        lines.push(machine.line(before, &step.step, after));
    }
    lines.reverse();
    lines
}

/// A trace with a number for each step.
pub(crate) fn numbered(trace: &[String]) -> String {
    let mut text = String::new();
    for (n, line) in trace.iter().enumerate() {
        writeln!(text, "{:>3}. {line}", n + 1).expect("a String takes it");
    }
    text
}

/// Multiply and rotate, like compilers hash: no attacker chooses the keys. Small values are collected, because a state
/// has hundreds of them, and each multiplication waits for the previous one.
#[derive(Default)]
pub(crate) struct Mix {
    hash: u64,
    /// The small values that are not in the hash yet, and their number of bits.
    small: u64,
    bits: u32,
}

impl Mix {
    fn collect(&mut self, value: u64, bits: u32) {
        if self.bits + bits > u64::BITS {
            self.write_u64(self.small);
            (self.small, self.bits) = (0, 0);
        }
        self.small = self.small << bits | value;
        self.bits += bits;
    }
}

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        let hash = mixed(self.hash, self.small);
        hash ^ hash >> 29
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        words.iter().for_each(|word| self.write_u64(u64::from_le_bytes(*word)));
        rest.iter().for_each(|byte| self.write_u8(*byte));
    }

    fn write_u8(&mut self, value: u8) {
        self.collect(value.into(), u8::BITS);
    }

    fn write_u16(&mut self, value: u16) {
        self.collect(value.into(), u16::BITS);
    }

    fn write_u32(&mut self, value: u32) {
        self.collect(value.into(), u32::BITS);
    }

    /// A length, which is small.
    fn write_usize(&mut self, value: usize) {
        self.collect(value as u64 & 0xff, u8::BITS);
    }

    /// The index of a variant, which is small.
    fn write_isize(&mut self, value: isize) {
        self.collect(value.cast_unsigned() as u64 & 0xff, u8::BITS);
    }

    fn write_u64(&mut self, word: u64) {
        self.hash = mixed(self.hash, word);
    }
}

fn mixed(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
