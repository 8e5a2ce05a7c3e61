//! All orders in which two writers claim one value by its blind tag, while blind keys are rotated.

use std::collections::{BTreeSet, VecDeque};

use super::*;

/// The rules, or one of them broken.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rules {
    AsTheyAre,
    /// A new key is used as soon as it is known.
    UsedAtOnce,
    /// A new key is used when no function has an older record; nobody waits for commands under way.
    UsedAfterCaches,
    /// A decision asks for the tag of the key that is used.
    AsksForOne,
}

/// Five minutes.
const TICK_MS: u64 = 300_000;
const TICKS: u64 = 18;
/// The longest invocation.
const INVOCATION: u64 = 3;
/// A put arrives so late.
const LATE: u64 = 3;

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Writer {
    /// What its function has read, and when.
    kept: Option<(u64, StackRecord)>,
    /// The command's begin, and the keys under which it asks.
    asks: Option<(u64, Vec<u32>)>,
    is_done: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct World {
    now: u64,
    table: StackRecord,
    writers: [Writer; 2],
    /// The keys of the events' tags.
    events: Vec<u32>,
}

impl World {
    fn new() -> Self {
        let (now, table) = (LATE, StackRecord::default().with(key(0)));
        Self { now, table, writers: Default::default(), events: Vec::new() }
    }

    fn next(&self, rules: Rules) -> Vec<Self> {
        let mut next = Vec::new();
        let mut step = |change: &dyn Fn(&mut Self)| {
            let mut world = self.clone();
            change(&mut world);
            // Either writer can be the first.
            world.writers.sort();
            next.push(world);
        };
        if self.now < TICKS {
            step(&|world| world.pass());
        }
        if self.table.newest() < 3 && self.table.waits(Purpose::Blind, self.now * TICK_MS).is_none()
        {
            step(&|world| world.table = world.table.with(key(world.now - LATE)));
        }
        for n in (0..2).filter(|n| !self.writers[*n].is_done) {
            if self.writers[n].kept.is_some() {
                // Another function, which is cold.
                step(&|world| world.writers[n].kept = None);
            }
            match &self.writers[n].asks {
                None => step(&|world| world.ask(n, rules)),
                Some((_, asks)) => step(&|world| world.append(n, asks, rules)),
            }
        }
        next
    }

    fn pass(&mut self) {
        self.now += 1;
        for writer in &mut self.writers {
            writer.kept.take_if(|(read, _)| (self.now - *read) * TICK_MS >= KEPT_MS);
            writer.asks.take_if(|(began, _)| self.now - *began > INVOCATION);
        }
    }

    fn known(&mut self, writer: usize) -> StackRecord {
        let read = (self.now, self.table.clone());
        self.writers[writer].kept.get_or_insert(read).1.clone()
    }

    fn used(&self, known: &StackRecord, rules: Rules) -> u32 {
        let wait_ms = match rules {
            Rules::UsedAtOnce => 0,
            Rules::UsedAfterCaches => KEPT_MS + LATE * TICK_MS,
            Rules::AsTheyAre | Rules::AsksForOne => KNOWN_MS,
        };
        known.used(Purpose::Blind, self.now * TICK_MS + KNOWN_MS - wait_ms)
    }

    fn ask(&mut self, writer: usize, rules: Rules) {
        let known = self.known(writer);
        let asks: Vec<u32> = match rules {
            Rules::AsksForOne => vec![self.used(&known, rules)],
            _ => known.0.into_keys().collect(),
        };
        self.writers[writer].is_done = self.events.iter().any(|event| asks.contains(event));
        self.writers[writer].asks = Some((self.now, asks));
    }

    fn append(&mut self, writer: usize, asks: &[u32], rules: Rules) {
        self.writers[writer].asks = None;
        if !self.events.iter().any(|event| asks.contains(event)) {
            let known = self.known(writer);
            self.events.push(self.used(&known, rules));
            self.writers[writer].is_done = true;
        }
    }
}

fn key(made: u64) -> StackKey {
    StackKey { wrapped: Vec::new(), made_at_ms: made * TICK_MS }
}

/// Whether a value can be claimed twice, the keys that were used, and the number of states.
fn explore(rules: Rules) -> (bool, BTreeSet<u32>, usize) {
    let (mut seen, mut open) = (BTreeSet::new(), VecDeque::from([World::new()]));
    let mut used = BTreeSet::new();
    while let Some(world) = open.pop_front() {
        used.extend(world.events.iter().copied());
        if world.events.len() > 1 {
            return (true, used, seen.len());
        }
        let next = world.next(rules).into_iter().filter(|next| seen.insert(next.clone()));
        open.extend(next.collect::<Vec<_>>());
    }
    (false, used, seen.len())
}

#[test]
fn a_value_is_claimed_once_in_every_order_of_rotations_and_each_rule_is_needed() {
    let (is_twice, used, states) = explore(Rules::AsTheyAre);
    assert!(!is_twice && states > 10_000, "{states} states");
    assert_eq!(used, [1, 2, 3].into(), "every key is used in the end");
    for rules in [Rules::UsedAtOnce, Rules::UsedAfterCaches, Rules::AsksForOne] {
        assert!(explore(rules).0, "{rules:?}");
    }
}
