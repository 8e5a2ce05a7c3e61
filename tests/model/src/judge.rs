//! What becomes of one transaction, and which properties that breaks.

use crate::{
    catalogue::SHAPES,
    environment::{Clocks, Environment, View},
    property::{Broken, Property},
    protocol::{Condition, Guard, Protocol},
    state::{Event, Events, Fence, Position, State, Transaction},
    world::{A, B, Boundaries, Boundary, Clause, Command, TYPES, Types},
};

/// Who does what, beside which events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Shapes of the events that are there from the start.
    pub before: &'static [u8],
    /// The commands of each writer, at most two, one after the other.
    pub writers: Vec<Vec<Command>>,
}

/// A scenario in an environment under a protocol.
#[derive(Clone, Debug)]
pub struct Model<'a> {
    /// The commands.
    pub scenario: &'a Scenario,
    /// The environment.
    pub environment: Environment,
    /// The protocol.
    pub protocol: Protocol,
    /// Where each shape can be read: what the properties go by, whatever the protocol.
    readable: [Boundaries; SHAPES.len()],
    /// Where each shape is filed: what the protocol goes by.
    filed: [Boundaries; SHAPES.len()],
}

/// What becomes of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is committed now.
    Committed,
    /// Its own event is there: an earlier send of it is committed.
    Already,
    /// Its command item is there.
    Recorded,
    /// A condition of rule 3 fails.
    Conflict,
    /// Only the order guard fails; a mint later than this passes it.
    Behind(u8),
}

impl<'a> Model<'a> {
    /// The model of `scenario`.
    pub fn new(scenario: &'a Scenario, environment: Environment, protocol: Protocol) -> Self {
        let readable = SHAPES.map(|shape| shape.filing());
        let filed = if protocol.exact_filing {
            readable
        } else {
            SHAPES.map(|shape| shape.documented_filing())
        };
        Self { scenario, environment, protocol, readable, filed }
    }

    pub(crate) fn command(&self, writer: usize, command: u8) -> &Command {
        &self.scenario.writers[writer][usize::from(command)]
    }

    /// The committed events that `clause` asks for.
    pub(crate) fn matching(&self, state: &State, clause: &Clause) -> Events {
        self.select(state, |event| {
            self.readable[usize::from(event.shape)] & clause.boundary.bit() != 0
                && SHAPES[usize::from(event.shape)].event_type & clause.types != 0
        })
    }

    /// The committed events that the query of `command` asks for.
    pub(crate) fn required(&self, state: &State, command: &Command) -> Events {
        command.reads.iter().fold(0, |all, clause| all | self.matching(state, clause))
    }

    /// Of these, what a Query of `clause` can return at most.
    pub(crate) fn visible(&self, state: &State, clause: &Clause) -> Events {
        let matching = self.matching(state, clause);
        if self.view(clause) != View::PerItem {
            return matching;
        }
        let by_index = clause.boundary.by_index();
        matching & self.select(state, |e| if by_index { e.in_index } else { e.in_table })
    }

    /// What a Query of `clause` returns of the committed events that it asks for.
    pub(crate) fn view(&self, clause: &Clause) -> View {
        if clause.boundary.by_index() { self.environment.index } else { self.environment.table }
    }

    /// Of the committed events that `clause` asks for, what a Query of the partition can return at
    /// most.
    pub(crate) fn visible_in_table(&self, state: &State, clause: &Clause) -> Events {
        let matching = self.matching(state, clause);
        if self.environment.table != View::PerItem {
            return matching;
        }
        matching & self.select(state, |event| event.in_table)
    }

    fn select(&self, state: &State, wanted: impl Fn(&Event) -> bool) -> Events {
        let events = state.log.events().iter().enumerate();
        events.fold(0, |set, (n, event)| set | Events::from(wanted(event)) << n)
    }

    /// The events that the fence of `boundary` counts under `types`.
    fn filed(&self, state: &State, boundary: Boundary, types: Types) -> Events {
        self.select(state, |event| {
            !event.unfiled
                && self.filed[usize::from(event.shape)] & boundary.bit() != 0
                && SHAPES[usize::from(event.shape)].event_type & types != 0
        })
    }

