//! Reading: the knowledge of a decision, and what counts as seen.

use std::iter::successors;

use crate::{
    environment::View,
    explore::Next,
    judge::{Model, low},
    property::Property,
    protocol::{Learn, Prefix, Searched, Snapshot},
    state::{Event, Events, Place, Seen, State},
    step::{Step, Steps, Then},
    world::{Clause, Command, Partition, Partitions, Source, TYPES},
};

/// The possible results of one Query over the events that are visible to it.
fn results(view: View, visible: Events) -> impl Iterator<Item = Events> {
    let smaller =
        move |got: &Events| (*got != 0 && view == View::Subset).then(|| (got - 1) & visible);
    successors(Some(visible), smaller)
}

impl Model<'_> {
    /// A command begins: with a snapshot of the log at some moment, or of the writer's own events.
    pub(crate) fn recall(&self, state: &State, writer: usize, next: &mut Steps) {
        let command = self.command(writer, state.writers[writer].command);
        let events = state.log.events();
        let ends = |n: &usize| {
            n.checked_sub(1).and_then(|last| events.get(last)).map(|event| event.append)
                != events.get(*n).map(|event| event.append)
        };
        let moments = (0..=events.len()).filter(|n| *n == 0 || ends(n)).map(|n| (1 << n) - 1);
        let number = low(writer);
        let own = state.log.select(|event| event.append.0 == number + 1);
        let mut known: Vec<Events> = moments.chain([own]).collect();
        if self.protocol.snapshot == Snapshot::Torn {
            known.extend(results(View::Subset, (1 << events.len()) - 1));
        }
        for known in known {
            let mut after = *state;
            let it = &mut after.writers[writer];
            it.place = Place::READ;
            for (n, clause) in command.reads.iter().enumerate() {
                let Some(p) = clause.partition() else {
                    it.seen.by_clause[n] = known & self.matching(state, clause);
                    continue;
                };
                let kept = known & state.log.select(|event| event.is_in(p));
                it.seen.by_clause[n] = kept;
                let own_last = state.log.pick(kept & own).map(|event| event.slot).max();
                *it.seen.slot_mut(p) = match (self.protocol.snapshot, own_last) {
                    (Snapshot::OwnLast, Some(last)) => last,
                    (Snapshot::Torn, _) => low(kept.count_ones()),
                    _ => 0,
                };
            }
            self.merge(state, command, &mut it.seen);
            let known = it.seen.known();
            it.recalled = self.folded(state, command, &it.seen);
            if self.protocol.searched == Searched::NotRecalled {
                it.unsearched = known;
            }
            next.push(Next::fine(Step::Recall { writer: number, known }, after));
        }
    }

    /// The next read of the writer's query. After the last one the writer has everything.
    pub(crate) fn read(&self, state: &State, writer: usize, clause: u8, next: &mut Steps) {
        let it = &state.writers[writer];
        let command = self.command(writer, it.command);
        let n = usize::from(clause);
        let asked = &command.reads[n];
        let recalled = state.log.newest(it.seen.by_clause[n]);
        let is_last = n + 1 == command.reads.len();
        for got in self.returned(state, asked, &it.seen) {
            let mut after = *state;
            let it = &mut after.writers[writer];
            match asked.source {
                Source::Partition(p) => self.take(state, &mut it.seen, n, p, got),
                Source::Fence(_) => {
                    // A snapshot's tail. For a partition that is read, only its own read counts.
                    let partitions = command.read_partitions();
                    let new = state.log.select(|event| {
                        let is_read = partitions & event.shape().partition.bit() != 0;
                        Some(event.at) > recalled && !is_read
                    });
                    it.seen.by_clause[n] |= got & new;
                }
            }
            it.place = Place::Read { clause: clause + 1 };
            let mut then = Then::OnTop;
            if is_last {
                self.merge(state, command, &mut it.seen);
                it.place = Place::Ready;
                let folded = self.folded(state, command, &it.seen);
                then = self.fold(state, it.recalled, folded, self.protocol.snapshot_in_order);
                it.recalled = 0;
            }
            if then == Then::ReadAgain {
                // Without the snapshot.
                (it.seen, it.unsearched) = (Seen::default(), 0);
                it.place = Place::READ;
            }
            let broken = Property::FoldOrder.when(then == Then::OutOfOrder);
            let step = Step::Read { writer: low(writer), clause, got, then };
            next.push(Next { step, state: after, broken });
        }
    }

    /// The fold of the new events in `folded` after the events `before`: on top if they are last in fold order, or if
    /// the order is not `ordered`.
    fn fold(&self, state: &State, before: Events, folded: Events, ordered: bool) -> Then {
        let newest = state.log.pick(before).map(Event::order).max();
        let mut new = state.log.pick(folded & !before);
        match (new.all(|event| Some(event.order()) > newest), ordered) {
            (true, _) => Then::OnTop,
            (false, true) => Then::ReadAgain,
            (false, false) => Then::OutOfOrder,
        }
    }

    /// The request of a Query of `clause`: for a partition everything after slot `after`, since slots would be missing
    /// if the types were filtered.
    pub(crate) fn asked(&self, state: &State, clause: &Clause, after: u8) -> Events {
        let Source::Partition(partition) = clause.source else {
            return self.matching(state, clause);
        };
        let first = after + u8::from(self.protocol.tail_after || after == 0);
        let types = if self.protocol.prefix == Prefix::Filtered { clause.types } else { TYPES };
        state.log.select(|event| {
            event.is_in(partition) && event.slot >= first && event.shape().event_type & types != 0
        })
    }

    /// The possible results of a Query of `clause`, after the slot that is seen.
    fn returned(
        &self,
        state: &State,
        clause: &Clause,
        seen: &Seen,
    ) -> impl Iterator<Item = Events> + use<> {
        let environment = &self.environment;
        let (view, after) = match clause.source {
            Source::Partition(p) => (environment.table, seen.slot(p)),
            Source::Fence(_) => (environment.index, 0),
        };
        let mut visible = self.asked(state, clause, after);
        if view == View::PerItem {
            let by_index = matches!(clause.source, Source::Fence(_));
            visible &= state.log.select(|e| if by_index { e.in_index } else { e.in_table });
        }
        results(view, visible)
    }

    /// Adds the result of a read of a partition.
    pub(crate) fn take(&self, state: &State, seen: &mut Seen, n: usize, p: Partition, got: Events) {
        seen.by_clause[n] |= got;
        let before = seen.slot(p);
        let returned = before + low(got.count_ones());
        *seen.slot_mut(p) = match self.protocol.prefix {
            Prefix::Dense if !self.protocol.tail_after && before > 0 => returned,
            Prefix::Dense => self.dense(state, seen, p),
            Prefix::Largest => state.log.pick(got).map(|e| e.slot).fold(before, u8::max),
            Prefix::Returned | Prefix::Filtered => returned,
        };
    }

    /// The end of the dense prefix of `p`, in all that is known.
    fn dense(&self, state: &State, seen: &Seen, p: Partition) -> u8 {
        let known = |slot| state.log.pick(seen.known()).any(|e| e.is_in(p) && e.slot == slot);
        (seen.slot(p)..).find(|slot| !known(slot + 1)).unwrap_or(u8::MAX)
    }

    /// After all reads: an event of a partition that is read counts only if it is in the prefix.
    pub(crate) fn merge(&self, state: &State, command: &Command, seen: &mut Seen) {
        if self.protocol.prefix != Prefix::Dense {
            return;
        }
        for p in command.reads.iter().filter_map(Clause::partition) {
            *seen.slot_mut(p) = self.dense(state, seen, p);
            let end = seen.slot(p);
            let beyond = state.log.select(|event| event.is_in(p) && event.slot > end);
            seen.by_clause.iter_mut().for_each(|events| *events &= !beyond);
        }
    }

    /// The tail of the first of `partitions`. Its matching events are folded on top if they are last.
    pub(crate) fn tail(
        &self,
        state: &State,
        writer: usize,
        partitions: Partitions,
        next: &mut Steps,
    ) {
        let seen = state.writers[writer].seen;
        let command = self.command(writer, state.writers[writer].command);
        let is_first = |clause: &&Clause| {
            clause.partition().is_some_and(|p| partitions.trailing_zeros() == p as u32)
        };
        let n = command.reads.iter().position(|clause| is_first(&clause));
        let n = n.expect("the partition is read");
        let clause = &command.reads[n];
        let partition = clause.partition().expect("its slot was seen");
        let rest = partitions & !partition.bit();
        for got in self.returned(state, clause, &seen) {
            let mut after = *state;
            let it = &mut after.writers[writer];
            self.take(state, &mut it.seen, n, partition, got);
            self.merge(state, command, &mut it.seen);
            let learned = it.seen.known() & !seen.known();
            if self.protocol.searched == Searched::NotTails {
                it.unsearched |= learned;
            }
            it.seen.passed_over |= match self.protocol.learn {
                Learn::Matching => 0,
                Learn::OneClause => learned & !self.matching(state, clause),
                Learn::Nothing => learned,
            };
            let before = self.folded(state, command, &seen);
            let folded = self.folded(state, command, &it.seen);
            let then = self.fold(state, before, folded, self.protocol.fold_in_order);
            it.place = match rest {
                0 if command.is_rejection() => Place::Ready,
                0 => Place::Again,
                partitions => Place::Tail { partitions },
            };
            if then == Then::ReadAgain {
                self.begin(&mut after, writer);
            }
            let broken = Property::FoldOrder.when(then == Then::OutOfOrder);
            let step = Step::Tail { writer: low(writer), clause: low(n), got, then };
            next.push(Next { step, state: after, broken });
        }
    }
}
