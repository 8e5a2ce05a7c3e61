//! A fold whose result is stored: a kept state, the snapshot of a document, rows of a view, or rows of a due.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use ringfence_core::{Catalogs, Current, SequencedEvent, canonical_json};
use ringfence_log::KeptState;
use ringfence_views::Definition;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::lock::{FoldKind, LockedFold};
use crate::samples::plain;

/// A fold.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    pub(crate) context: &'static str,
    pub(crate) kind: FoldKind,
    pub(crate) name: &'static str,
    /// Its version and its types, without its results for histories.
    pub(crate) locked: LockedFold,
    /// Whether its stored results can't be folded again.
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

/// The results of a fold for a history: what it stores after each event, as JSON.
pub(crate) type Made = Result<Vec<Value>, String>;

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

    /// The rows of a view or a due. The code implements this trait.
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
    pub(crate) fn read<'e>(&self, events: &'e [SequencedEvent]) -> Vec<&'e SequencedEvent> {
        events.iter().filter(|event| self.reads(event)).collect()
    }

    pub(crate) fn make(&self, catalogs: &Catalogs, events: &[&SequencedEvent]) -> Made {
        let current: Result<Vec<_>, _> =
            events.iter().map(|event| catalogs.current(*event)).collect();
        let current = current.map_err(|error| error.to_string())?;
        let fold = || self.fold(&current).map_err(|error| error.to_string());
        // `evolve` may rely on a state that the new fold does not make.
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

/// The results of a fold as a lock has them: eight digits for each event. A value that becomes personal changes none.
pub(crate) fn marks(made: &[Value]) -> String {
    let mark = |value: &Value| {
        let mut value = value.clone();
        plain(&mut value);
        let hash = Sha256::digest(canonical_json(&value));
        hash[..4].iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    made.iter().map(mark).collect::<Vec<_>>().join(" ")
}

/// The steps that a history shows to folds: each pair of types that follow each other, in the history or in a
/// partition.
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

/// The histories in which folds read events, with only these events.
pub(crate) fn read_by<'a>(
    folds: &'a [&Fold],
    histories: &'a [Vec<SequencedEvent>],
) -> impl Iterator<Item = Vec<SequencedEvent>> + 'a {
    let is_read = |event: &&SequencedEvent| folds.iter().any(|fold| fold.reads(event));
    let read = move |events: &Vec<SequencedEvent>| events.iter().filter(is_read).cloned().collect();
    histories.iter().map(read).filter(|events: &Vec<_>| !events.is_empty())
}