    /// What a follower of `clause` takes from its fence, as it was after `commits` events.
    pub(crate) fn fence(&self, state: &State, clause: &Clause, commits: u8) -> Fence {
        let then = (1 << commits) - 1;
        let compared = if self.protocol.compare_stored { clause.types } else { TYPES };
        Fence {
            count: low((self.filed(state, clause.boundary, compared) & then).count_ones()),
            head: state.log.newest(self.filed(state, clause.boundary, TYPES) & then),
        }
    }

    /// `pos#` of the fence: what its last update set. With all types it is `head`.
    fn last(&self, state: &State, boundary: Boundary, types: Types) -> Option<Position> {
        let filed = self.filed(state, boundary, types);
        state.log.pick(filed).last().map(|event| event.position)
    }

    /// Where the events of `command` are filed, all together.
    fn files(&self, command: &Command) -> Boundaries {
        if !command.is_conditional() && !self.protocol.imports_file {
            return 0;
        }
        command.writes.iter().fold(0, |set, &shape| set | self.filed[usize::from(shape)])
    }

    /// Decides `transaction` in `state`, in the order of rule 9.
    pub(crate) fn judge(&self, state: &State, transaction: &Transaction) -> Verdict {
        let first = transaction.position(0);
        if state.log.events().iter().any(|event| event.position == first) {
            return Verdict::Already;
        }
        if self.protocol.command_item && state.effects & State::effect(transaction) != 0 {
            return Verdict::Recorded;
        }
        let command = self.command(usize::from(transaction.writer), transaction.command);
        if !self.holds(state, command, transaction.seen) {
            return Verdict::Conflict;
        }
        self.guard(state, command)
            .filter(|head| *head >= first)
            .map_or(Verdict::Committed, |head| Verdict::Behind(head.ms()))
    }

    /// Rule 3: whether every condition on what was read holds.
    pub(crate) fn holds(&self, state: &State, command: &Command, seen: [Events; 2]) -> bool {
        let protocol = &self.protocol;
        let merged = seen[0] | seen[1];
        let after = state.log.newest(merged);
        let files = self.files(command);
        for (clause, seen) in command.reads.iter().zip(seen) {
            let counted = if protocol.count_merged { merged } else { seen };
            let whole = [clause.boundary];
            let fences = if protocol.exact_filing { &whole } else { clause.boundary.members() };
            for &fence in fences {
                let carried = files & fence.bit() != 0;
                if clause.boundary.by_index() && !carried && !protocol.check_read_only {
                    continue;
                }
                for types in [A, B].into_iter().filter(|types| clause.types & types != 0) {
                    let filed = self.filed(state, fence, types);
                    if counted & filed == 0 && !protocol.check_empty {
                        continue;
                    }
                    let newest = self.last(state, fence, types);
                    if !match protocol.condition {
                        Condition::Counts => (counted & filed).count_ones() == filed.count_ones(),
                        Condition::NewestSeen => newest == state.log.newest(counted & filed),
                        Condition::NotAfter => newest <= after,
                    } {
                        return false;
                    }
                }
            }
        }
        !(protocol.gate_produced && merged == 0 && command.is_conditional())
            || command.writes.iter().all(|&shape| {
                let shape = &SHAPES[usize::from(shape)];
                self.last(state, shape.read_by[0], shape.event_type).is_none()
            })
    }

    /// The largest position that the guard compares the first new one with. Under a guard the last
    /// event of a fence is also its newest.
    fn guard(&self, state: &State, command: &Command) -> Option<Position> {
        let imports = self.files(command);
        let heads = command.writes.iter().flat_map(|&shape| {
            let files = self.filed[usize::from(shape)] & imports;
            let types = match self.protocol.guard {
                Guard::Head => TYPES,
                Guard::PerType => SHAPES[usize::from(shape)].event_type,
                Guard::None => 0,
            };
            let compared = self.select(state, |event| {
                !event.unfiled
                    && self.filed[usize::from(event.shape)] & files != 0
                    && SHAPES[usize::from(event.shape)].event_type & types != 0
            });
            state.log.newest(compared)
        });
        heads.max()
    }

    /// Puts the events, and says which properties that breaks.
    pub(crate) fn commit(&self, state: &mut State, transaction: &Transaction) -> Broken {
        let command = self.command(usize::from(transaction.writer), transaction.command);
        let broken = self.broken_by_commit(state, command, transaction);
        for (index, &shape) in command.writes.iter().enumerate() {
            state.log.push(Event {
                position: transaction.position(low(index)),
                shape,
                in_table: self.environment.table != View::PerItem,
                in_index: self.environment.index != View::PerItem
                    || SHAPES[usize::from(shape)].read_by.len() == 1,
                unfiled: !command.is_conditional() && !self.protocol.imports_file,
            });
        }
        state.effects |= State::effect(transaction);
        broken
    }

