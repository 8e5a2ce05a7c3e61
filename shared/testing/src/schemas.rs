//! Checks that each context declares every type of events that was released of it.

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs, io};

use ringfence::Lock;
use ringfence_stack::Stack;

use crate::functions::entries;

/// What differs between the stack and the locks in `root`, each with what to do. With `update` new types are written
/// into the locks. A type that is gone is named all the same: its events may be in a log.
pub(crate) fn differences(stack: &Stack, root: &Path, update: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for context in &stack.contexts {
        let path = Lock::path(context.name);
        let declared = Lock::of(context.event_types.iter().map(|name| &**name));
        let mut lock = match read(&root.join(&path)) {
            Ok(lock) => lock,
            Err(why) => {
                lines.push(format!("{path}: {why}"));
                continue;
            }
        };
        let is_gone = |name: &&String| !declared.events.contains_key(*name);
        lines
            .extend(lock.events.keys().filter(is_gone).map(|name| gone(&path, name, context.name)));
        let before = lock.events.len();
        let is_new = |name: &&String| !lock.events.contains_key(*name);
        let new: Vec<_> = declared.events.keys().filter(is_new).cloned().collect();
        lock.events.extend(declared.events);
        if update && (lock.events.len() > before || !root.join(&path).exists()) {
            lines.extend(write(&root.join(&path), &lock).err().map(|why| format!("{path}: {why}")));
        } else {
            let lacks =
                |name| format!("{path} lacks the type {name}: `UPDATE=1 cargo test` adds it");
            lines.extend(new.into_iter().map(lacks));
        }
    }
    let folder = root.join(Lock::FOLDER);
    let found = if folder.exists() { entries(&folder) } else { BTreeSet::new() };
    let is_of_one = |file: &&String| {
        stack.contexts.iter().any(|context| Lock::path(context.name).ends_with(&format!("/{file}")))
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

fn gone(path: &str, name: &str, context: &str) -> String {
    format!(
        "{path} has the type {name}, which the context {context} does not declare any more. Its events stay in the log \
         under this name, so a decision would overlook them, or fail. Declare {name} again; a new name is for a new \
         type beside it, and the slices that read the one read the other too. If no log has an event of it (it was \
         never deployed, or is an unfold), remove it from the file"
    )
}

/// The lock in a file; an empty one if there is no file.
fn read(path: &Path) -> Result<Lock, String> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Lock::default()),
        Err(error) => return Err(error.to_string()),
    };
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

fn write(path: &Path, lock: &Lock) -> io::Result<()> {
    let text = serde_json::to_string_pretty(lock).map_err(io::Error::other)? + "\n";
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::write(path, text)
}

/// Whether the tests write what they compare.
pub(crate) fn updates() -> bool {
    env::var_os("UPDATE").is_some()
}

#[cfg(test)]
mod tests {
    use ringfence::{Catalog, Catalogs, LogKind};
    use ringfence_stack::ContextInfo;

    use super::*;

    fn stack(event_types: &[&'static str]) -> Stack {
        let event_types = event_types.iter().map(|name| (*name).into()).collect();
        let (slices, views, functions) = (vec![], vec![], vec![]);
        let context =
            ContextInfo { name: "rooms", log: LogKind::Dcb, event_types, slices, views, functions };
        let catalog = Catalog::new("rooms", []).expect("nothing contradicts nothing");
        Stack { catalog, catalogs: Catalogs::default(), contexts: vec![context] }
    }

    #[test]
    fn a_type_that_was_released_stays_and_a_new_one_is_added_on_demand() {
        let root = tempfile::tempdir().expect("a folder");
        let differences =
            |types: &[&'static str], update| differences(&stack(types), root.path(), update);
        let lacks = |name| {
            format!("schemas/rooms.json lacks the type {name}: `UPDATE=1 cargo test` adds it")
        };
        assert_eq!(differences(&["RoomBooked"], false), [lacks("RoomBooked")]);
        assert!(differences(&["RoomBooked"], true).is_empty());
        assert!(differences(&["RoomBooked"], false).is_empty());
        // Renamed: the old name is named however often the file is written.
        for update in [false, true, true] {
            let lines = differences(&["RoomReserved"], update);
            assert_eq!(lines[0], gone("schemas/rooms.json", "RoomBooked", "rooms"));
            assert_eq!(lines.len(), if update { 1 } else { 2 });
        }
        assert!(differences(&["RoomBooked", "RoomReserved"], false).is_empty());
        let text = fs::read_to_string(root.path().join("schemas/rooms.json")).expect("written");
        assert_eq!(
            text,
            "{\n  \"events\": {\n    \"RoomBooked\": {},\n    \"RoomReserved\": {}\n  }\n}\n"
        );
        fs::write(root.path().join("schemas/rooms.json"), "{").expect("written");
        fs::write(root.path().join("schemas/halls.json"), "{}").expect("written");
        let lines = differences(&["RoomBooked"], true);
        assert!(lines[0].starts_with("schemas/rooms.json: EOF"), "{lines:?}");
        assert!(lines[1].starts_with("schemas/halls.json is of no context"), "{lines:?}");
        assert_eq!(lines.len(), 2);
    }
}
