//! The fate of one transaction, and the properties that it breaks.

use crate::{
    catalogue::Scenario,
    environment::{AHEAD, Clocks, Environment, View},
    property::{Broken, Property},
    protocol::{Condition, Guard, Protocol},
    state::{Event, Events, Seen, State, Transaction},
    world::{
        A, B, Clause, Command, F, Fence, Fences, Partition, Partitions, SHAPES, Shape, Source,
        TYPES, Types,
    },
};

/// A scenario in an environment under a protocol.
#[derive(Clone, Debug)]
pub(crate) struct Model<'a> {
    pub scenario: &'a Scenario,
    pub environment: Environment,
    pub protocol: Protocol,
    /// The fences that count each shape. The protocol uses them; the properties use the shapes.
    pub(crate) filed: [Fences; SHAPES.len()],
}

/// The conditions that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failed {
    /// Partitions whose next slot is taken.
    pub slots: Partitions,
    /// Whether a fence has another count.
    pub fences: bool,
}

/// The fate of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is committed now.
    Committed,
    /// Its own event exists: an earlier send of it is committed.
    Already,
    /// Its command item exists.
    Recorded,
    /// What was read has changed.
    Conflict(Failed),
    /// Nothing that was read has changed: it is minted again from `floor` on, and one slot later in the partitions
    /// `bumped`.
    Again { floor: u8, bumped: Partitions },
}

impl<'a> Model<'a> {
    pub(crate) fn new(
        scenario: &'a Scenario,
        environment: Environment,
        protocol: Protocol,
    ) -> Self {
        let filed = SHAPES.map(|shape| match shape.fences {
            // Under every composite of the partition.
            fences if fences & Fence::COMPOSITES != 0 && !protocol.exact_filing => {
                Fence::COMPOSITES
            }
            _ if shape.event_type == F && !protocol.count_fenced => 0,
            fences => fences,
        });
        Self { scenario, environment, protocol, filed }
    }

    pub(crate) fn command(&self, writer: usize, command: u8) -> &Command {
        &self.scenario.writers[writer][usize::from(command)]
    }

    /// The committed events that `clause` asks for.
    pub(crate) fn matching(&self, state: &State, clause: &Clause) -> Events {
        state.log.select(|event| clause.matches(event.shape()))
    }

    /// The committed events that the query of `command` asks for.
    pub(crate) fn required(&self, state: &State, command: &Command) -> Events {
        command.reads.iter().fold(0, |all, clause| all | self.matching(state, clause))
    }

    /// The events that a decision folded.
    pub(crate) fn folded(&self, state: &State, command: &Command, seen: &Seen) -> Events {
        seen.known() & !seen.passed_over & self.required(state, command)
    }

    /// The events that `fence` counts under `types`.
    fn filed(&self, state: &State, fence: Fence, types: Types) -> Events {
        state.log.select(|event| {
            !event.unfiled
                && self.filed[usize::from(event.shape)] & fence.bit() != 0
                && event.shape().event_type & types != 0
        })
    }

    /// The partitions of the events of `command`.
    pub(crate) fn own(&self, command: &Command) -> Partitions {
        let shapes = command.writes.iter().map(|&shape| &SHAPES[usize::from(shape)]);
        shapes.fold(0, |set, shape| set | shape.partition.bit())
    }

    /// The fences that count the events of `command`, together.
    pub(crate) fn files(&self, command: &Command) -> Fences {
        if !command.is_conditional() && !self.protocol.imports_file {
            return 0;
        }
        command.writes.iter().fold(0, |set, &shape| set | self.filed[usize::from(shape)])
    }

    /// Decides `transaction` in `state`, in the order of the rules.
    pub(crate) fn judge(&self, state: &State, transaction: &Transaction) -> Verdict {
        let protocol = &self.protocol;
        let events = state.log.events();
        let already = events.iter().any(|event| {
            event.append == transaction.append() && event.at - event.index == transaction.at
        });
        if already && protocol.own_put_first {
            return Verdict::Already;
        }
        let command = self.command(usize::from(transaction.writer), transaction.command);
        if self.has_item(command) && state.effects & State::effect(transaction) != 0 {
            return Verdict::Recorded;
        }
        let own = self.own(command);
        let seen = &transaction.seen;
        let taken = own & self.taken(state, seen);
        let mut failed = self.failed(state, command, seen, own);
        failed.slots |= taken & command.read_partitions();
        if failed != Failed::default() {
            return Verdict::Conflict(failed);
        }
        let head = self.head(state, command).filter(|head| *head >= transaction.at);
        let bumped = taken & !command.read_partitions();
        if bumped != 0 || head.is_some() {
            return Verdict::Again { floor: head.map_or(0, |head| head + 1), bumped };
        }
        if already { Verdict::Already } else { Verdict::Committed }
    }