    fn broken_by_commit(&self, state: &State, command: &Command, sent: &Transaction) -> Broken {
        let first = sent.position(0);
        let lost = self.required(state, command) & !sent.folded() != 0;
        let files = command.writes.iter().fold(0, |set, &s| set | self.readable[usize::from(s)]);
        let later = |event: &Event| event.position >= first;
        let shares = |event: &Event| self.readable[usize::from(event.shape)] & files != 0;
        let disorder = state.log.events().iter().any(|event| shares(event) && later(event));
        let effect_first = state.log.pick(sent.folded()).any(later)
            || self.cause(state, command).is_some_and(|cause| cause >= first);
        Property::NoLostUpdate.when(lost)
            | Property::Order.when(disorder)
            | Property::CauseFirst.when(effect_first)
            | Property::NoDoubleEffect.when(state.effects & State::effect(sent) != 0)
    }

    /// The position of the event that caused `command`, once it is committed.
    pub(crate) fn cause(&self, state: &State, command: &Command) -> Option<Position> {
        let writer = command.cause? + 1;
        let mut positions = state.log.events().iter().map(|event| event.position);
        positions.rfind(|position| position.writer() == writer)
    }

    /// Rule 4: the milliseconds of the next mint at this reading of the clock.
    pub(crate) fn mint(&self, state: &State, writer: usize, reading: u8) -> u8 {
        let it = &state.writers[writer];
        if !self.protocol.hybrid_clock {
            // Only what the guard returned raises the clock.
            return reading.max(it.floor);
        }
        let command = self.command(writer, it.command);
        let newest = state.log.newest(it.seen[0] | it.seen[1]).max(self.cause(state, command));
        reading.max(it.floor).max(newest.map_or(0, |position| position.ms() + 1))
    }

    /// Whether some writer that is not done would, alone and with fresh reads, be refused, or a
    /// follower refuse its page: from then on for ever, for the reads stay the same.
    pub(crate) fn stuck(&self, state: &State) -> Broken {
        let stuck = (0..self.scenario.writers.len()).any(|writer| {
            let it = &state.writers[writer];
            let finished = usize::from(it.command) >= self.scenario.writers[writer].len();
            if !finished && self.command(writer, it.command).follows {
                // It reads all that is stored; will it accept that?
                let clause = &self.command(writer, it.command).reads[0];
                let fence = self.fence(state, clause, state.log.len());
                return u32::from(fence.count) != self.matching(state, clause).count_ones();
            }
            if finished || it.place.is_over() || self.command(writer, it.command).writes.is_empty()
            {
                return false;
            }
            let command = self.command(writer, it.command);
            let mut alone = *state;
            alone.writers[writer].seen = [0, 1]
                .map(|n| command.reads.get(n).map_or(0, |clause| self.matching(state, clause)));
            let mut verdict = self.judge(state, &self.slowest(&alone, writer));
            if let Verdict::Behind(ms) = verdict {
                alone.writers[writer].floor = ms + 1;
                verdict = self.judge(state, &self.slowest(&alone, writer));
            }
            matches!(verdict, Verdict::Conflict | Verdict::Behind(_))
        });
        Property::NoPermanentConflict.when(stuck)
    }

    /// The transaction of a writer whose clock is the slowest there is.
    fn slowest(&self, alone: &State, writer: usize) -> Transaction {
        let reading = match self.environment.clocks {
            Clocks::Skewed(_) => 1,
            Clocks::Perfect | Clocks::Late => alone.now + 1,
        };
        let ms = self.mint(alone, writer, reading);
        transaction(alone, writer, ms)
    }
}

/// What `writer` sends with a position of `ms`.
pub(crate) fn transaction(state: &State, writer: usize, ms: u8) -> Transaction {
    let it = &state.writers[writer];
    Transaction { writer: low(writer), command: it.command, round: it.round, ms, seen: it.seen }
}

/// A number that the bounds of the model keep below 256.
pub(crate) fn low(number: impl TryInto<u8>) -> u8 {
    number.try_into().unwrap_or_else(|_| unreachable!("the bounds of the model are small"))
}
