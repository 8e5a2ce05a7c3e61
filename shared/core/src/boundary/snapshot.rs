//! Snapshots: states that outlive the handler that folded them (rule 13).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    Catalog, Name, Place, Plan, Seen, boundary::keys::Keys, canonical_json, model::command::sha256,
    personal::store_plain,
};

/// How a slice stores its states in the log. A new handler then reads the last stored state and the events after it,
/// instead of all events. It pays off if a decision reads hundreds of events: a snapshot costs one more request, and a
/// write once in a while.
///
/// A snapshot only saves reads. If it is lost or old, more events are read. An append is checked as always.
#[derive(Clone, Copy, Debug)]
pub struct Snapshots<T> {
    every: u64,
    version: u32,
    to_json: fn(&T) -> serde_json::Result<Value>,
    from_json: fn(Value) -> serde_json::Result<T>,
}

impl<T: Serialize + DeserializeOwned> Snapshots<T> {
    /// A state is stored when it has more than `events` events that the last snapshot lacks.
    #[must_use]
    pub const fn every(events: u64) -> Self {
        Self {
            every: events,
            version: 0,
            to_json: |state| serde_json::to_value(state),
            from_json: |json| serde_json::from_value(json),
        }
    }
}

impl<T> Snapshots<T> {
    /// The version of the fold, 0 by default. Raise it with each change of `evolve` that changes states: only snapshots
    /// of the same version are read. The checks of a stack compare the states and ask for it. A change of the types
    /// that the slice reads has the same effect by itself, and so has a new version of one of them.
    #[must_use]
    pub const fn version(self, version: u32) -> Self {
        Self { version, ..self }
    }

    /// The version of the fold.
    #[must_use]
    pub const fn fold_version(&self) -> u32 {
        self.version
    }

    /// The JSON of a state in a snapshot.
    ///
    /// # Errors
    /// The state has no JSON.
    pub fn json(&self, state: &T) -> serde_json::Result<Value> {
        let mut json = (self.to_json)(state)?;
        store_plain(&mut json);
        Ok(json)
    }

    /// Whether the next snapshot is due when the state has this many events that the last one lacks.
    pub(crate) fn is_due(&self, events: u64) -> bool {
        events > self.every
    }

    /// The name of the snapshots of this plan: for one query, with the present catalog and slice.
    pub(crate) fn id(&self, slice: &str, plan: &Plan, catalog: &Catalog) -> String {
        format!("snapshot#{slice}#{}", hash(self.version, plan, catalog))
    }

    /// The text of a snapshot; `None` if the state has no JSON.
    pub(crate) fn text(
        &self,
        state: &T,
        seen: &Seen,
        last: Option<&Place>,
        keys: &Keys,
    ) -> Option<String> {
        Some(text(&self.json(state).ok()?, seen, last, keys))
    }

    /// The state, and the rest of the snapshot; `None` for a text that this version can't read.
    pub(crate) fn read(&self, text: &str) -> Option<(T, Seen, Option<Place>, Keys)> {
        let Kept { state, seen, last, keys } = kept(text)?;
        Some(((self.from_json)(state).ok()?, seen, last, keys))
    }

    /// The state after a round trip through a snapshot.
    ///
    /// # Errors
    /// The state has no JSON, or its JSON can't be decoded.
    pub(crate) fn again(&self, state: &T) -> serde_json::Result<T> {
        (self.from_json)(self.json(state)?)
    }
}

// The functions from here on have no type parameter, so they are compiled once, and not for each slice.

fn hash(version: u32, plan: &Plan, catalog: &Catalog) -> String {
    let types = plan.reads.iter().flat_map(|read| &read.types);
    let versions = types.map(|name| (name, catalog.version(name))).filter(|(_, of)| *of > 1);
    let versions: BTreeMap<&Name, u32> = versions.collect();
    sha256(&match versions.is_empty() {
        true => canonical_json(&(version, plan)),
        false => canonical_json(&(version, plan, versions)),
    })
}

/// A snapshot: the state, what was seen, the place of the last folded event, and the keys of the slice's commands.
#[derive(Deserialize)]
struct Kept {
    state: Value,
    seen: Seen,
    last: Option<Place>,
    keys: Keys,
}

fn kept(text: &str) -> Option<Kept> {
    serde_json::from_str(text).ok()
}

fn text(state: &Value, seen: &Seen, last: Option<&Place>, keys: &Keys) -> String {
    json!({ "state": state, "seen": seen, "last": last, "keys": keys }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, BoundaryId, Clause, EventSchema, Read, Tag, Upcast, Upcasts};

    #[test]
    fn another_slice_plan_or_version_has_snapshots_of_another_name() {
        let read = Read {
            boundary: BoundaryId::tag("roomId", "r1"),
            access: Access::Partition,
            types: [Name::from("Booked")].into(),
            fenced: false,
            after: 0,
        };
        let clause = |tags| Clause { tags, types: [].into() };
        let plan = |tags| Plan { clauses: vec![clause(tags)], reads: vec![read.clone()] };
        let (of_room, of_all) = (plan(vec![Tag::new("roomId", "r1")]), plan(vec![]));
        let catalog = |upcasts: &'static [Upcast]| {
            let schema = EventSchema {
                name: "Booked".into(),
                tags: vec![].into(),
                separator: '/',
                read_as_composite: false,
                read_by_type: false,
                fenced: false,
                copies: 0,
                upcasts: Upcasts(upcasts),
                write: None,
                retired: false,
                subjects: crate::Subjects::NONE,
            };
            Catalog::new("rooms", [schema]).expect("it has one type")
        };
        let (first, second) = (catalog(&[]), catalog(&[Ok]));
        let snapshots = Snapshots::<u32>::every(1);
        let id = snapshots.id("survey", &of_room, &first);
        assert_eq!(id, Snapshots::<u32>::every(9).id("survey", &of_room, &first));
        // Names are stored, so a name must not change while every type has its first version.
        assert_eq!(id, format!("snapshot#survey#{}", sha256(&canonical_json(&(0, &of_room)))));
        for other in [
            snapshots.id("count", &of_room, &first),
            snapshots.id("survey", &of_all, &first),
            snapshots.version(1).id("survey", &of_room, &first),
            snapshots.id("survey", &of_room, &second),
        ] {
            assert_ne!(id, other);
        }
    }
}
