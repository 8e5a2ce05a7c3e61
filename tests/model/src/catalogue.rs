//! The commands, and the scenarios made of them.

use std::fmt;

use crate::world::{
    A, B, Clause, Command, F, Fence,
    Partition::{self, C1, C2, P1, S1},
    SHAPES, Source, join,
};

/// The work of each writer, and the older events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Shapes of the events that exist at the start.
    pub before: &'static [u8],
    /// The commands of each writer, at most two, one after the other.
    pub writers: Vec<Vec<Command>>,
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.before.is_empty() {
            f.write_str("before: ")?;
            join(f, "; ", self.before.iter().map(|&shape| &SHAPES[usize::from(shape)]))?;
            writeln!(f)?;
        }
        for (writer, commands) in self.writers.iter().enumerate() {
            write!(f, "W{}: ", writer + 1)?;
            join(f, ", then ", commands.iter())?;
            writeln!(f)?;
        }
        Ok(())
    }
}

const fn on(partition: Partition, types: u8) -> Clause {
    Clause { source: Source::Partition(partition), types }
}

const fn by(fence: Fence, types: u8) -> Clause {
    Clause { source: Source::Fence(fence), types }
}

/// The queries. The first is that of an import.
const READS: [&[Clause]; 16] = [
    &[],
    &[on(C1, A)],
    &[on(C1, B)],
    &[on(C1, A | B)],
    &[by(Fence::S1, A)],
    &[on(C1, A), on(C2, A)],
    &[on(C1, A), by(Fence::S1, A)],
    &[on(C1, B), by(Fence::S1, A)],
    &[by(Fence::S1, A), by(Fence::S2, A)],
    &[on(C2, A), by(Fence::S1, A)],
    &[on(C2, F)],
    &[on(C2, A | F)],
    &[on(C1, A), on(C2, F)],
    &[by(Fence::O1P1, A)],
    &[by(Fence::O2P1, A), on(P1, B)],
    &[on(S1, F), by(Fence::S1, A)],
];

/// The writes of a command. The first is that of a rejection.
const WRITES: [&[u8]; 14] =
    [&[], &[0], &[1], &[2], &[3], &[4], &[0, 0], &[0, 2], &[5], &[6], &[7], &[8], &[10], &[3, 11]];

/// The small catalogue: each query and each write of the whole one that differs in kind.
const SMALL: [(usize, usize); 25] = [
    (0, 1),
    (0, 5),
    (0, 4),
    (0, 7),
    (0, 8),
    (0, 12),
    (0, 13),
    (1, 1),
    (1, 2),
    (3, 6),
    (4, 3),
    (4, 12),
    (5, 2),
    (5, 7),
    (6, 4),
    (7, 2),
    (8, 9),
    (10, 1),
    (11, 1),
    (12, 2),
    (13, 10),
    (14, 11),
    (15, 4),
    (1, 0),
    (5, 0),
];

const fn decides(reads: usize, writes: usize) -> Command {
    Command { reads: READS[reads], writes: WRITES[writes], cause: None }
}

/// Every query with every write: 223 commands.
pub fn whole() -> Vec<Command> {
    let pairs = (0..READS.len()).flat_map(|r| (0..WRITES.len()).map(move |w| (r, w)));
    pairs.filter(|pair| *pair != (0, 0)).map(|(r, w)| decides(r, w)).collect()
}

/// 25 commands.
pub fn small() -> Vec<Command> {
    SMALL.into_iter().map(|(r, w)| decides(r, w)).collect()
}

/// Every `n`th command of the whole catalogue: 112 are every second, 75 every third.
pub fn every(n: usize) -> Vec<Command> {
    whole().into_iter().step_by(n).collect()
}

/// Every second command of the small catalogue: 13.
pub fn few() -> Vec<Command> {
    small().into_iter().step_by(2).collect()
}

/// 6 commands whose records are in one event, in two of a partition, in two of two partitions, in a fenced event, in an
/// item because of a fence, and in an item because a partition is not read.
pub fn keyed() -> Vec<Command> {
    [(1, 2), (3, 6), (5, 7), (10, 8), (10, 3), (4, 3)].map(|(r, w)| decides(r, w)).into()
}

/// All scenarios of `writers` writers with one command each: as multisets, because writers are equal. They start from
/// each of `befores`.
pub fn scenarios(commands: &[Command], writers: usize, befores: &[&'static [u8]]) -> Vec<Scenario> {
    let all: Vec<Vec<Command>> = commands.iter().map(|command| vec![*command]).collect();
    let all = multisets(&all, writers);
    let with = |before: &'static [u8]| {
        all.iter().map(move |writers| Scenario { before, writers: writers.clone() })
    };
    befores.iter().flat_map(|before| with(before)).collect()
}

/// All scenarios of `writers` writers with two commands each.
pub fn sequences(commands: &[Command], writers: usize) -> Vec<Scenario> {
    let pairs = commands.iter().flat_map(|a| commands.iter().map(|b| vec![*a, *b]));
    let all = multisets(&pairs.collect::<Vec<_>>(), writers).into_iter();
    all.map(|writers| Scenario { before: &[], writers }).collect()
}

/// A writer of two commands, beside a writer of one.
pub fn warm(commands: &[Command]) -> Vec<Scenario> {
    let beside = |other: &Command| {
        let with = move |pair: Scenario| Scenario {
            before: &[],
            writers: [pair.writers, vec![vec![*other]]].concat(),
        };
        sequences(commands, 1).into_iter().map(with).collect::<Vec<_>>()
    };
    commands.iter().flat_map(beside).collect()
}

/// Every command as a writer, and every command that it causes in another.
pub fn reactions(commands: &[Command]) -> Vec<Scenario> {
    let causes = commands.iter().filter(|command| !command.is_rejection());
    let pair = |cause: &Command, effect: &Command| Scenario {
        before: &[],
        writers: vec![vec![*cause], vec![Command { cause: Some(0), ..*effect }]],
    };
    causes.flat_map(|cause| commands.iter().map(move |effect| pair(cause, effect))).collect()
}

/// Every way to choose `size` of `all`, with repeats.
fn multisets<T: Clone>(all: &[T], size: usize) -> Vec<Vec<T>> {
    if size == 0 {
        return vec![Vec::new()];
    }
    let with = |(n, first): (usize, &T)| {
        let rest = multisets(&all[n..], size - 1).into_iter();
        let first = first.clone();
        rest.map(move |rest| [vec![first.clone()], rest].concat()).collect::<Vec<_>>()
    };
    all.iter().enumerate().flat_map(with).collect()
}
