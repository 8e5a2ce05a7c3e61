//! The possible next steps.

use crate::{
    environment::{AHEAD, Answers, Clocks, View},
    explore::Next,
    judge::{Failed, Model, Verdict, low, transaction},
    property::Property,
    protocol::Learn,
    state::{Event, Events, Place, Seen, Slots, State, Writer},
    world::{Partition, Partitions},
};

/// One event of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A command begins with a snapshot that knows these events.
    Recall { writer: u8, known: Events },
    /// A Query of a clause returns these events.
    Read { writer: u8, clause: u8, got: Events, then: Then },
    /// A strong Query of a tail returns these events.
    Tail { writer: u8, clause: u8, got: Events, then: Then },
    /// An `at` is minted.
    Mint { writer: u8, at: u8 },
    /// An append is sent, and its answer arrives.
    Send { writer: u8, at: u8, slots: Slots, verdict: Verdict },
    /// An append is sent, and its answer is lost.
    Lose { writer: u8, at: u8, slots: Slots, then: Unknown },
    /// An append whose answer was lost is sent again, and TransactionConflict counts as a conflict.
    Misjudge { writer: u8 },
    /// A request whose answer was lost takes effect or fails after all.
    Arrive { request: u8, verdict: Verdict },
    /// An item becomes visible.
    Show { event: u8, in_index: bool },
    /// A rejection is validated: it is answered, or something has changed.
    Answer { writer: u8, failed: Failed },
    /// One clause of a rejection is validated.
    Validate { writer: u8, clause: u8 },
    /// A repeat finds the events of the first run, and is validated.
    Repeat { writer: u8, failed: Failed },
    /// A repeat decides to append nothing, and is validated; then its item may be found.
    Decline { writer: u8, failed: Failed, recorded: bool },
}

/// The step after a tail, of a partition or after a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Its matching events, if any, are folded on top.
    OnTop,
    /// It is folded on top of later events.
    OutOfOrder,
    /// Everything is read again.
    ReadAgain,
}

/// The reaction of a writer without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// It sends the same request again.
    Resends,
    /// It decides again.
    DecidesAgain,
    /// It crashes, and another process decides.
    Crashes,
}

/// The possible steps with their results.
pub(crate) type Steps = Vec<Next<Step, State>>;

