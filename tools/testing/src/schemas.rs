//! Checks each context against its lock: all released names still exist, every reader can read all versions, and the
//! lock is complete.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Write as _, stderr};
use std::path::Path;

use ringfence_core::kit::fail;
use ringfence_local::stack_root;
use ringfence_schemas::{
    Comparison, Lock, LockError, Readers, check, present, unlike_their_shapes,
};
use ringfence_stack::{Members, Stack};

use crate::listed::entries;
use crate::template::check_none;
use crate::written;

/// Panics unless the JSON of cases has the shapes that its types declare, each context still has everything that it has
/// released (`schemas/<context>.json`), and every slice, reaction and view of the stack reads every released version.
/// The message says whom a change breaks, and what to write. With the variable `UPDATE`, additions are written into the
/// files.
pub fn check_schemas<M: Members>() {
    let stack = Stack::of::<M>().unwrap_or_else(|error| fail("the stack", error));
    let code = Code { stack, readers: Readers::of::<M>(), present: present::<M>() };
    let mut lines = unlike_their_shapes::<M>(&code.present);
    let Found { wrong, notes } = code.differences(&stack_root(), written::is_asked());
    lines.extend(wrong);
    for note in notes {
        // The output of a passing test is not shown.
        writeln!(stderr(), "{note}").unwrap_or_else(|error| fail("stderr", error));
    }
    check_none(&lines);
}

/// The way out for a file that can't be read.
fn of_no_lock(error: &LockError) -> String {
    let path = &error.path;
    let what_to_do = format!(
        "\n  in a merge, take the file of the branch that comes first, such as by `git checkout origin/main -- {path}`, and \
         run `UPDATE=1 cargo test`. If both branches have begun the same version, yours gets the next number\n  \
         otherwise give it back the text of the last commit: `git checkout HEAD -- {path}`"
    );
    error.to_string() + &what_to_do
}

/// The differences between the code and the locks.
#[derive(Default)]
struct Found {
    /// Faults.
    wrong: Vec<String>,
    /// Notes about written files.
    notes: Vec<String>,
}

struct Code {
    stack: Stack,
    readers: Readers,
    present: BTreeMap<&'static str, Lock>,
}

impl Code {
    /// The differences between the code and the locks in `root`, each with the way out. With `update` allowed additions
    /// are written into the files.
    fn differences(&self, root: &Path, update: bool) -> Found {
        let mut lines = Found::default();
        for (context, now) in &self.present {
            self.of_context(context, now, root, update, &mut lines);
        }
        let folder = root.join(Lock::FOLDER);
        let found = if folder.exists() { entries(&folder) } else { BTreeSet::new() };
        let is_of_one = |file: &&String| {
            self.present.keys().any(|context| Lock::path(context).ends_with(&format!("/{file}")))
        };
        for file in found.iter().filter(|file| !is_of_one(file)) {
            let shown = format!("{}/{file}", Lock::FOLDER);
            let context = file.trim_end_matches(".json");
            let is_gone = !root.join("functions").join(context).exists();
            if is_gone && update {
                let deleted = fs::remove_file(folder.join(file));
                deleted.unwrap_or_else(|error| fail(&shown, error));
                lines.notes.push(format!(
                    "{shown} is deleted, because functions/{context} is gone. If events of its types are in a log, restore \
                     both"
                ));
            } else {
                let way_out = match is_gone {
                    true => "restore functions/{context}, or let `UPDATE=1 cargo test` delete the file if none of its types \
                             was ever stored"
                        .replace("{context}", context),
                    false => "list the context again, or delete its folder".to_owned(),
                };
                lines.wrong.push(format!(
                    "{shown} is of no context of the stack, but events of its types may be in a log: {way_out}"
                ));
            }
        }
        lines
    }

    fn of_context(&self, context: &str, now: &Lock, root: &Path, update: bool, lines: &mut Found) {
        let released = match Lock::read(root, context) {
            Ok(released) => released,
            Err(error) => return lines.wrong.push(of_no_lock(&error)),
        };
        let Comparison { grown, findings } =
            check(&self.stack, &self.readers, context, &released, now);
        lines.wrong.extend(without_sample(now));
        for mut finding in findings {
            if !(finding.is_written && update) {
                lines.wrong.push(finding.to_string());
            } else if !finding.remedy.is_empty() {
                // It is written now.
                finding.is_written = false;
                lines.notes.push(finding.to_string());
            }
        }
        if update && (grown != released || !root.join(Lock::path(context)).exists()) {
            lines.wrong.extend(grown.write(root, context).err().map(|error| error.to_string()));
        }
    }
}

