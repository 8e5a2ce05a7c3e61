//! Visits every state that can be reached, nearest first, so that a trace is a shortest one.

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
    hash::{BuildHasherDefault, Hasher},
};

use indexmap::IndexMap;

use crate::{
    catalogue::SHAPES,
    judge::{Model, Scenario, Verdict},
    property::Property,
    state::{Events, Fence, Log, State},
    step::{Next, Step},
    world::{Command, join},
};

/// Each state with the place of the one that it was first reached from.
type States = IndexMap<State, u32, BuildHasherDefault<Mix>>;

/// What an exploration saw.
#[derive(Clone, Debug, Default)]
pub struct Explored {
    /// Distinct states.
    pub states: u64,
    /// Steps between them.
    pub transitions: u64,
    /// The shortest way to break each property that can be broken, one line a step.
    pub broken: BTreeMap<Property, Vec<String>>,
}

/// Explores everything that can happen. The states are kept whole: no two are taken for one.
pub fn explore(model: &Model<'_>) -> Explored {
    let mut states = States::default();
    let mut explored = Explored::default();
    let mut next = Vec::new();
    let start = model.start();
    states.insert(start, 0);
    let mut broken = model.stuck(&start);
    if broken != 0 {
        explored.broken.insert(Property::NoPermanentConflict, Vec::new());
    }
    let mut at = 0;
    while let Some((state, _)) = states.get_index(at) {
        let state = *state;
        model.next(&state, &mut next);
        for Next { step, state: after, broken: now } in &next {
            explored.transitions += 1;
            let parent = u32::try_from(at).expect("a scenario has fewer than 2^32 states");
            states.entry(*after).or_insert(parent);
            if now & !broken == 0 {
                continue;
            }
            let mut trace = trace(model, &states, at);
            trace.push(line(model, &state, *step, after));
            for property in Property::ALL {
                if property.when(true) & now & !broken != 0 {
                    explored.broken.insert(property, trace.clone());
                }
            }
            broken |= now;
        }
        at += 1;
    }
    explored.states = states.len() as u64;
    explored
}

/// The steps from the start to the state at `end`.
fn trace(model: &Model<'_>, states: &States, end: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut at = end;
    let mut next = Vec::new();
    while at != 0 {
        let (after, parent) = states.get_index(at).expect("a trace leads through known states");
        at = *parent as usize;
        let (before, _) = states.get_index(at).expect("a parent is known");
        model.next(before, &mut next);
        let step = next.iter().find(|next| next.state == *after).expect("a child is reached");
        lines.push(line(model, before, step.step, after));
    }
    lines.reverse();
    lines
}

/// Multiply and rotate, as compilers hash: keys are no one's input.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(u64::from(word));
    }

    fn write_u16(&mut self, word: u16) {
        self.write_u64(u64::from(word));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_isize(&mut self, word: isize) {
        self.write_u64(word.cast_unsigned() as u64);
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// One line for a step.
fn line(model: &Model<'_>, before: &State, step: Step, after: &State) -> String {
    let name = |writer: u8| format!("W{}", writer + 1);
    let command = |writer: u8| {
        model.command(usize::from(writer), before.writers[usize::from(writer)].command)
    };
    match step {
        Step::Read { writer, clause, got } => {
            let asked = command(writer).reads[usize::from(clause)];
            let missing = model.matching(before, &asked) & !got;
            let stale = if missing == 0 || command(writer).follows {
                String::new()
            } else {
                format!(", not {}", listed(&before.log, missing))
            };
            format!("{} reads {asked}: {}{stale}", name(writer), listed(&before.log, got))
        }
        Step::Page { writer, clause, got: 0 } => {
            format!(
                "{} reads on in {}: the end",
                name(writer),
                command(writer).reads[usize::from(clause)]
            )
        }
        Step::Page { writer, clause, got } => {
            let asked = command(writer).reads[usize::from(clause)];
            format!("{} reads a page of {asked}: {}", name(writer), listed(&before.log, got))
        }
        Step::Mint { writer, ms } => format!("{} mints {ms}", name(writer)),
        Step::Send { writer, ms, verdict } => {
            let became = became(verdict, before, after);
            let folded = before.writers[usize::from(writer)].seen.iter().fold(0, |a, b| a | b);
            let unread = model.required(before, command(writer)) & !folded;
            let lost = if verdict == Verdict::Committed && unread != 0 {
                format!("; never read {}", listed(&before.log, unread))
            } else {
                String::new()
            };
            format!("{} appends at {ms}: {became}{lost}", name(writer))
        }
        Step::Lose { writer, ms, restarts } => {
            let then = if restarts { "decides again" } else { "will send it again" };
            format!("{} appends at {ms}; no answer comes, it {then}", name(writer))
        }
        Step::Arrive { slot, verdict } => {
            let sent = before.in_flight[usize::from(slot)].expect("it is in flight");
            let became = became(verdict, before, after);
            format!("the append of {} at {} arrives: {became}", name(sent.writer), sent.ms)
        }
        Step::Show { event, in_index } => {
            let place = if in_index { "its index" } else { "the table" };
            format!("{} shows in {place}", listed(&before.log, 1 << event))
        }
        Step::Answer { writer, stands: true } => format!("{} answers its refusal", name(writer)),
        Step::Answer { writer, .. } => format!("{} finds other counts", name(writer)),
        Step::Fence { writer, fence: Fence { count, head } } => {
            let together = model.protocol.fence_in_transaction;
            let how = if together { "in a transaction" } else { "by itself" };
            let head = head.map_or("no head".to_owned(), |head| format!("head {head}"));
            format!("{} reads the fence {how}: {count}, {head}", name(writer))
        }
        Step::Accept { writer, accepted: Some(accepted) } => {
            format!("{} accepts {}", name(writer), listed(&before.log, accepted))
        }
        Step::Accept { writer, .. } => format!("{} accepts nothing", name(writer)),
    }
}

fn became(verdict: Verdict, before: &State, after: &State) -> String {
    match verdict {
        Verdict::Committed => {
            let new = (1 << after.log.len()) - (1 << before.log.len());
            format!("commits {}", listed(&after.log, u16::try_from(new).unwrap_or(Events::MAX)))
        }
        Verdict::Already => "its event is there already".to_owned(),
        Verdict::Recorded => "its command is recorded already".to_owned(),
        Verdict::Conflict => "conflict".to_owned(),
        Verdict::Behind(head) => format!("behind {head}, mints again"),
    }
}

fn listed(log: &Log, events: Events) -> String {
    let mut text = String::new();
    for event in log.pick(events) {
        let comma = if text.is_empty() { "" } else { ", " };
        let shape = &SHAPES[usize::from(event.shape)];
        write!(text, "{comma}{shape} at {}", event.position).expect("a String takes it");
    }
    if text.is_empty() { "nothing".to_owned() } else { text }
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

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(cause) = self.cause {
            write!(f, "because of W{}, ", cause + 1)?;
        }
        match (self.reads, self.writes) {
            (reads, []) => {
                f.write_str(if self.follows { "follows " } else { "refuses by " })?;
                join(f, " and ", reads.iter())
            }
            ([], writes) => {
                f.write_str("imports ")?;
                join(f, "; ", writes.iter().map(|&shape| &SHAPES[usize::from(shape)]))
            }
            (reads, writes) => {
                f.write_str("reads ")?;
                join(f, " and ", reads.iter())?;
                f.write_str(", writes ")?;
                join(f, "; ", writes.iter().map(|&shape| &SHAPES[usize::from(shape)]))
            }
        }
    }
}