    /// The partitions whose next slot is taken.
    fn taken(&self, state: &State, seen: &Seen) -> Partitions {
        let taken = |p: &Partition| state.log.at_slot(*p, seen.slot(*p) + 1).is_some();
        Partition::ALL.into_iter().filter(taken).fold(0, |set, p| set | p.bit())
    }

    /// The failed conditions on what was read, except those of puts into `own`. For a rejection, which has no puts, it
    /// is the result of TransactGetItems.
    pub(crate) fn failed(
        &self,
        state: &State,
        command: &Command,
        seen: &Seen,
        own: Partitions,
    ) -> Failed {
        let taken = self.taken(state, seen);
        let mut failed = Failed::default();
        for (clause, by_clause) in command.reads.iter().zip(seen.by_clause) {
            let counted = if self.protocol.count_merged { seen.known() } else { by_clause };
            match clause.source {
                Source::Partition(p) if own & p.bit() != 0 => {}
                Source::Partition(p) => match self.fence_instead(clause) {
                    Some(fence) => {
                        failed.fences |= !self.counts_hold(state, fence, clause.types & F, counted)
                    }
                    None if self.protocol.check_read_partitions || command.is_rejection() => {
                        failed.slots |= taken & p.bit();
                    }
                    None => {}
                },
                Source::Fence(fence) => {
                    let carried = self.files(command) & fence.bit() != 0;
                    if carried || self.protocol.check_read_fences {
                        failed.fences |= !self.counts_hold(state, fence, clause.types, counted);
                    }
                }
            }
        }
        failed
    }

    /// The fence that replaces the slot of a partition that is only read.
    pub(crate) fn fence_instead(&self, clause: &Clause) -> Option<Fence> {
        let fenced = match self.protocol.all_fenced {
            true => clause.types & !F == 0,
            false => clause.types & F != 0,
        };
        clause.partition()?.fence().filter(|_| fenced)
    }

    fn counts_hold(&self, state: &State, fence: Fence, types: Types, counted: Events) -> bool {
        [A, B, F].into_iter().filter(|one| types & one != 0).all(|one| {
            let filed = self.filed(state, fence, one);
            let seen = counted & filed;
            match self.protocol.condition {
                _ if seen == 0 && !self.protocol.check_empty => true,
                Condition::Counts => seen.count_ones() == filed.count_ones(),
                Condition::NewestSeen => state.log.newest(seen) == state.log.newest(filed),
            }
        })
    }

    /// The largest `head` that the first new event is compared with: the value of a fence's last update, which under a
    /// guard is also the largest `at` there.
    fn head(&self, state: &State, command: &Command) -> Option<u8> {
        let files = self.files(command);
        let heads = command.writes.iter().flat_map(|&shape| {
            let fences = self.filed[usize::from(shape)] & files;
            let shape = &SHAPES[usize::from(shape)];
            let (fences, types) = match self.protocol.guard {
                Guard::Head => (fences, TYPES),
                Guard::NotPartitions if shape.event_type == F => (0, TYPES),
                Guard::NotPartitions => (fences, TYPES),
                Guard::PerType => (fences, shape.event_type),
                Guard::None => (0, TYPES),
            };
            let all = [Fence::S1, Fence::S2, Fence::O1P1, Fence::O2P1, Fence::C2];
            let last = move |fence| state.log.pick(self.filed(state, fence, types)).last();
            all.into_iter().filter(move |fence| fences & fence.bit() != 0).filter_map(last)
        });
        heads.map(|event| event.at).max()
    }

    /// Puts the events. Returns the properties that this breaks.
    pub(crate) fn commit(&self, state: &mut State, transaction: &Transaction) -> Broken {
        let command = self.command(usize::from(transaction.writer), transaction.command);
        let mut broken = self.broken_by_commit(state, command, transaction);
        let mut seen = transaction.seen;
        for (index, &shape) in command.writes.iter().enumerate() {
            let index = low(index);
            let it = &SHAPES[usize::from(shape)];
            let slot = seen.slot_mut(it.partition);
            *slot += 1;
            let event = Event {
                shape,
                slot: *slot,
                at: transaction.at + index,
                append: transaction.append(),
                index,
                in_table: self.environment.table != View::PerItem,
                in_index: self.environment.index != View::PerItem || !it.is_indexed(),
                unfiled: !command.is_conditional() && !self.protocol.imports_file,
            };
            let before = state.log.select(|event| event.is_in(it.partition)).count_ones();
            broken |= Property::Dense.when(u32::from(*slot) != before + 1);
            broken |= self.disorder(state, &event) | self.disorder_across(state, &event);
            state.log.push(event);
        }
        state.effects |= State::effect(transaction);
        broken
    }

