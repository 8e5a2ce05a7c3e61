//! What can happen next.

use std::iter::successors;

use crate::{
    environment::{Answers, Clocks, View},
    judge::{Model, Verdict, low, transaction},
    property::{Broken, Property},
    state::{Event, Events, Fence, Place, Position, State, Writer},
};

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A Query of a clause returns these events.
    Read { writer: u8, clause: u8, got: Events },
    /// A page of a Query.
    Page { writer: u8, clause: u8, got: Events },
    /// A position is minted.
    Mint { writer: u8, ms: u8 },
    /// An append is sent, and its answer arrives.
    Send { writer: u8, ms: u8, verdict: Verdict },
    /// An append is sent, and its answer is lost.
    Lose { writer: u8, ms: u8, restarts: bool },
    /// A request whose answer was lost is decided after all.
    Arrive { slot: u8, verdict: Verdict },
    /// An item becomes visible.
    Show { event: u8, in_index: bool },
    /// A refusal is answered, or must read again.
    Answer { writer: u8, stands: bool },
    /// A follower reads its fence.
    Fence { writer: u8, fence: Fence },
    /// A follower accepts of its page, or reads it again.
    Accept { writer: u8, accepted: Option<Events> },
}

/// What one Query can return of the events that are visible to it.
pub(crate) fn results(view: View, visible: Events) -> impl Iterator<Item = Events> {
    let smaller =
        move |got: &Events| (*got != 0 && view == View::Subset).then(|| (got - 1) & visible);
    successors(Some(visible), smaller)
}

/// A step with what it leads to and what it breaks.
pub(crate) struct Next {
    pub step: Step,
    pub state: State,
    pub broken: Broken,
}

