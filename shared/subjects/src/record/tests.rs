//! All orders in which writers, a person who forgets, and a restored copy of the table can change one subject.

use std::collections::{BTreeSet, VecDeque};

use super::*;

/// The rules, or one of them broken.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rules {
    AsTheyAre,
    /// A writer puts a key without a condition.
    KeyOverFence,
    /// A writer that was second uses the key that it has made.
    OwnKey,
    /// The keys are deleted before the fence is put.
    DestroyBeforeFence,
    /// A restored table is used as it is.
    FenceLostByRestore,
    /// The numbers of keys begin with 1.
    NumbersFromOne,
    /// The number after a fence follows the fence's, although the clock is behind it.
    NumberAfterFence,
}

/// What must hold in each state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Property {
    /// No destroyed key is in the table, and its values open as forgotten.
    StaysForgotten,
    /// After a key is destroyed, none is made without leave.
    NoNewKey,
    /// Each value opens, or its subject is forgotten, as long as no copy was restored.
    NothingLost,
    /// No value is opened with another key, also after a restore, or with what a function has kept.
    NoOtherKey,
}

/// A moment. A key is the byte of its wrapped text.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct World {
    table: Option<Record>,
    copy: Option<Option<Record>>,
    is_restored: bool,
    /// What each of two writers has read, if anything.
    read: [Option<Option<Record>>; 2],
    /// What the forgetter has read.
    forgetting: Option<Option<Record>>,
    /// How often the clock ticked.
    now: u64,
    /// The times of the events `SubjectForgotten`. Their machine's clock is ahead by a tick.
    events: Vec<u64>,
    /// The number of them whose fence was put.
    done: usize,
    /// How often a key was allowed again.
    leaves: usize,
    /// Whether a key was destroyed since.
    forbidden: bool,
    keys: u8,
    destroyed: BTreeSet<u8>,
    /// The key of each value, and its number.
    values: BTreeSet<(u8, u64)>,
    broken: Option<Property>,
}

const KEYS_MAX: u8 = 3;

fn key(record: Option<&Record>) -> Option<(u8, u64)> {
    record.and_then(|record| record.key.as_ref()).map(|key| (key.wrapped[0], key.number))
}

impl World {
    fn next(&self, rules: Rules) -> Vec<Self> {
        let mut next = Vec::new();
        let mut step = |change: &dyn Fn(&mut Self)| {
            let mut world = self.clone();
            change(&mut world);
            // Either writer can be the first.
            world.read.sort();
            world.judge();
            next.push(world);
        };
        for writer in 0..2 {
            step(&|world| world.read[writer] = Some(world.table.clone()));
            if let Some(read) = &self.read[writer] {
                step(&|world| world.seal(writer, read.as_ref(), rules));
            }
        }
        let asked = self.events.len();
        if asked < 2 && asked == self.leaves {
            step(&|world| {
                world.now += 1;
                world.events.push(world.now + 1);
            });
        }
        if self.is_behind_fence() {
            step(&|world| world.now += 1);
        }
        if asked > self.done {
            step(&|world| world.forgetting = Some(world.table.clone()));
            if let Some(read) = &self.forgetting {
                step(&|world| world.forget(read.as_ref(), rules));
            }
        } else if self.done == 1 && self.leaves == 0 {
            step(&|world| {
                world.table = Record::again(world.table.as_ref()).or(world.table.take());
                (world.leaves, world.forbidden) = (1, false);
            });
        }
        match &self.copy {
            None if !self.is_restored => step(&|world| world.copy = Some(world.table.clone())),
            Some(copy) => step(&|world| {
                (world.table, world.copy, world.is_restored) = (copy.clone(), None, true);
                if rules != Rules::FenceLostByRestore && asked > 0 {
                    world.fence(copy.as_ref(), 1..=world.keys);
                }
            }),
            None => {}
        }
        next
    }

    fn seal(&mut self, writer: usize, read: Option<&Record>, rules: Rules) {
        self.values.extend(key(read));
        let now = match (rules, read.and_then(|read| read.fence.as_ref())) {
            (Rules::NumbersFromOne, _) => 1,
            (Rules::NumberAfterFence, Some(fence)) => (self.now + 1).max(fence.through + 1),
            _ => self.now + 1,
        };
        let number = Record::next_key(read, now).filter(|_| self.keys < KEYS_MAX);
        let Some(number) = number else { return };
        (self.keys, self.now) = (self.keys + 1, self.now + 1);
        let key = WrappedKey { number, wrapped: vec![self.keys], made_at_ms: 0 };
        let made = Record::with_key(read, key);
        if self.table.as_ref() == read || rules == Rules::KeyOverFence {
            if self.forbidden {
                self.broken = Some(Property::NoNewKey);
            }
            self.table = Some(made.clone());
        }
        let used = if rules == Rules::OwnKey { Some(made) } else { self.table.clone() };
        self.read[writer] = Some(used);
    }