    fn broken_by_commit(&self, state: &State, command: &Command, sent: &Transaction) -> Broken {
        let folded = self.folded(state, command, &sent.seen);
        let lost = self.required(state, command) & !folded != 0;
        let near = state.log.select(|event| event.at < AHEAD);
        let effect_first = state.log.newest(folded & near).max(self.cause(state, command));
        let is_carried = sent.at >= AHEAD && self.beside(state, command) & !near == 0;
        Property::NoLostUpdate.when(lost)
            | Property::CauseFirst.when(effect_first >= Some(sent.at))
            | Property::NotCarried.when(is_carried)
            | Property::NoDoubleEffect.when(state.effects & State::effect(sent) != 0)
    }

    /// Whether `new` is earlier than an event that is read with it.
    fn disorder(&self, state: &State, new: &Event) -> Broken {
        let indexed = |shape: &Shape| if shape.is_indexed() { shape.fences } else { 0 };
        let it = new.shape();
        let together =
            |event: &Event| event.is_in(it.partition) || indexed(event.shape()) & indexed(it) != 0;
        let mut events = state.log.events().iter();
        Property::Order.when(events.any(|event| together(event) && event.at >= new.at))
    }

    /// Whether `new` folds before a decision that read its boundary before `new` was there.
    fn disorder_across(&self, state: &State, new: &Event) -> Broken {
        let mut events = state.log.events().iter();
        let disorder = events.any(|event| {
            let decided =
                event.append.0.checked_sub(1).map(|writer| self.command(usize::from(writer), 0));
            let reads = decided.map_or(&[][..], |command| command.reads);
            event.at >= new.at
                && !event.is_in(new.shape().partition)
                && reads.iter().any(|clause| clause.matches(new.shape()))
        });
        Property::OrderAcross.when(self.protocol.claims_order_across && disorder)
    }

    /// Whether a writer that has seen this knows everything in the boundaries that it read. For a partition whose slot
    /// is the condition that means all of it, otherwise the events that the query asks for.
    pub(crate) fn knows_all(&self, state: &State, command: &Command, seen: &Seen) -> bool {
        let own = self.own(command);
        let folded = self.folded(state, command, seen);
        command.reads.iter().all(|clause| match clause.source {
            Source::Partition(p)
                if clause.types & !F != 0 || p.fence().is_none() || own & p.bit() != 0 =>
            {
                state.log.select(|event| event.is_in(p)) & !seen.known() == 0
            }
            _ => self.matching(state, clause) & !folded == 0,
        })
    }

    /// Whether a writer that is not done would be refused even alone and with fresh reads. Then it is refused for ever,
    /// because the reads stay the same.
    pub(crate) fn stuck(&self, state: &State) -> Broken {
        let stuck = (0..self.scenario.writers.len()).any(|writer| {
            let it = &state.writers[writer];
            let finished = usize::from(it.command) >= self.scenario.writers[writer].len();
            if finished || it.place.is_over() || self.command(writer, it.command).is_rejection() {
                return false;
            }
            let mut alone = *state;
            alone.writers[writer].seen = self.seen_alone(state, self.command(writer, it.command));
            // Once it mints above the head.
            (0..2).all(|_| {
                let verdict = self.judge(state, &self.slowest(&alone, writer));
                if let Verdict::Again { floor, .. } = verdict {
                    alone.writers[writer].floor = floor;
                }
                matches!(verdict, Verdict::Conflict(_) | Verdict::Again { .. })
            })
        });
        Property::NoPermanentConflict.when(stuck)
    }

    /// The result of fresh reads.
    fn seen_alone(&self, state: &State, command: &Command) -> Seen {
        let mut seen = Seen::default();
        for p in Partition::ALL.into_iter().filter(|p| self.own(command) & p.bit() != 0) {
            *seen.slot_mut(p) = state.log.last_slot(p);
        }
        for (n, clause) in command.reads.iter().enumerate() {
            if let Some(p) = clause.partition() {
                *seen.slot_mut(p) = 0;
                let all = self.asked(state, clause, 0);
                self.take(state, &mut seen, n, p, all);
            } else {
                seen.by_clause[n] = self.matching(state, clause);
            }
        }
        self.merge(state, command, &mut seen);
        seen
    }

    /// The transaction of a writer with the slowest possible clock.
    fn slowest(&self, alone: &State, writer: usize) -> Transaction {
        let reading = match self.environment.clocks {
            Clocks::Skewed(_) => 1,
            Clocks::Perfect | Clocks::Late => alone.now + 1,
        };
        let at = self.mint(alone, writer, reading);
        transaction(alone, writer, at)
    }
}

/// What `writer` sends with a first event of `at`.
pub(crate) fn transaction(state: &State, writer: usize, at: u8) -> Transaction {
    let it = &state.writers[writer];
    Transaction { writer: low(writer), command: it.command, round: it.round, at, seen: it.seen }
}

/// A number that is below 256 by the bounds of the model.
pub(crate) fn low(number: impl TryInto<u8>) -> u8 {
    number.try_into().unwrap_or_else(|_| unreachable!("the bounds of the model are small"))
}
