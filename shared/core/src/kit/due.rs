//! Cases of a due. The kit sends its commands early, in time, late and twice.

use std::collections::BTreeMap;
use std::error::Error;
use std::marker::PhantomData;

use futures::executor::block_on;

use super::given::Given;
use super::in_memory::catalog;
use super::same::{assert_same, fail};
use super::stored::stored;
use crate::{
    CommandContext, Context, Due, DueRow, Envelope, Handled, LogKind, LogName, OnLog, Outcome,
    Reads, SequencedEvent, canonical_json,
    decide::case::{At, DueCase, Fact},
};

impl Given {
    /// Exactly these commands are due now, in any order.
    #[track_caller]
    pub fn then_due<D: Due>(self, commands: impl IntoIterator<Item = D>) -> DueCase<D> {
        let commands: Vec<_> = commands.into_iter().collect();
        assert!(!commands.is_empty(), "no commands: say then_none_due()");
        let Self { name, facts: given, now_ms } = self;
        DueCase { given, now_ms, commands, at: At::here(name) }
    }

    /// No command is due now.
    #[track_caller]
    pub fn then_none_due<D: Due>(self) -> DueCase<D> {
        let Self { name, facts: given, now_ms } = self;
        DueCase { given, now_ms, commands: Vec::new(), at: At::here(name) }
    }
}

/// The rows of a due, by their ids.
type Rows<D> = BTreeMap<String, DueRow<<D as Due>::Row>>;

/// Checks each case of a due. For the facts of these cases and of the slice's cases, it sends the command of each
/// row:
///
/// - before its time: nothing may happen, because `decide` looks at the clock;
/// - at its time: the command takes effect, and its events clear the row or move its time;
/// - again, and again after each later fact: it has no further effect;
/// - after each later fact that has cleared or moved the row: nothing may happen.
///
/// `open` opens an empty log. `set_clock` sets the log's clock to milliseconds since 1970. Panics with the place of
/// the case.
pub fn check_due<D: Due, L: OnLog<D>>(open: impl Fn() -> L, set_clock: impl Fn(u64)) {
    let cases = D::due_cases();
    assert!(!cases.is_empty(), "{} has no cases of what is due: write `fn due_cases()`", D::NAME);
    for case in &cases {
        let rows = rows::<D>(&stored::<D::Context>(&case.given));
        let due = rows.iter().filter(|(_, row)| row.due.is_some_and(|due| due <= case.now_ms));
        let found = due.map(|(id, row)| command::<D>(id, row));
        let sorted = |commands: &mut dyn Iterator<Item = String>| {
            let mut commands: Vec<_> = commands.collect();
            commands.sort();
            commands
        };
        let expected = sorted(&mut case.commands.iter().map(canonical_json));
        let found = sorted(&mut found.map(|command| canonical_json(&command)));
        assert_same(format!("{}: what is due", case.at), &expected, &found);
    }
    let of_due = cases.iter().map(|case| (case.given.clone(), case.at));
    let of_slice = D::cases().into_iter().map(|case| (case.given, case.at));
    for (facts, at) in of_due.chain(of_slice) {
        let events = logged::<D::Context>(&facts);
        let history = History::<D, _, _> {
            facts,
            events,
            at,
            open: &open,
            set_clock: &set_clock,
            due: PhantomData,
        };
        block_on(history.check());
    }
}

fn command<D: Due>(id: &str, row: &DueRow<D::Row>) -> D {
    let command = D::command(id, &row.row);
    command.unwrap_or_else(|error| {
        fail(format!("the command of the row {id}"), error as Box<dyn Error>)
    })
}

/// The facts as the log of their context stores them. One writer adds them to the log, so each is later than the one
/// before.
fn logged<C: Context>(facts: &[Fact]) -> Vec<SequencedEvent> {
    let mut events = stored::<C>(facts);
    if C::Log::KIND != LogKind::Documents {
        for n in 1..events.len() {
            events[n].at = events[n].at.max(events[n - 1].at + 1);
        }
    }
    events
}

/// The rows after these events.
fn rows<D: Due>(events: &[SequencedEvent]) -> Rows<D> {
    let catalog = catalog::<D::Context>();
    let mut rows = Rows::<D>::new();
    for event in events.iter().filter(|it| <D as Due>::Reads::TYPES.contains(&&*it.event_type)) {
        let event = catalog.current(event).unwrap_or_else(|error| fail(D::NAME, error));
        let read = <D as Due>::Reads::decode(&event).unwrap_or_else(|error| fail(D::NAME, error));
        for id in D::rows(&read) {
            let row = DueRow::fold::<D>(rows.remove(&id), &id, &event);
            let row = row.unwrap_or_else(|error| fail(D::NAME, error));
            rows.extend(row.map(|row| (id, row)));
        }
    }
    rows
}

