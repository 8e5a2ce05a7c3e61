//! Checks that what was released of each context is still there, that every reader can read it, and that its lock has all
//! of the context.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ringfence::kit::fail;
use ringfence_local::stack_root;
use ringfence_schemas::{Comparison, Lock, Readers, check, present};
use ringfence_stack::{Members, Stack};

use crate::functions::entries;
use crate::mend;
use crate::template::check_none;

/// Panics unless each context still has what was released of it (`schemas/<context>.json`), and every slice, reaction and
/// view of the stack reads every version of it. Says whom a change breaks, and what to write. With the variable `UPDATE`,
/// what is new is written into the files.
pub fn check_schemas<M: Members>() {
    let stack = Stack::of::<M>().unwrap_or_else(|error| fail("the stack", error));
    let code = Code { stack, readers: Readers::of::<M>(), present: present::<M>() };
    check_none(&code.differences(&stack_root(), mend::is_asked()));
}

/// What to do with a file that can't be read.
const MERGE: &str = "\n  give it back the text of the last commit. In a merge, take the file of the branch that is deployed, and \
                     run `UPDATE=1 cargo test`. If both branches have begun the same version, yours is the next one";

struct Code {
    stack: Stack,
    readers: Readers,
    present: BTreeMap<&'static str, Lock>,
}

impl Code {
    /// What differs between the code and the locks in `root`, each with what to do. With `update` what may be added is
    /// written into the files.
    fn differences(&self, root: &Path, update: bool) -> Vec<String> {
        let contexts = self.present.iter();
        let mut lines: Vec<_> = contexts
            .flat_map(|(context, now)| self.of_context(context, now, root, update))
            .collect();
        let folder = root.join(Lock::FOLDER);
        let found = if folder.exists() { entries(&folder) } else { BTreeSet::new() };
        let is_of_one = |file: &&String| {
            self.present.keys().any(|context| Lock::path(context).ends_with(&format!("/{file}")))
        };
        let of_none = found.iter().filter(|file| !is_of_one(file));
        lines.extend(of_none.map(|file| {
            format!(
                "{}/{file} is of no context of the stack, but events of its types may be in a log: list the context again, \
                 or remove the file if none of its types was ever stored",
                Lock::FOLDER
            )
        }));
        lines
    }

    fn of_context(&self, context: &str, now: &Lock, root: &Path, update: bool) -> Vec<String> {
        let released = match Lock::read(root, context) {
            Ok(released) => released,
            Err(error) => return vec![error.to_string() + MERGE],
        };
        let Comparison { grown, findings } =
            check(&self.stack, &self.readers, context, &released, now);
        let mut lines = without_sample(now);
        let is_said = |is_written: bool| !(is_written && update);
        let said = findings.iter().filter(|finding| is_said(finding.is_written));
        lines.extend(said.map(ToString::to_string));
        if update && (grown != released || !root.join(Lock::path(context)).exists()) {
            lines.extend(grown.write(root, context).err().map(|error| error.to_string()));
        }
        lines
    }
}

/// The types of which no case has an event.
fn without_sample(present: &Lock) -> Vec<String> {
    let lacks = present
        .events
        .iter()
        .filter(|(_, of)| of.versions.values().any(|version| version.samples.is_empty()));
    let line = |name: &String| {
        format!(
            "no case has an event of the type {name}, so the lock has no sample of it: let a case of a slice give it, \
             `given(events![{name} {{ … }}])`, or expect it"
        )
    };
    lacks.map(|(name, _)| line(name)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ringfence::{Catalog, Catalogs};
    use ringfence_schemas::{LockedType, LockedVersion, Shape};
    use serde_json::json;

    use super::*;

    /// Code that declares these types of one context, and reads none of them.
    fn code(event_types: &[&str]) -> Code {
        let version = LockedVersion { shape: Shape::Any, samples: vec![json!({})] };
        let of = LockedType { versions: BTreeMap::from([(1, version)]), ..LockedType::default() };
        let events = event_types.iter().map(|name| ((*name).to_owned(), of.clone())).collect();
        let catalog = Catalog::new("rooms", []).expect("nothing contradicts nothing");
        let catalogs = Catalogs::default();
        Code {
            stack: Stack { catalog, catalogs, contexts: Vec::new() },
            readers: Readers::default(),
            present: BTreeMap::from([("rooms", Lock { events, ..Lock::default() })]),
        }
    }

    #[test]
    fn a_type_that_was_released_stays_and_a_new_one_is_added_on_demand() {
        let root = tempfile::tempdir().expect("a folder");
        let differences = |types: &[&str], update| code(types).differences(root.path(), update);
        let is_new = |name: &str| {
            format!(
                "schemas/rooms.json: the type {name}: is new\n  `UPDATE=1 cargo test` writes it"
            )
        };
        assert_eq!(differences(&["RoomBooked"], false), [is_new("RoomBooked")]);
        assert!(differences(&["RoomBooked"], true).is_empty());
        assert!(differences(&["RoomBooked"], false).is_empty());
        // Renamed: the old name is named however often the file is written.
        for update in [false, true, true] {
            let lines = differences(&["RoomReserved"], update);
            let last = lines.last().expect("a line");
            assert!(last.starts_with("schemas/rooms.json: the type RoomBooked: is gone"), "{last}");
            assert_eq!(lines.len(), if update { 1 } else { 2 });
        }
        let both = code(&["RoomBooked", "RoomReserved"]);
        assert!(both.differences(root.path(), false).is_empty());
        let written = Lock::read(root.path(), "rooms").expect("written");
        assert_eq!(written, both.present["rooms"]);
        // Without a case, and with no event of a case.
        let mut bare = both;
        for of in bare.present.values_mut().flat_map(|lock| lock.events.values_mut()) {
            of.versions.values_mut().for_each(|version| version.samples.clear());
        }
        let lines = bare.differences(root.path(), true);
        assert!(lines[0].starts_with("no case has an event of the type RoomBooked"), "{lines:?}");
        fs::write(root.path().join("schemas/rooms.json"), "{").expect("written");
        fs::write(root.path().join("schemas/halls.json"), "{}").expect("written");
        let lines = differences(&["RoomBooked"], true);
        assert!(lines[0].starts_with("schemas/rooms.json: EOF"), "{lines:?}");
        assert!(lines[0].ends_with(MERGE), "{lines:?}");
        assert!(lines[1].starts_with("schemas/halls.json is of no context"), "{lines:?}");
        assert_eq!(lines.len(), 2);
    }
}
