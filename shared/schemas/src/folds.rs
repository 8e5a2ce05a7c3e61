//! What is folded from events and stored: kept states, rows of views, and what is due.
//!
//! A fold that has changed does not know it: it goes on from what the fold before it has stored. So a lock has what each
//! fold makes of the histories of its context, and a fold that makes something else has to have another version.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use ringfence::{Catalogs, Current, SequencedEvent, canonical_json};
use ringfence_logs::KeptState;
use ringfence_stack::Stack;
use ringfence_views::Definition;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::gate::Comparison;
use crate::lock::{FoldKind, LockedFold};
use crate::words::grows;
use crate::{Finding, Lock, Readers, fold_words};

/// A fold whose result is stored.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    pub(crate) context: &'static str,
    pub(crate) kind: FoldKind,
    pub(crate) name: &'static str,
    /// Its version, without what it makes of histories.
    pub(crate) locked: LockedFold,
    /// Whether what it has stored can't be folded again.
    pub(crate) is_rolling: bool,
    /// The line of code with which its next version begins.
    pub(crate) next_version: String,
    how: How,
}

#[derive(Clone, Debug)]
enum How {
    State(KeptState),
    Rows(Definition),
}

/// What a fold makes of a history: what it has stored after each event, as JSON.
type Made = Result<Vec<Value>, String>;

impl Fold {
    pub(crate) fn of_state(context: &'static str, kind: FoldKind, state: KeptState) -> Self {
        Self {
            context,
            kind,
            name: state.name,
            locked: LockedFold {
                version: state.version,
                types: state.types.clone(),
                made: BTreeMap::new(),
            },
            is_rolling: state.is_rolling,
            next_version: state.next_version.clone(),
            how: How::State(state),
        }
    }

    /// The rows of a view or a due, of which the code is an `impl` of this.
    pub(crate) fn of_rows(
        context: &'static str,
        kind: FoldKind,
        rows: Definition,
        code: &str,
    ) -> Self {
        let next = rows.version + 1;
        Self {
            context,
            kind,
            name: rows.name,
            locked: LockedFold {
                version: rows.version,
                types: rows.types.iter().map(ToString::to_string).collect(),
                made: BTreeMap::new(),
            },
            is_rolling: false,
            next_version: format!("`const VERSION: u32 = {next};` in `impl {code}`"),
            how: How::Rows(rows),
        }
    }

    fn reads(&self, event: &SequencedEvent) -> bool {
        match &self.how {
            How::State(state) => (state.reads)(event),
            How::Rows(rows) => rows.reads(event),
        }
    }

    /// The events of a history that it reads.
    fn read<'e>(&self, events: &'e [SequencedEvent]) -> Vec<&'e SequencedEvent> {
        events.iter().filter(|event| self.reads(event)).collect()
    }

    fn make(&self, catalogs: &Catalogs, events: &[&SequencedEvent]) -> Made {
        let current: Result<Vec<_>, _> =
            events.iter().map(|event| catalogs.current(*event)).collect();
        let current = current.map_err(|error| error.to_string())?;
        let fold = || self.fold(&current).map_err(|error| error.to_string());
        // What evolves a state may have taken for granted what a new fold does not make.
        let made = catch_unwind(AssertUnwindSafe(fold));
        made.unwrap_or_else(|panicked| Err(format!("it panics: {}", text(&*panicked))))
    }

    fn fold(&self, events: &[Current<'_>]) -> Result<Vec<Value>, serde_json::Error> {
        match &self.how {
            How::State(state) => (state.fold)(self.name, events),
            How::Rows(definition) => {
                let (mut rows, mut all) = (BTreeMap::new(), Vec::new());
                for event in events {
                    definition.fold(&mut rows, event)?;
                    all.push(json!(rows));
                }
                Ok(all)
            }
        }
    }
}

fn text(panicked: &dyn Any) -> &str {
    let text = panicked.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panicked.downcast_ref().copied()).unwrap_or_default()
}