    fn forget(&mut self, read: Option<&Record>, rules: Rules) {
        if self.table.as_ref() != read {
            self.forgetting = Some(self.table.clone());
        } else if rules == Rules::DestroyBeforeFence && key(read).is_some() {
            self.destroyed.extend(key(read).map(|(key, _)| key));
            (self.table, self.forgetting, self.forbidden) = (None, Some(None), true);
        } else {
            self.fence(read, key(read).map(|(key, _)| key));
        }
    }

    /// Puts the fence, unless it is there.
    fn fence(&mut self, read: Option<&Record>, keys: impl IntoIterator<Item = u8>) {
        let at = self.events.last().copied().unwrap_or_default();
        if let Some(fenced) = Record::forgotten(read, at, 0, "why") {
            (self.table, self.forbidden) = (Some(fenced), true);
            self.destroyed.extend(keys);
        }
        (self.done, self.forgetting) = (self.events.len(), None);
    }

    fn is_behind_fence(&self) -> bool {
        let fence = self.table.as_ref().and_then(|table| table.fence.as_ref());
        fence.is_some_and(|fence| fence.again && self.now < fence.through)
    }

    fn judge(&mut self) {
        let table = self.table.as_ref();
        let opens = |(_, number): &(u8, u64)| table.is_some_and(|record| record.opens(*number));
        let is_destroyed = |value: &(u8, u64)| self.destroyed.contains(&value.0);
        let is_dead = |value: &(u8, u64)| self.done > 0 && is_destroyed(value) && opens(value);
        let is_lost = |value: &(u8, u64)| opens(value) == is_destroyed(value);
        // A function reads again what its record does not settle.
        let kept = || self.read.iter().flatten().flatten();
        let settled = |value: &(u8, u64)| {
            kept().any(|kept| kept.opens(value.1) && key(Some(kept)) != Some(*value))
                || !self.is_restored
                    && opens(value)
                    && kept().any(|kept| kept.is_forgotten(value.1))
        };
        let is_other = |value: &(u8, u64)| opens(value) && key(table) != Some(*value);
        if self.values.iter().any(|value| is_other(value) || settled(value)) {
            self.broken = Some(Property::NoOtherKey);
        } else if self.values.iter().chain(&key(table)).any(is_dead) {
            self.broken = Some(Property::StaysForgotten);
        } else if !self.is_restored && self.values.iter().any(is_lost) {
            self.broken = Some(Property::NothingLost);
        }
    }
}

/// Explores all states, or until a property is broken. Returns the broken ones, and the number of states.
fn explore(rules: Rules, until: Option<Property>) -> (BTreeSet<Property>, usize) {
    let (mut seen, mut open) = (BTreeSet::new(), VecDeque::from([World::default()]));
    let mut broken = BTreeSet::new();
    while let Some(world) = open.pop_front() {
        for next in world.next(rules) {
            match next.broken {
                Some(property) => drop(broken.insert(property)),
                None if !seen.contains(&next) => {
                    seen.insert(next.clone());
                    open.push_back(next);
                }
                None => {}
            }
        }
        if until.is_some_and(|property| broken.contains(&property)) {
            break;
        }
    }
    (broken, seen.len())
}

#[test]
fn a_forgotten_subject_stays_so_in_every_order_and_each_rule_is_needed() {
    let (broken, states) = explore(Rules::AsTheyAre, None);
    assert_eq!(broken, BTreeSet::new());
    assert!(states > 10_000, "{states} states");
    for (rules, breaks) in [
        (Rules::KeyOverFence, Property::NoNewKey),
        (Rules::OwnKey, Property::NothingLost),
        (Rules::DestroyBeforeFence, Property::NoNewKey),
        (Rules::FenceLostByRestore, Property::StaysForgotten),
        (Rules::NumbersFromOne, Property::NoOtherKey),
        (Rules::NumberAfterFence, Property::NoOtherKey),
    ] {
        let (broken, _) = explore(rules, Some(breaks));
        assert!(broken.contains(&breaks), "{rules:?}: {broken:?}");
    }
}