impl Model<'_> {
    /// The state that everything starts from.
    pub(crate) fn start(&self) -> State {
        let mut state = State::default();
        for (n, &shape) in self.scenario.before.iter().enumerate() {
            let position = Position::new(low(n) + 1, 0, 0, 0);
            let (in_table, in_index) = (true, true);
            state.log.push(Event { position, shape, in_table, in_index, unfiled: false });
            state.now = low(n) + 1;
        }
        for (writer, commands) in self.scenario.writers.iter().enumerate() {
            if !commands.is_empty() {
                self.begin(&mut state, writer);
            }
        }
        state
    }

    /// Everything that can happen in `state`.
    pub(crate) fn next(&self, state: &State, next: &mut Vec<Next>) {
        next.clear();
        let writers = 0..self.scenario.writers.len();
        if self.environment.fused {
            return writers.for_each(|writer| self.act_through(state, writer, next));
        }
        writers.for_each(|writer| self.act(state, writer, next));
        self.arrivals(state, next);
        self.showings(state, next);
    }

    /// The writer's next attempt from its reads to its end, in one step.
    fn act_through(&self, state: &State, writer: usize, next: &mut Vec<Next>) {
        let mut open = Vec::new();
        self.act(state, writer, &mut open);
        while let Some(now) = open.pop() {
            let place = now.state.writers[writer].place;
            if place.is_over() || place == Place::START {
                next.push(now);
                continue;
            }
            let from = open.len();
            self.act(&now.state, writer, &mut open);
            open[from..].iter_mut().for_each(|later| later.broken |= now.broken);
        }
    }

    fn act(&self, state: &State, writer: usize, next: &mut Vec<Next>) {
        let it = &state.writers[writer];
        match it.place {
            Place::Done | Place::GaveUp => {}
            Place::Read { clause, after } => {
                let command = self.command(writer, it.command);
                let caused = command.cause.is_none() || self.cause(state, command).is_some();
                if command.follows {
                    self.follow(state, writer, next);
                } else if caused && !command.is_conditional() {
                    self.ready(state, writer, next);
                } else if caused {
                    self.read(state, writer, (clause, after), next);
                }
            }
            Place::Ready if self.command(writer, it.command).writes.is_empty() => {
                self.answer(state, writer, next);
            }
            Place::Ready => self.ready(state, writer, next),
            Place::Minted { ms } => self.send(state, writer, ms, next),
            Place::Page { .. } | Place::Counted { .. } => self.follow(state, writer, next),
        }
    }

    /// The writer begins its current command, or begins it again.
    pub(crate) fn begin(&self, state: &mut State, writer: usize) {
        let command = self.command(writer, state.writers[writer].command);
        let since = if command.writes.is_empty() && !command.follows { state.log.len() } else { 0 };
        let it = &mut state.writers[writer];
        let accepted = if command.follows { it.seen[0] } else { 0 };
        it.seen = [accepted, 0];
        it.since = since;
        it.place = Place::START;
    }

    /// The writer's command is settled.
    fn settle(&self, state: &mut State, writer: usize) {
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

    fn conflict(&self, state: &mut State, writer: usize) {
        let it = &mut state.writers[writer];
        it.conflicts += 1;
        if it.conflicts > self.environment.conflicts_max {
            it.place = Place::GaveUp;
            it.seen = [0, 0];
        } else {
            self.begin(state, writer);
        }
    }

    fn read(&self, state: &State, writer: usize, at: (u8, Position), next: &mut Vec<Next>) {
        let (clause, after) = at;
        let command = self.command(writer, state.writers[writer].command);
        let asked = &command.reads[usize::from(clause)];
        let visible = self.visible(state, asked);
        let turn = if usize::from(clause) + 1 < command.reads.len() {
            Place::Read { clause: clause + 1, after: Position::default() }
        } else {
            Place::Ready
        };
        let mut push = |step, got: Events, place| {
            let mut state = *state;
            state.writers[writer].seen[usize::from(clause)] |= got;
            state.writers[writer].place = place;
            next.push(Next { step, state, broken: 0 });
        };
        let number = low(writer);
        if self.environment.pages {
            let events = state.log.events().iter().enumerate();
            let page = events
                .filter(|(n, event)| visible & 1 << n != 0 && event.position > after)
                .min_by_key(|(_, event)| event.position);
            let got = page.map_or(0, |(n, _)| 1 << n);
            let place = page.map_or(turn, |(_, e)| Place::Read { clause, after: e.position });
            return push(Step::Page { writer: number, clause, got }, got, place);
        }
        for got in results(self.view(asked), visible) {
            push(Step::Read { writer: number, clause, got }, got, turn);
        }
    }

    /// A refusal: rule 6.
    fn answer(&self, state: &State, writer: usize, next: &mut Vec<Next>) {
        let it = &state.writers[writer];
        let command = self.command(writer, it.command);
        let folded = it.seen[0] | it.seen[1];
        let stands = !self.protocol.validate_refusals || self.holds(state, command, it.seen);
        let required = self.required(state, command);
        let held = |length: u8| {
            // The log as it was after each commit since the command began.
            let boundary = state.log.events().get(usize::from(length));
            boundary.is_none_or(|event| event.position.is_first())
                && required & ((1 << length) - 1) == folded
        };
        let stale = stands && !(it.since..=state.log.len()).any(held);
        let mut after = *state;
        if stands {
            self.settle(&mut after, writer);
        } else {
            self.conflict(&mut after, writer);
        }
        next.push(Next {
            step: Step::Answer { writer: low(writer), stands },
            state: after,
            broken: Property::NoStaleRefusal.when(stale),
        });
    }

    fn ready(&self, state: &State, writer: usize, next: &mut Vec<Next>) {
        let readings = match self.environment.clocks {
            Clocks::Perfect | Clocks::Late => state.now + 1..=state.now + 1,
            Clocks::Skewed(readings) => 1..=readings,
        };
        let mut minted = None;
        for reading in readings {
            let ms = self.mint(state, writer, reading);
            if minted.replace(ms) == Some(ms) {
                continue;
            }
            let mut state = *state;
            if let Clocks::Perfect | Clocks::Late = self.environment.clocks {
                state.now = ms;
            }
            if self.environment.clocks == Clocks::Late {
                state.writers[writer].place = Place::Minted { ms };
                next.push(Next { step: Step::Mint { writer: low(writer), ms }, state, broken: 0 });
            } else {
                self.send(&state, writer, ms, next);
            }
        }
    }

    fn send(&self, state: &State, writer: usize, ms: u8, next: &mut Vec<Next>) {
        let sent = transaction(state, writer, ms);
        let verdict = self.judge(state, &sent);
        let mut after = *state;
        let mut broken = 0;
        if self.protocol.hybrid_clock {
            after.writers[writer].floor = ms + 1;
        }
        match verdict {
            Verdict::Committed => {
                broken = self.commit(&mut after, &sent);
                self.settle(&mut after, writer);
                broken |= self.stuck(&after) | self.skipped(&after);
            }
            Verdict::Already | Verdict::Recorded => self.settle(&mut after, writer),
            Verdict::Conflict => {
                let command = self.command(writer, sent.command);
                let false_one = self.required(state, command) & !sent.folded() == 0;
                broken = Property::NoFalseConflict.when(false_one);
                self.conflict(&mut after, writer);
            }
            Verdict::Behind(head) => {
                after.writers[writer].floor = after.writers[writer].floor.max(head + 1);
                after.writers[writer].place = Place::Ready;
            }
        }
        let number = low(writer);
        let step = Step::Send { writer: number, ms, verdict };
        next.push(Next { step, state: after, broken });
        self.lose(state, writer, ms, next);
    }

    /// The answer is lost: the request is in flight, and the writer sends it again or starts over.
    fn lose(&self, state: &State, writer: usize, ms: u8, next: &mut Vec<Next>) {
        let free = state.in_flight.iter().position(Option::is_none);
        let (Some(slot), 0) = (free, state.writers[writer].answers_lost) else { return };
        let choices: &[bool] = match self.environment.answers {
            Answers::Arrive => &[],
            Answers::LostThenResent => &[false],
            Answers::LostThenRestarted => &[false, true],
        };
        for &restarts in choices {
            let mut state = *state;
            state.in_flight[slot] = Some(transaction(&state, writer, ms));
            state.writers[writer].answers_lost += 1;
            state.writers[writer].place = Place::Minted { ms };
            if restarts {
                state.writers[writer].round += 1;
                // Another process: it remembers nothing.
                state.writers[writer].floor = 0;
                self.begin(&mut state, writer);
            }
            let step = Step::Lose { writer: low(writer), ms, restarts };
            next.push(Next { step, state, broken: 0 });
        }
    }

    fn arrivals(&self, state: &State, next: &mut Vec<Next>) {
        for (slot, sent) in state.in_flight.iter().enumerate() {
            let Some(sent) = sent else { continue };
            let verdict = self.judge(state, sent);
            let mut after = *state;
            after.in_flight[slot] = None;
            let mut broken = 0;
            if verdict == Verdict::Committed {
                broken = self.commit(&mut after, sent);
                broken |= self.stuck(&after) | self.skipped(&after);
            }
            next.push(Next {
                step: Step::Arrive { slot: low(slot), verdict },
                state: after,
                broken,
            });
        }
    }

    fn showings(&self, state: &State, next: &mut Vec<Next>) {
        let environment = &self.environment;
        let mut show = |n: usize, in_index: bool| {
            let mut after = *state;
            let event = &mut after.log.events_mut()[n];
            if in_index {
                event.in_index = true
            } else {
                event.in_table = true
            }
            next.push(Next {
                step: Step::Show { event: low(n), in_index },
                state: after,
                broken: 0,
            });
        };
        for (n, event) in state.log.events().iter().enumerate() {
            if environment.table == View::PerItem && !event.in_table {
                show(n, false);
            }
            if environment.index == View::PerItem && !event.in_index {
                show(n, true);
            }
        }
    }
}