/// What is written of what a fold has made: eight digits for each event.
fn marks(made: &[Value]) -> String {
    let mark = |value: &Value| {
        let hash = Sha256::digest(canonical_json(value));
        hash[..4].iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    made.iter().map(mark).collect::<Vec<_>>().join(" ")
}

/// The steps that a history shows to folds: each type after the one before it, in the history and in its partition.
pub(crate) fn steps(folds: &[&Fold], events: &[SequencedEvent]) -> BTreeSet<String> {
    let mut steps = BTreeSet::new();
    for fold in folds {
        let (read, mut last) = (fold.read(events), BTreeMap::new());
        for (n, event) in read.iter().enumerate() {
            let before = n.checked_sub(1).map_or("", |n| &read[n].event_type);
            let inside = last.insert(&event.partition, &*event.event_type).unwrap_or_default();
            let Fold { kind, name, .. } = fold;
            steps.insert(format!("{kind:?} {name}: {before}, {}", event.event_type));
            steps.insert(format!("{kind:?} {name}: {inside} / {}", event.event_type));
        }
    }
    steps
}

/// The histories in which folds read something, with what they read.
pub(crate) fn read_by<'a>(
    folds: &'a [&Fold],
    histories: &'a [Vec<SequencedEvent>],
) -> impl Iterator<Item = Vec<SequencedEvent>> + 'a {
    let is_read = |event: &&SequencedEvent| folds.iter().any(|fold| fold.reads(event));
    let read = move |events: &Vec<SequencedEvent>| events.iter().filter(is_read).cloned().collect();
    histories.iter().map(read).filter(|events: &Vec<_>| !events.is_empty())
}

/// The folds of a context that make something else of the histories of a lock, although they have the version that the
/// lock has of them.
#[must_use]
pub fn changed_folds(
    stack: &Stack,
    readers: &Readers,
    context: &str,
    released: &Lock,
) -> Vec<Finding> {
    let changed = |fold: &Fold| {
        let was = released.folds(fold.kind).get(fold.name)?;
        let differs = |(number, events): (usize, Vec<SequencedEvent>)| {
            let (marked, read) = (was.made.get(&number)?, fold.read(&events));
            let made = fold.make(&stack.catalogs, &read);
            let now = made.as_deref().map(marks).unwrap_or_default();
            let is_same = |(was, now): &(&str, &str)| was == now;
            let same = marked.split(' ').zip(now.split(' ')).take_while(is_same).count();
            let types: Vec<_> = read.iter().take(same + 1).map(|it| &*it.event_type).collect();
            let made = made.map(|made| made.get(same).cloned().unwrap_or_default());
            (now != *marked).then(|| fold_words::changed(fold, number, &types, &made))
        };
        was.is_same_version(fold.kind, &fold.locked)
            .then(|| released.histories.all().find_map(differs))?
    };
    readers.folds(context).filter_map(changed).collect()
}

/// Compares what the folds of a context make of the histories that were released. The lock takes histories of cases that
/// show more, if nothing was refused, and what each fold makes of them, unless the fold is refused.
pub(crate) fn check(
    stack: &Stack,
    readers: &Readers,
    (context, released, now): (&str, &Lock, &Lock),
    Comparison { grown, findings }: &mut Comparison,
) {
    let folds: Vec<_> = readers.folds(context).collect();
    let make = |fold: &Fold, events: &[SequencedEvent]| {
        fold.make(&stack.catalogs, &fold.read(events)).ok().map(|made| marks(&made))
    };
    let before = grown.clone();
    if findings.iter().all(|finding| finding.is_written) {
        // Readers that fail are found elsewhere.
        let is_made =
            |events: &Vec<SequencedEvent>| folds.iter().all(|fold| make(fold, events).is_some());
        let candidates = now.histories.all().map(|(_, events)| events).filter(is_made);
        grown.histories.add(candidates, |events| steps(&folds, events));
    }
    let mut refused = changed_folds(stack, readers, context, released);
    for fold in &folds {
        let subject = fold.kind.named(fold.name);
        if refused.iter().any(|finding| finding.subject == subject) {
            continue;
        }
        let Some(locked) = grown.folds(fold.kind).get(fold.name) else { continue };
        let mut locked = LockedFold { made: BTreeMap::new(), ..locked.clone() };
        if !locked.is_same_version(fold.kind, &fold.locked) {
            continue;
        }
        let mut by_chance = None;
        for (number, events) in grown.histories.all() {
            let (one, other) = (make(fold, &events), make(fold, &events));
            if one != other {
                by_chance.get_or_insert_with(|| fold_words::by_chance(fold, number));
            }
            locked.made.extend(one.filter(|one| !one.is_empty()).map(|one| (number, one)));
        }
        let all = grown.folds_mut(fold.kind);
        all.insert(fold.name.to_owned(), locked);
        let Some(by_chance) = by_chance else { continue };
        match released.folds(fold.kind).get(fold.name) {
            Some(was) => drop(all.insert(fold.name.to_owned(), was.clone())),
            None => drop(all.remove(fold.name)),
        }
        findings.iter_mut().filter(|it| it.subject == subject).for_each(Finding::withhold);
        refused.push(by_chance);
    }
    findings.append(&mut refused);
    if *grown != before && findings.is_empty() {
        let change = "what folds make of cases is new".to_owned();
        findings.push(grows(context, "the histories", vec![change], Vec::new()));
    }
}
