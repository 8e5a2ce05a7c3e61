//! The model's steps in words.

use crate::{
    explore::{Machine, Next},
    judge::{Failed, Model, Verdict},
    property::Broken,
    state::{Event, Events, Log, Slots, State},
    step::{Step, Then, Unknown},
    world::{Clause, Command, Partition},
};

impl Machine for Model<'_> {
    type State = State;
    type Step = Step;

    fn start(&self) -> (State, Broken) {
        let first = self.first();
        (first, self.stuck(&first))
    }

    fn next(&self, state: &State, next: &mut Vec<Next<Step, State>>) {
        self.steps(state, next);
    }

    fn line(&self, before: &State, step: &Step, after: &State) -> String {
        let command = |writer: u8| {
            self.command(usize::from(writer), before.writers[usize::from(writer)].command)
        };
        match *step {
            Step::Recall { writer, known } => {
                let slots = slots(after, writer, command(writer).reads);
                format!("W{} has a snapshot of {}{slots}", writer + 1, listed(&before.log, known))
            }
            Step::Read { writer, clause, got, then } => {
                let asked = &command(writer).reads[usize::from(clause)];
                let known = before.writers[usize::from(writer)].seen.known();
                let missing = self.matching(before, asked) & !got & !known;
                let stale = match missing {
                    0 => String::new(),
                    missing => format!(", not {}", listed(&before.log, missing)),
                };
                let then = then_in_words(then, slots(after, writer, std::slice::from_ref(asked)));
                let got = listed(&before.log, got);
                format!("W{} reads {asked}: {got}{stale}{then}", writer + 1)
            }
            Step::Tail { writer, clause, got, then } => {
                let asked = &command(writer).reads[usize::from(clause)];
                let partition = asked.partition().expect("tails are of partitions");
                let then = then_in_words(then, slots(after, writer, std::slice::from_ref(asked)));
                let got = listed(&before.log, got);
                format!("W{} reads the tail of {partition}: {got}{then}", writer + 1)
            }
            Step::Mint { writer, at } => format!("W{} mints {at}", writer + 1),
            Step::Send { writer, at, slots, verdict } => {
                let became = became(verdict, before, after);
                let it = &before.writers[usize::from(writer)];
                let folded = self.folded(before, command(writer), &it.seen);
                let unread = self.required(before, command(writer)) & !folded;
                let lost = if verdict == Verdict::Committed && unread != 0 {
                    format!("; it never folded {}", listed(&before.log, unread))
                } else {
                    String::new()
                };
                let puts = puts(command(writer), slots);
                format!("W{} puts {puts} at {at}: {became}{lost}", writer + 1)
            }
            Step::Lose { writer, at, slots, then } => {
                let then = match then {
                    Unknown::Resends => "it will send it again",
                    Unknown::DecidesAgain => "it decides again",
                    Unknown::Crashes => "it crashes, and another process decides",
                };
                let puts = puts(command(writer), slots);
                format!("W{} puts {puts} at {at}: no answer; {then}", writer + 1)
            }
            Step::Misjudge { writer } => {
                format!("W{} sends it again: TransactionConflict; it decides again", writer + 1)
            }
            Step::Arrive { request, verdict } => {
                let sent = before.in_flight[usize::from(request)].expect("it is in flight");
                let became = became(verdict, before, after);
                format!("the request of W{} of {} arrives: {became}", sent.writer + 1, sent.at)
            }
            Step::Show { event, in_index } => {
                let place = if in_index { "its index" } else { "the table" };
                format!("{} shows in {place}", listed(&before.log, 1 << event))
            }
            Step::Answer { writer, failed } if failed == Failed::default() => {
                format!("W{} answers its rejection", writer + 1)
            }
            Step::Answer { writer, failed } => {
                format!("W{} validates its rejection: {}", writer + 1, changed(failed))
            }
            Step::Repeat { writer, failed } if failed == Failed::default() => {
                let found = self.found(before, usize::from(writer));
                format!("W{} answers with its events, {}", writer + 1, listed(&before.log, found))
            }
            Step::Repeat { writer, failed } => {
                format!("W{} finds its events, and validates: {}", writer + 1, changed(failed))
            }
            Step::Decline { writer, recorded: true, .. } => {
                format!("W{} comes to nothing: its command is recorded already", writer + 1)
            }
            Step::Decline { writer, failed, .. } if failed == Failed::default() => {
                format!("W{} comes to nothing, and answers so", writer + 1)
            }
            Step::Decline { writer, failed, .. } => {
                format!("W{} comes to nothing, and validates: {}", writer + 1, changed(failed))
            }
            Step::Validate { writer, clause } => {
                let clause = &command(writer).reads[usize::from(clause)];
                format!("W{} validates {clause}", writer + 1)
            }
        }
    }
}

/// The slots of a command's puts, after `slots`.
fn puts(command: &Command, mut slots: Slots) -> String {
    let mut texts = Vec::new();
    for &shape in command.writes {
        let event = Event { shape, ..Event::default() };
        let partition = event.shape().partition;
        slots[partition as usize] += 1;
        texts.push(format!("{partition}/{}", slots[partition as usize]));
    }
    texts.join(" and ")
}

/// Slot m of each partition that `clauses` read.
fn slots(after: &State, writer: u8, clauses: &[Clause]) -> String {
    let seen = &after.writers[usize::from(writer)].seen;
    let slots = clauses.iter().filter_map(Clause::partition);
    let slots: Vec<_> = slots.map(|p| format!("{p} seen to slot {}", seen.slot(p))).collect();
    if slots.is_empty() { String::new() } else { format!("; {}", slots.join(", ")) }
}

fn then_in_words(then: Then, slots: String) -> String {
    match then {
        Then::OnTop => slots,
        Then::OutOfOrder => format!("{slots}; folded on top of a later event"),
        Then::ReadAgain => "; it will read everything again".to_owned(),
    }
}

fn changed(failed: Failed) -> String {
    let slots = Partition::ALL.into_iter().filter(|p| failed.slots & p.bit() != 0);
    let mut parts: Vec<_> = slots.map(|p| format!("the next slot of {p} is taken")).collect();
    if failed.fences {
        parts.push("a fence has another count".to_owned());
    }
    parts.join(", ")
}

fn became(verdict: Verdict, before: &State, after: &State) -> String {
    match verdict {
        Verdict::Committed => {
            let new = (1_u32 << after.log.len()) - (1 << before.log.len());
            let new = u16::try_from(new).unwrap_or(Events::MAX);
            format!("commits {}", listed(&after.log, new))
        }
        Verdict::Already => "its event is there already".to_owned(),
        Verdict::Recorded => "its command is recorded already".to_owned(),
        Verdict::Conflict(failed) => changed(failed),
        Verdict::Again { floor: 0, .. } => "the slot is taken, it takes the next".to_owned(),
        Verdict::Again { floor, bumped: 0 } => format!("the head is in the way, {floor} is not"),
        Verdict::Again { .. } => "slot and head are in the way, it takes the next".to_owned(),
    }
}

fn listed(log: &Log, events: Events) -> String {
    let listed: Vec<_> = log
        .pick(events)
        .map(|event| {
            let shape = event.shape();
            format!("{}/{} {} at {}", shape.partition, event.slot, shape.name(), event.at)
        })
        .collect();
    if listed.is_empty() { "nothing".to_owned() } else { listed.join(", ") }
}
