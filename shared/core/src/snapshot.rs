//! Snapshots: states that outlive the handler that folded them (rule 13).

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{Place, Plan, Seen, canonical_json, command::sha256, keys::Keys};

/// How a slice keeps its states in the log. A handler that starts then reads the last state that was kept and
/// the events after it, instead of all events. It pays where a decision reads hundreds of events: a snapshot costs
/// a request more, and a write once in a while.
///
/// A snapshot only saves reading. If it is lost or old, more events are read. An append is checked as always.
#[derive(Clone, Copy, Debug)]
pub struct Snapshots<T> {
    every: u64,
    version: u32,
    to_json: fn(&T) -> serde_json::Result<Value>,
    from_json: fn(Value) -> serde_json::Result<T>,
}

impl<T: Serialize + DeserializeOwned> Snapshots<T> {
    /// A state is kept when it holds more than `events` events that the snapshot before it does not.
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
    /// The version of the fold; 0 unless given. Raise it with each change of `evolve` or of the state: only
    /// snapshots of the same version are read. A change of what the slice reads does the same by itself.
    #[must_use]
    pub const fn version(self, version: u32) -> Self {
        Self { version, ..self }
    }

    /// Whether the next snapshot is due when the state holds this many events that the last one does not.
    pub(crate) fn is_due(&self, events: u64) -> bool {
        events > self.every
    }

    /// The name of the snapshots of this plan: of one query, as the catalog and the slice are now.
    pub(crate) fn id(&self, slice: &str, plan: &Plan) -> String {
        format!("snapshot#{slice}#{}", hash(self.version, plan))
    }

    /// The text of a snapshot; `None` if the state has no JSON.
    pub(crate) fn text(
        &self,
        state: &T,
        seen: &Seen,
        last: Option<&Place>,
        keys: &Keys,
    ) -> Option<String> {
        let state = (self.to_json)(state).ok()?;
        Some(text(&state, seen, last, keys))
    }

    /// The state, and what was kept with it; `None` for a text that this version can't read.
    pub(crate) fn read(&self, text: &str) -> Option<(T, Seen, Option<Place>, Keys)> {
        let Kept { state, seen, last, keys } = kept(text)?;
        Some(((self.from_json)(state).ok()?, seen, last, keys))
    }

    /// The state as a snapshot gives it back.
    ///
    /// # Errors
    /// The state has no JSON, or its JSON is that of no state.
    pub(crate) fn again(&self, state: &T) -> serde_json::Result<T> {
        (self.from_json)((self.to_json)(state)?)
    }
}

// The functions from here on have no type parameter, so that they are compiled once, and not for each slice.

fn hash(version: u32, plan: &Plan) -> String {
    sha256(&canonical_json(&(version, plan)))
}

/// A snapshot: the state, what was seen, the place of the last event that was folded, and the keys of the slice's
/// commands.
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
    use crate::Clause;

    #[test]
    fn another_slice_version_or_plan_has_snapshots_of_another_name() {
        let plan = |tags| Plan { clauses: vec![Clause { tags, types: [].into() }], reads: vec![] };
        let (of_room, of_all) = (plan(vec![crate::Tag::new("roomId", "r1")]), plan(vec![]));
        let snapshots = Snapshots::<u32>::every(1);
        let id = snapshots.id("survey", &of_room);
        assert_eq!(id, Snapshots::<u32>::every(9).id("survey", &of_room));
        for other in [
            snapshots.id("count", &of_room),
            snapshots.id("survey", &of_all),
            snapshots.version(1).id("survey", &of_room),
        ] {
            assert_ne!(id, other);
        }
    }
}
