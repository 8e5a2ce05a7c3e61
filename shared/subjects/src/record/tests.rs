//! All orders in which writers, a person who forgets, and a restored copy of the table can change one subject.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

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
    /// The number and time of the events `SubjectForgotten`.
    asked: u64,
    /// The number of them whose fence was put.
    done: u64,
    /// How often a key was allowed again.
    leaves: u64,
    /// Whether a key was destroyed since.
    forbidden: bool,
    keys: u8,
    destroyed: BTreeSet<u8>,
    /// The key of each value, and its number.
    values: BTreeSet<(u8, u32)>,
    broken: Option<Property>,
}

const KEYS_MAX: u8 = 3;

fn keys(record: Option<&Record>) -> BTreeMap<u32, u8> {
    let keys = record.and_then(|record| record.keys.as_ref());
    keys.into_iter().flat_map(|keys| &keys.wrapped).map(|(n, key)| (*n, key[0])).collect()
}

impl World {
    fn next(&self, rules: Rules) -> Vec<Self> {
        let mut next = Vec::new();
        let mut step = |change: &dyn Fn(&mut Self)| {
            let mut world = self.clone();
            change(&mut world);
            world.judge();
            next.push(world);
        };
        for writer in 0..2 {
            step(&|world| world.read[writer] = Some(world.table.clone()));
            if let Some(read) = &self.read[writer] {
                step(&|world| world.seal(writer, read.as_ref(), rules));
            }
        }
        if self.asked < 2 && self.asked == self.leaves {
            step(&|world| world.asked += 1);
        }
        if self.asked > self.done {
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
            None => step(&|world| world.copy = Some(world.table.clone())),
            Some(copy) if !self.is_restored => step(&|world| {
                (world.table, world.is_restored) = (copy.clone(), true);
                if rules != Rules::FenceLostByRestore && world.asked > 0 {
                    let keys = 1..=world.keys;
                    let table = world.table.clone();
                    world.fence(table.as_ref(), keys.collect());
                }
            }),
            Some(_) => {}
        }
        next
    }

    fn seal(&mut self, writer: usize, read: Option<&Record>, rules: Rules) {
        match Record::sealing(read) {
            Sealing::With(number) => drop(self.values.insert((keys(read)[&number], number))),
            Sealing::WithNew(number) if self.keys < KEYS_MAX => {
                self.keys += 1;
                let made = Record::with_key(read, number, vec![self.keys], 0);
                if self.table.as_ref() == read || rules == Rules::KeyOverFence {
                    if self.forbidden {
                        self.broken = Some(Property::NoNewKey);
                    }
                    self.table = Some(made.clone());
                }
                let used = if rules == Rules::OwnKey { Some(made) } else { self.table.clone() };
                self.read[writer] = Some(used);
            }
            Sealing::WithNew(_) | Sealing::Never => {}
        }
    }

    fn forget(&mut self, read: Option<&Record>, rules: Rules) {
        if self.table.as_ref() != read {
            self.forgetting = Some(self.table.clone());
        } else if rules == Rules::DestroyBeforeFence && !keys(read).is_empty() {
            self.destroyed.extend(keys(read).into_values());
            (self.table, self.forgetting, self.forbidden) = (None, Some(None), true);
        } else {
            self.fence(read, keys(read).into_values().collect());
        }
    }

    /// Puts the fence, unless it is there.
    fn fence(&mut self, read: Option<&Record>, keys: Vec<u8>) {
        if let Some(fenced) = Record::forgotten(read, self.asked, "why") {
            (self.table, self.forbidden) = (Some(fenced), true);
            self.destroyed.extend(keys);
        }
        (self.done, self.forgetting) = (self.asked, None);
    }

    fn judge(&mut self) {
        let there = keys(self.table.as_ref());
        let opening = |number| Record::opening(self.table.as_ref(), number);
        let is_dead = |(key, number): &&(u8, u32)| {
            self.destroyed.contains(key) && opening(*number) != Opening::Forgotten
        };
        let is_lost = |(key, number): &&(u8, u32)| match opening(*number) {
            Opening::Forgotten => !self.destroyed.contains(key),
            _ => there.get(number) != Some(key),
        };
        if self.done > 0 && there.values().any(|key| self.destroyed.contains(key))
            || self.values.iter().any(|value| self.done > 0 && is_dead(&value))
        {
            self.broken = Some(Property::StaysForgotten);
        } else if !self.is_restored && self.values.iter().any(|value| is_lost(&value)) {
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
    println!("{states} states");
    assert_eq!(broken, BTreeSet::new(), "{states} states");
    for (rules, breaks) in [
        (Rules::KeyOverFence, Property::NoNewKey),
        (Rules::OwnKey, Property::NothingLost),
        (Rules::DestroyBeforeFence, Property::NoNewKey),
        (Rules::FenceLostByRestore, Property::StaysForgotten),
    ] {
        let (broken, _) = explore(rules, Some(breaks));
        assert!(broken.contains(&breaks), "{rules:?}: {broken:?}");
    }
}
