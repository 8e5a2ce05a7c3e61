//! Compares the JSON of cases with the shape that its type declares. serde writes the JSON, and `schemars` the shape.
//! An attribute or a hand-written `impl` can make them differ.

use std::collections::BTreeMap;

use ringfence_core::{Catalogs, Context, SequencedEvent, Slice};
use ringfence_log::Log;
use ringfence_stack::{MemberList, Members, Visitor};
use ringfence_views::{View, fold};
use serde_json::{Value, to_value};

use crate::{Lock, Shape};

#[cfg(test)]
mod tests;

/// Commands and events of cases, and rows that views make of the events, whose JSON does not have the shape of its
/// type. Each line has the slice, the case, and the place in the JSON. `present` has the shapes of commands and events.
#[must_use]
pub fn unlike_their_shapes<M: Members>(present: &BTreeMap<&'static str, Lock>) -> Vec<String> {
    let mut cases = OfCases { present, histories: Vec::new(), found: Found::default() };
    MemberList::walk::<M>(&mut cases);
    let OfCases { histories, found, .. } = cases;
    let mut rows = OfRows { histories, found };
    MemberList::walk::<M>(&mut rows);
    rows.found.0
}

#[derive(Default)]
struct Found(Vec<String>);

impl Found {
    fn check(&mut self, case: &str, what: &str, shape: &Shape, json: &Value) {
        if let Err(wrong) = shape.admits(json) {
            self.0.push(format!(
                "{case}: {what} does not have its shape: {wrong}\n  what serde writes and what `#[schemars(…)]` or \
                 `impl JsonSchema` declares differ: mend the one that is wrong"
            ));
        }
    }
}

struct OfCases<'a> {
    present: &'a BTreeMap<&'static str, Lock>,
    /// The events of each case, with its name.
    histories: Vec<(String, Vec<SequencedEvent>)>,
    found: Found,
}

impl<'a> OfCases<'a> {
    /// The shape of an event in the newest version of its type.
    fn shape(&self, event: &SequencedEvent) -> Option<&'a Shape> {
        let of = self.present.get(&*event.context)?.events.get(&event.event_type)?;
        Some(&of.versions.last_key_value()?.1.shape)
    }
}

impl Visitor for OfCases<'_> {
    fn slice<S: Slice<Context: Context<Log: Log<S>>>>(&mut self) {
        let lock = self.present.get(S::Context::NAME);
        let command = lock.and_then(|lock| lock.commands.get(S::NAME));
        for case in S::cases() {
            let (name, history) = (format!("{}, the {}", S::NAME, case.at()), case.history());
            if let Some((command, json)) = command.zip(to_value(case.command()).ok()) {
                self.found.check(&name, "the command", &command.shape, &json);
            }
            for event in &history {
                if let Some(shape) = self.shape(event) {
                    self.found.check(&name, &event.event_type, shape, &event.data);
                }
            }
            self.histories.push((name, history));
        }
    }
}

struct OfRows {
    histories: Vec<(String, Vec<SequencedEvent>)>,
    found: Found,
}

impl Visitor for OfRows {
    fn view<V: View>(&mut self) {
        let (shape, what) = (Shape::of::<V::Row>(), format!("a row of the view {}", V::NAME));
        // Events of cases have the newest shape of their types.
        let catalogs = Catalogs::default();
        for (case, history) in &self.histories {
            let mut rows = BTreeMap::new();
            for event in history {
                let Ok(event) = catalogs.current(event) else { continue };
                // Other checks find events that the view can't read.
                if fold::<V>(&mut rows, &event).is_err() {
                    continue;
                }
                for json in rows.values().filter_map(|row| to_value(row).ok()) {
                    self.found.check(case, &what, &shape, &json);
                }
            }
        }
        self.found.0.dedup();
    }
}
