//! A write that is planned and not sent: its effect on items, its conditions, and its price.

use std::collections::BTreeMap;

use crate::{Item, TableLayout, item_bytes, transact_write_units, write_units};

/// A write request that is not sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Intent {
    /// How many items of at most 1 KB are written before it, each alone.
    pub before: u64,
    /// Its actions, in their order. A single action is a plain request, several are a transaction.
    pub actions: Vec<Action>,
    /// The write units of each index, by its name.
    pub indexes: BTreeMap<String, f64>,
}

/// The effect of a request on one item.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// The item: its partition key and its sort key.
    pub item: String,
    /// The update; `None` if the action only checks the condition.
    pub does: Option<String>,
    /// The condition, if there is one.
    pub requires: Option<String>,
    /// The larger of the item's sizes before and after, in bytes; 0 if the item is small and its size is not computed.
    pub bytes: usize,
}

impl Intent {
    /// Adds an action that puts an item into a table of this layout.
    pub fn put(&mut self, layout: &TableLayout, item: &Item, action: Action) {
        for index in &layout.indexes {
            if let Some(units) = index.write_units(&layout.keys, item) {
                *self.indexes.entry(index.name.clone()).or_default() += units;
            }
        }
        self.actions.push(Action { bytes: item_bytes(item), ..action });
    }

    /// The write units of one of its actions, without indexes.
    #[must_use]
    pub fn units_of(&self, action: &Action) -> f64 {
        if self.actions.len() > 1 {
            transact_write_units(action.bytes)
        } else {
            write_units(action.bytes)
        }
    }

    /// The write units of the whole request and of what is written before, with indexes. An update without a known
    /// size counts as one of at most 1 KB.
    #[must_use]
    pub fn units(&self) -> f64 {
        let actions = self.actions.iter().map(|action| self.units_of(action));
        let before = self.before as f64 * write_units(0);
        before + actions.sum::<f64>() + self.indexes.values().sum::<f64>()
    }
}