impl Model<'_> {
    /// The state that everything starts from.
    pub(crate) fn first(&self) -> State {
        let mut state = State::default();
        for (n, &shape) in self.scenario.before.iter().enumerate() {
            let number = low(n) + 1;
            let (in_table, in_index) = (true, true);
            let at = if self.environment.ahead { AHEAD + number } else { number };
            let mut event = Event { shape, at, in_table, in_index, ..Event::default() };
            event.append = (0, number);
            event.slot = state.log.last_slot(event.shape().partition) + 1;
            state.log.push(event);
            state.now = number;
        }
        for (writer, commands) in self.scenario.writers.iter().enumerate() {
            if !commands.is_empty() {
                self.begin(&mut state, writer);
            }
        }
        state
    }

    /// Everything that can happen in `state`.
    pub(crate) fn steps(&self, state: &State, next: &mut Steps) {
        let writers = 0..self.scenario.writers.len();
        if self.environment.fused {
            return writers.for_each(|writer| self.act_through(state, writer, next));
        }
        writers.for_each(|writer| self.act(state, writer, next));
        self.arrivals(state, next);
        self.showings(state, next);
    }

    /// The writer's next attempt from its reads to its end, in one step.
    fn act_through(&self, state: &State, writer: usize, next: &mut Steps) {
        let mut open = Vec::new();
        self.act(state, writer, &mut open);
        while let Some(now) = open.pop() {
            if now.state.writers[writer].place.ends_attempt() {
                next.push(now);
                continue;
            }
            let from = open.len();
            self.act(&now.state, writer, &mut open);
            open[from..].iter_mut().for_each(|later| later.broken |= now.broken);
        }
    }

    fn act(&self, state: &State, writer: usize, next: &mut Steps) {
        let it = &state.writers[writer];
        if it.place.is_over() {
            return;
        }
        let command = self.command(writer, it.command);
        match it.place {
            Place::Start | Place::READ
                if command.cause.is_some() && self.cause(state, command).is_none() => {}
            Place::Start => self.recall(state, writer, next),
            Place::Read { .. } if !command.is_conditional() => self.ready(state, writer, next),
            Place::Read { clause } => self.read(state, writer, clause, next),
            Place::Ready if command.is_rejection() => self.answer(state, writer, next),
            Place::Ready | Place::Again if self.found(state, writer) != 0 => {
                self.repeat(state, writer, next);
            }
            Place::Ready => {
                self.ready(state, writer, next);
                self.decline(state, writer, next);
            }
            Place::Again => {
                self.mint_from(state, writer, next);
                self.decline(state, writer, next);
            }
            Place::Minted { at } => self.send(state, writer, at, next),
            Place::Tail { partitions } => self.tail(state, writer, partitions, next),
            Place::Done | Place::GaveUp => {}
        }
    }

    /// The writer begins its current command, or begins it again.
    pub(crate) fn begin(&self, state: &mut State, writer: usize) {
        let command = self.command(writer, state.writers[writer].command);
        let shown = state.log.select(|event| event.in_table) & self.required(state, command);
        let it = &mut state.writers[writer];
        let recalls = self.environment.snapshots && it.conflicts == 0 && command.is_conditional();
        it.seen = Seen::default();
        (it.validated, it.unsearched) = (0, 0);
        it.place = if recalls { Place::Start } else { Place::READ };
        if command.is_rejection() && it.conflicts == 0 {
            it.since = low(u16::BITS - shown.leading_zeros());
        }
    }

    /// The writer's command is settled.
    pub(crate) fn settle(&self, state: &mut State, writer: usize) {
        let it = &mut state.writers[writer];
        *it = Writer {
            command: it.command + 1,
            round: it.round + 1,
            floor: it.floor,
            answers_lost: it.answers_lost,
            ..Writer::default()
        };
        if usize::from(it.command) < self.scenario.writers[writer].len() {
            self.begin(state, writer);
        }
    }

    /// What was read has changed. If only slots changed, their tails are read.
    pub(crate) fn conflict(&self, state: &mut State, writer: usize, failed: Failed) {
        let it = &mut state.writers[writer];
        it.conflicts += 1;
        let fences = failed.fences && self.protocol.learn == Learn::Matching;
        if it.conflicts > self.environment.conflicts_max {
            it.place = Place::GaveUp;
            it.seen = Seen::default();
        } else if fences || failed.slots == 0 {
            self.begin(state, writer);
        } else {
            it.place = Place::Tail { partitions: failed.slots };
        }
    }

    /// Finds the last slots of the partitions that are written and were not read, and mints.
    fn ready(&self, state: &State, writer: usize, next: &mut Steps) {
        let command = self.command(writer, state.writers[writer].command);
        self.find_last(state, writer, self.own(command) & !command.read_partitions(), next);
    }

    fn find_last(&self, state: &State, writer: usize, unread: Partitions, next: &mut Steps) {
        let Some(p) = Partition::ALL.into_iter().find(|p| unread & p.bit() != 0) else {
            return self.mint_from(state, writer, next);
        };
        let slot = |event: &Event| if event.is_in(p) { event.slot } else { 0 };
        let largest = |events| state.log.pick(events).map(slot).max().unwrap_or(0);
        let visible = state.log.select(|event| event.in_table);
        let oldest = match self.environment.table {
            View::Subset => largest(state.writers[writer].seen.known()),
            View::Fresh | View::PerItem => largest(visible),
        };
        for last in oldest..=largest(visible) {
            let mut after = *state;
            *after.writers[writer].seen.slot_mut(p) = last;
            self.find_last(&after, writer, unread & !p.bit(), next);
        }
    }

    fn mint_from(&self, state: &State, writer: usize, next: &mut Steps) {
        let readings = match self.environment.clocks {
            Clocks::Perfect | Clocks::Late => state.now + 1..=state.now + 1,
            Clocks::Skewed(readings) => 1..=readings,
        };
        let command = self.command(writer, state.writers[writer].command);
        let mut minted = None;
        for reading in readings {
            let at = self.mint(state, writer, reading);
            if minted.replace(at) == Some(at) {
                continue;
            }
            let mut state = *state;
            if let Clocks::Perfect | Clocks::Late = self.environment.clocks {
                // Later than the last event of the append.
                state.now = at + low(command.writes.len()) - 1;
            }
            if self.environment.clocks == Clocks::Late {
                state.writers[writer].place = Place::Minted { at };
                next.push(Next::fine(Step::Mint { writer: low(writer), at }, state));
            } else {
                self.send(&state, writer, at, next);
            }
        }
    }

    fn send(&self, state: &State, writer: usize, at: u8, next: &mut Steps) {
        let sent = transaction(state, writer, at);
        let command = self.command(writer, sent.command);
        let verdict = self.judge(state, &sent);
        let mut after = *state;
        let mut broken = 0;
        if self.protocol.hybrid_clock {
            after.writers[writer].floor = at + low(command.writes.len());
        }
        match verdict {
            Verdict::Committed => {
                broken = self.commit(&mut after, &sent);
                self.settle(&mut after, writer);
                broken |= self.stuck(&after);
            }
            Verdict::Already | Verdict::Recorded => self.settle(&mut after, writer),
            Verdict::Conflict(failed) => {
                let wrong = self.knows_all(state, command, &sent.seen);
                broken = Property::NoFalseConflict.when(wrong);
                self.conflict(&mut after, writer, failed);
            }
            Verdict::Again { floor, bumped } => {
                let it = &mut after.writers[writer];
                it.floor = it.floor.max(floor);
                it.place = Place::Again;
                for p in Partition::ALL.into_iter().filter(|p| bumped & p.bit() != 0) {
                    *it.seen.slot_mut(p) += 1;
                }
            }
        }
        let (number, slots) = (low(writer), sent.seen.slots);
        let step = Step::Send { writer: number, at, slots, verdict };
        next.push(Next { step, state: after, broken });
        self.lose(state, writer, at, next);
        if self.protocol.transaction_conflict_judges && state.writers[writer].answers_lost > 0 {
            let mut after = *state;
            self.conflict(&mut after, writer, Failed { slots: 0, fences: true });
            next.push(Next::fine(Step::Misjudge { writer: number }, after));
        }
    }

    /// The answer is lost: the request is in flight, and the writer sends it again or starts over.
    fn lose(&self, state: &State, writer: usize, at: u8, next: &mut Steps) {
        let free = state.in_flight.iter().position(Option::is_none);
        let (Some(request), 0) = (free, state.writers[writer].answers_lost) else { return };
        let known =
            if self.protocol.resend_unknown { Unknown::Resends } else { Unknown::DecidesAgain };
        let choices: &[Unknown] = match self.environment.answers {
            Answers::Arrive => &[],
            Answers::Lost => &[known],
            Answers::LostOrCrashed => &[known, Unknown::Crashes],
        };
        for &then in choices {
            let mut after = *state;
            let sent = transaction(state, writer, at);
            after.in_flight[request] = Some(sent);
            let it = &mut after.writers[writer];
            it.answers_lost += 1;
            it.place = Place::Minted { at };
            if then != Unknown::Resends {
                it.round += 1;
                self.begin(&mut after, writer);
            }
            if then == Unknown::Crashes {
                // Another process remembers nothing.
                after.writers[writer].floor = 0;
            }
            let step = Step::Lose { writer: low(writer), at, slots: sent.seen.slots, then };
            next.push(Next::fine(step, after));
        }
    }

    fn arrivals(&self, state: &State, next: &mut Steps) {
        for (request, sent) in state.in_flight.iter().enumerate() {
            let Some(sent) = sent else { continue };
            let verdict = self.judge(state, sent);
            let mut after = *state;
            after.in_flight[request] = None;
            let mut broken = 0;
            if verdict == Verdict::Committed {
                broken = self.commit(&mut after, sent);
                broken |= self.stuck(&after);
            }
            let step = Step::Arrive { request: low(request), verdict };
            next.push(Next { step, state: after, broken });
        }
    }

    fn showings(&self, state: &State, next: &mut Steps) {
        for (n, event) in state.log.events().iter().enumerate() {
            for in_index in [false, true] {
                if if in_index { event.in_index } else { event.in_table } {
                    continue;
                }
                let mut after = *state;
                let event = &mut after.log.events_mut()[n];
                *(if in_index { &mut event.in_index } else { &mut event.in_table }) = true;
                next.push(Next::fine(Step::Show { event: low(n), in_index }, after));
            }
        }
    }
}