/// The facts of a case. Commands are sent between them.
struct History<'a, D, O, S> {
    facts: Vec<Fact>,
    events: Vec<SequencedEvent>,
    at: At,
    open: &'a O,
    set_clock: &'a S,
    due: PhantomData<D>,
}

impl<D: Due, L: OnLog<D>, O: Fn() -> L, S: Fn(u64)> History<'_, D, O, S> {
    async fn check(&self) {
        for n in 1..=self.facts.len() {
            let cause = self.events[n - 1].id();
            for (id, row) in rows::<D>(&self.events[..n]) {
                let Some(due) = row.due.filter(|_| row.cause == cause) else { continue };
                self.in_time(n, &id, &row, due).await;
                for later in n + 1..=self.facts.len() {
                    self.late(later, &id, &row, due).await;
                }
            }
        }
    }

    /// A log with the first facts.
    async fn log(&self, facts: usize) -> L {
        let on = (self.open)();
        for fact in &self.facts[..facts] {
            self.add(&on, fact, fact.at_ms).await;
        }
        on
    }

    async fn add(&self, on: &L, Fact { event, .. }: &Fact, now_ms: u64) {
        (self.set_clock)(now_ms);
        let context = CommandContext { now_ms, ..CommandContext::default() };
        let envelope = Envelope { context, ..Envelope::default() };
        let added = on.add(vec![event.clone()], &envelope).await;
        added.unwrap_or_else(|error| fail(format!("{}: a given event", self.at), error));
    }

    async fn send(&self, on: &L, id: &str, row: &DueRow<D::Row>, now_ms: u64) -> Handled {
        (self.set_clock)(now_ms);
        let handled = on.handle(&command::<D>(id, row), &row.envelope::<D>(id, now_ms)).await;
        handled.unwrap_or_else(|error| fail(format!("{}: the command that is due", self.at), error))
    }

    /// Fact `n` sets the row. Its command is sent early, in time, and twice around all later facts.
    async fn in_time(&self, n: usize, id: &str, row: &DueRow<D::Row>, due: u64) {
        let Self { at, facts, .. } = self;
        let on = self.log(n).await;
        let set = self.events[n - 1].at;
        if due > set {
            let early = self.send(&on, id, row, due - 1).await;
            assert!(
                early.written.is_empty(),
                "{at}: {} takes effect a millisecond before {id} is due: a clock may be ahead, so let `decide` \
                 compare the deadline with `now_ms`",
                D::NAME
            );
        }
        let now_ms = due.max(set);
        let sent = self.send(&on, id, row, now_ms).await;
        let is_accepted = matches!(sent.outcome, Outcome::Accepted(_));
        assert!(
            is_accepted && !sent.written.is_empty(),
            "{at}: {} has nothing to do for {id} when it is due, so the row would stay: {:?}. Let the due read the \
             event that made the command superfluous, or let `due_ms` be the first moment at which it takes effect",
            D::NAME,
            sent.outcome
        );
        let written = sent.written.iter().map(|event| Fact { at_ms: now_ms, event: event.clone() });
        let all: Vec<_> = facts[..n].iter().cloned().chain(written).collect();
        let left = rows::<D>(&logged::<D::Context>(&all));
        let is_left = left.get(id).and_then(|row| row.due).is_some_and(|due| due <= now_ms);
        assert!(
            !is_left,
            "{at}: {id} is still due after the events of {}: let the due read one of them, and clear the row",
            D::NAME
        );
        for fact in [None].into_iter().chain(facts[n..].iter().map(Some)) {
            if let Some(fact) = fact {
                self.add(&on, fact, fact.at_ms.max(now_ms)).await;
            }
            let again = self.send(&on, id, row, now_ms).await;
            assert!(
                again.written.is_empty(),
                "{at}: {} takes effect a second time for {id}",
                D::NAME
            );
        }
    }

    /// The row's command is sent after facts that may have cleared or moved it.
    async fn late(&self, facts: usize, id: &str, row: &DueRow<D::Row>, due: u64) {
        let now_ms = due.max(self.events[facts - 1].at);
        let rows = rows::<D>(&self.events[..facts]);
        if rows.get(id).and_then(|row| row.due).is_some_and(|due| due <= now_ms) {
            return;
        }
        let on = self.log(facts).await;
        let late = self.send(&on, id, row, now_ms).await;
        assert!(
            late.written.is_empty(),
            "{}: {} takes effect for {id}, although {} has cleared or moved it",
            self.at,
            D::NAME,
            self.facts[facts - 1].event.event_type
        );
    }
}