/// The types without an event in a case.
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
    use ringfence_core::{Catalog, Catalogs};
    use ringfence_schemas::{LockedType, LockedVersion, Shape};
    use serde_json::json;

    use super::*;

    /// Code that declares these types of one context, and reads none of them.
    fn code(event_types: &[&str]) -> Code {
        let version = LockedVersion { samples: vec![json!({})], ..LockedVersion::default() };
        let of = LockedType { versions: BTreeMap::from([(1, version)]), ..LockedType::default() };
        let events = event_types.iter().map(|name| ((*name).to_owned(), of.clone())).collect();
        let catalog = Catalog::new("rooms", []).expect("nothing contradicts nothing");
        let catalogs = Catalogs::default();
        Code {
            stack: Stack {
                name: "",
                catalog,
                catalogs,
                sources: Default::default(),
                contexts: Vec::new(),
            },
            readers: Readers::default(),
            present: BTreeMap::from([("rooms", Lock { events, ..Lock::default() })]),
        }
    }

    #[test]
    fn a_type_that_was_released_stays_and_a_new_one_is_added_on_demand() {
        let root = tempfile::tempdir().expect("a folder");
        let found = |code: &Code, update| code.differences(root.path(), update).wrong;
        let differences = |types: &[&str], update| found(&code(types), update);
        let is_new = |name: &str| {
            format!(
                "schemas/rooms.json: the type {name}: is new\n  `UPDATE=1 cargo test` writes it"
            )
        };
        assert_eq!(differences(&["RoomBooked"], false), [is_new("RoomBooked")]);
        assert!(differences(&["RoomBooked"], true).is_empty());
        assert!(differences(&["RoomBooked"], false).is_empty());
        // After a renaming the old name is reported, however often the file is written.
        for update in [false, true, true] {
            let lines = differences(&["RoomReserved"], update);
            let last = lines.last().expect("a line");
            assert!(last.starts_with("schemas/rooms.json: the type RoomBooked: is gone"), "{last}");
            assert_eq!(lines.len(), if update { 1 } else { 2 });
        }
        let both = code(&["RoomBooked", "RoomReserved"]);
        assert!(found(&both, false).is_empty());
        let written = Lock::read(root.path(), "rooms").expect("written");
        assert_eq!(written, both.present["rooms"]);
        // One type without a case, and one without an event in a case.
        let mut bare = both;
        for of in bare.present.values_mut().flat_map(|lock| lock.events.values_mut()) {
            of.versions.values_mut().for_each(|version| version.samples.clear());
        }
        let lines = found(&bare, true);
        assert!(lines[0].starts_with("no case has an event of the type RoomBooked"), "{lines:?}");
        let write = |file: &str, text: &str| {
            fs::write(root.path().join("schemas").join(file), text).expect("written");
        };
        write("halls.json", "{}");
        for (text, why) in [
            ("{", "schemas/rooms.json: EOF"),
            ("{\n<<<<<<< HEAD\n}", "schemas/rooms.json: it has the marks of a merge"),
        ] {
            write("rooms.json", text);
            let lines = differences(&["RoomBooked"], false);
            assert!(lines[0].starts_with(why), "{lines:?}");
            assert!(
                lines[0].contains("git checkout origin/main -- schemas/rooms.json"),
                "{lines:?}"
            );
            assert!(lines[1].starts_with("schemas/halls.json is of no context"), "{lines:?}");
            assert!(lines[1].contains("restore functions/halls"), "{lines:?}");
            assert_eq!(lines.len(), 2);
        }
        // The folder is there, so only the context's line is lost.
        let of_halls = root.path().join("functions/halls");
        fs::create_dir_all(&of_halls).expect("a folder");
        let lines = differences(&["RoomBooked"], true);
        assert!(lines[1].ends_with("list the context again, or delete its folder"), "{lines:?}");
        fs::remove_dir(of_halls).expect("an empty folder");
        assert_eq!(differences(&["RoomBooked"], true).len(), 1);
        assert!(!root.path().join("schemas/halls.json").exists());
    }

    /// The notes must also reach a person whose test passes, because readers have to be deployed first.
    #[test]
    fn notes_on_written_files_are_shown() {
        let root = tempfile::tempdir().expect("a folder");
        let differences = |kinds: &[&str], update| {
            let mut code = code(&["RoomBooked"]);
            for of in code.present.values_mut().flat_map(|lock| lock.events.values_mut()) {
                let version = of.versions.get_mut(&1).expect("the first version");
                let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
                (version.shape, version.samples) = (Shape::Choice(kinds), vec![json!("single")]);
            }
            code.differences(root.path(), update)
        };
        let Found { wrong, notes } = differences(&["single"], true);
        assert_eq!((wrong.len(), notes.len()), (0, 0));
        let Found { wrong, notes } = differences(&["single", "suite"], true);
        assert_eq!((wrong.len(), notes.len()), (0, 1));
        assert!(notes[0].contains("readers first"), "{notes:?}");
        assert!(!notes[0].contains("UPDATE=1"), "{notes:?}");
    }
}
