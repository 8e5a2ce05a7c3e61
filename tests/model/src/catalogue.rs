//! The commands, and the scenarios made of them.

use crate::{
    judge::Scenario,
    world::{A, B, Boundary, C, Clause, Command, Shape},
};
use Boundary::{C1, C2, O1, O1P1, O2, O2P1, P1, S1, S2};

const fn shape(event_type: u8, read_by: &'static [Boundary]) -> Shape {
    Shape { event_type, read_by, secondary: None }
}

/// The events that commands write.
pub const SHAPES: [Shape; 11] = [
    shape(A, &[C1]),
    shape(B, &[C1]),
    shape(A, &[C2]),
    shape(A, &[C1, S1]),
    shape(A, &[C2, S1]),
    shape(B, &[C2, S1]),
    shape(A, &[C1, S1, S2]),
    shape(B, &[P1]),
    Shape { event_type: A, read_by: &[P1, O1P1], secondary: Some(O1) },
    Shape { event_type: A, read_by: &[P1, O2P1], secondary: Some(O2) },
    shape(C, &[S1]),
];

const fn on(boundary: Boundary, types: u8) -> Clause {
    Clause { boundary, types }
}

/// The queries; the first is that of an import.
const READS: [&[Clause]; 15] = [
    &[],
    &[on(C1, A)],
    &[on(C1, B)],
    &[on(C1, A | B)],
    &[on(S1, A)],
    &[on(S1, A | B)],
    &[on(C1, A), on(C2, A)],
    &[on(C1, A), on(S1, A)],
    &[on(C1, A | B), on(S1, A)],
    &[on(S1, A), on(S2, A)],
    &[on(C1, A), on(S1, B)],
    &[on(C2, A), on(S1, A)],
    &[on(O1P1, A)],
    &[on(O2P1, A), on(P1, B)],
    &[on(O1P1, A), on(S1, A)],
];

/// What a command writes; the first is that of a refusal.
const WRITES: [&[u8]; 12] =
    [&[], &[0], &[1], &[2], &[3], &[5], &[0, 0], &[0, 1], &[0, 2], &[6], &[8], &[9]];

/// The small catalogue: each query and each write of the whole one that differs in kind.
const SMALL: [(usize, usize); 20] = [
    (0, 1),
    (0, 4),
    (0, 8),
    (0, 10),
    (1, 1),
    (1, 2),
    (3, 1),
    (4, 3),
    (4, 4),
    (6, 2),
    (6, 8),
    (7, 4),
    (8, 6),
    (9, 9),
    (11, 4),
    (12, 10),
    (13, 11),
    (14, 10),
    (6, 0),
    (7, 0),
];

const fn decides(reads: usize, writes: usize) -> Command {
    Command { reads: READS[reads], writes: WRITES[writes], follows: false, cause: None }
}

/// Every query with every write: 179 commands.
pub fn whole() -> Vec<Command> {
    let pairs = (0..READS.len()).flat_map(|r| (0..WRITES.len()).map(move |w| (r, w)));
    pairs.filter(|pair| *pair != (0, 0)).map(|(r, w)| decides(r, w)).collect()
}

/// 20 commands.
pub fn small() -> Vec<Command> {
    SMALL.into_iter().map(|(r, w)| decides(r, w)).collect()
}

/// All scenarios of `writers` writers with one command each: as multisets, for writers are equal.
/// They start from each of `befores`.
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

const STORED_IN_S1: &[Clause] = &[on(S1, C)];
/// Writers of s1, which partitions C and is a tag of A: C is stored there, A is only filed there.
const OF_S1: [Command; 4] = [
    Command { reads: &[], writes: &[10], follows: false, cause: None },
    Command { reads: &[], writes: &[3], follows: false, cause: None },
    Command { reads: &[], writes: &[10, 3], follows: false, cause: None },
    Command { reads: &[on(S1, A)], writes: &[10], follows: false, cause: None },
];

/// A follower of c1 beside every multiset of `writers` writers, and one of s1 beside its own.
pub fn followed(commands: &[Command], writers: usize) -> Vec<Scenario> {
    let beside = |commands: &[Command], reads| {
        let follows = Command { reads, writes: &[], follows: true, cause: None };
        let mut all = scenarios(commands, writers, &[&[]]);
        all.iter_mut().for_each(|scenario| scenario.writers.push(vec![follows]));
        all
    };
    let mut all = beside(commands, READS[3]);
    all.extend(beside(&OF_S1, STORED_IN_S1));
    all
}

/// Every command as a writer, and every command that it causes in another.
pub fn reactions(commands: &[Command]) -> Vec<Scenario> {
    let causes = commands.iter().filter(|command| !command.writes.is_empty());
    let pair = |cause: &Command, effect: &Command| Scenario {
        before: &[],
        writers: vec![vec![*cause], vec![Command { cause: Some(0), ..*effect }]],
    };
    causes.flat_map(|cause| commands.iter().map(move |effect| pair(cause, effect))).collect()
}

/// Every way to choose `size` of `all`, the same one more than once included.
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
