//! What a stack promises those who call it and those who take its events from the bus.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ringfence_core::kit::BEGIN_MS;
use ringfence_core::{Catalog, CatalogError, Catalogs, Context, NewEvent, SequencedEvent, Slice};
use ringfence_log::Log;
use ringfence_stack::{MemberList, Members, Stack, Visitor};
use ringfence_views::{View, fold, kit::sequenced};
use serde::Deserialize;
use serde_json::{Value, to_value};

use crate::running::partition;
use crate::samples::{SAMPLES_MAX, see_limits, see_optional};
use crate::{Lock, LockError, Shape, compare, present};

/// What a stack promises to callers and consumers: [`Contract::openapi`] and [`Contract::asyncapi`] write it down.
pub struct Contract {
    pub(crate) stack: Stack,
    /// The locks, by context.
    pub(crate) locks: BTreeMap<&'static str, Lock>,
    /// The schemas of the rows, by view.
    pub(crate) rows: BTreeMap<&'static str, Value>,
}

impl Contract {
    /// That of the code as it is. It knows the newest version of each type of events.
    ///
    /// # Errors
    /// Two contexts contradict each other.
    pub fn of<M: Members>() -> Result<Self, CatalogError> {
        let (stack, mut locks) = (Stack::of::<M>()?, present::<M>());
        let mut cases = Cases { stack: &stack, locks: &mut locks, histories: Vec::new() };
        MemberList::walk::<M>(&mut cases);
        let mut rows = Rows { histories: cases.histories, schemas: BTreeMap::new() };
        MemberList::walk::<M>(&mut rows);
        Ok(Self { stack, locks, rows: rows.schemas })
    }

    /// The same with all versions of events in the locks of the stack in this folder.
    ///
    /// # Errors
    /// A lock can't be read.
    pub fn with_locks(mut self, root: &Path) -> Result<Self, LockError> {
        for (context, present) in &mut self.locks {
            *present = compare(context, &Lock::read(root, context)?, present).grown;
        }
        Ok(self)
    }
}

/// What the cases of slices say beyond the types.
struct Cases<'a> {
    stack: &'a Stack,
    /// Lists in commands get the limits that the cases show. Locks in files do not have these, since a lock that grows does
    /// not depend on whether a case has a list with something in it.
    locks: &'a mut BTreeMap<&'static str, Lock>,
    /// The events of each case.
    histories: Vec<Vec<SequencedEvent>>,
}

impl Cases<'_> {
    /// The events of a case, as they are stored.
    fn history<'e>(
        &self,
        catalog: &Catalog,
        events: impl Iterator<Item = &'e NewEvent>,
    ) -> Vec<SequencedEvent> {
        let stored = |(n, event): (usize, &NewEvent)| {
            let context = self.stack.context(catalog.context(&event.event_type)?)?;
            let (context, log) = (context.name.to_owned(), context.log);
            let event = sequenced(n, BEGIN_MS, event.clone());
            Some(SequencedEvent { partition: partition(log, "sample"), context, ..event })
        };
        events.enumerate().filter_map(stored).collect()
    }
}

impl Visitor for Cases<'_> {
    fn slice<S: Slice<Context: Context<Log: Log<S>>>>(&mut self) {
        let Ok(catalog) = S::Context::catalog() else { return };
        let cases = S::cases();
        let histories = cases.iter().map(|case| self.history(&catalog, case.events()));
        self.histories.extend(histories.collect::<Vec<_>>());
        let lock = self.locks.get_mut(S::Context::NAME);
        let Some(command) = lock.and_then(|lock| lock.commands.get_mut(S::NAME)) else { return };
        let takes = |command: &Value| S::deserialize(command).is_ok();
        for of_case in cases.iter().filter_map(|case| to_value(case.command()).ok()) {
            see_limits(&mut command.shape, &of_case, &takes);
        }
    }
}

/// The rows that views make of the events of cases.
struct Rows {
    histories: Vec<Vec<SequencedEvent>>,
    schemas: BTreeMap<&'static str, Value>,
}

impl Rows {
    /// The rows of a view after each event of each case.
    fn of<V: View>(&self) -> Vec<Value> {
        // Events of cases have the newest shape of their types.
        let catalogs = Catalogs::default();
        let (mut known, mut found) = (BTreeSet::new(), Vec::new());
        for history in &self.histories {
            let mut rows = BTreeMap::new();
            for event in history {
                let Ok(event) = catalogs.current(event) else { continue };
                if fold::<V>(&mut rows, &event).is_ok() {
                    let new = rows.values().filter_map(|row| to_value(row).ok());
                    found.extend(new.filter(|row| known.insert(row.to_string())));
                }
            }
        }
        found
    }
}

impl Visitor for Rows {
    fn view<V: View>(&mut self) {
        let (mut shape, rows) = (Shape::of::<V::Row>(), self.of::<V>());
        let takes = |row: &Value| V::Row::deserialize(row).is_ok();
        for row in &rows {
            see_optional(&mut shape, row, &takes);
        }
        let mut schema = shape.schema();
        // Of an untagged enum, the type says nothing: one row of each kind does.
        if shape == Shape::Any {
            let kind = |row: &Value| -> Vec<String> {
                row.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
            };
            let mut kinds = BTreeMap::new();
            for row in rows {
                kinds.entry(kind(&row)).or_insert(row);
            }
            schema["examples"] = kinds.into_values().take(SAMPLES_MAX).collect();
        }
        self.schemas.insert(V::NAME, schema);
    }
}
