//! Checks that each context has what was released of it, and that its lock has all of the context.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::Path;

use ringfence_schemas::Lock;

use crate::functions::entries;

/// What differs between the locks of the code and those in `root`, each with what to do. With `update` what is new is
/// written into the files. What is gone or has changed is named all the same: its events may be in a log.
pub(crate) fn differences(
    present: &BTreeMap<&str, Lock>,
    root: &Path,
    update: bool,
) -> Vec<String> {
    let mut lines = Vec::new();
    for (context, present) in present {
        lines.extend(of_context(context, present, root, update));
    }
    let folder = root.join(Lock::FOLDER);
    let found = if folder.exists() { entries(&folder) } else { BTreeSet::new() };
    let is_of_one = |file: &&String| {
        present.keys().any(|context| Lock::path(context).ends_with(&format!("/{file}")))
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

fn of_context(context: &str, present: &Lock, root: &Path, update: bool) -> Vec<String> {
    let path = Lock::path(context);
    let locked = match Lock::read(root, context) {
        Ok(locked) => locked,
        Err(error) => return vec![error.to_string()],
    };
    let is_gone = |name: &&String| !present.events.contains_key(*name);
    let gone = locked.events.keys().filter(is_gone);
    let mut lines: Vec<_> = gone.map(|name| gone_type(&path, name, context)).collect();
    lines.extend(changed(&path, &locked, present));
    lines.extend(without_sample(present));
    let mut lock = locked.clone();
    lock.add(present);
    if update && (lock != locked || !root.join(&path).exists()) {
        lines.extend(lock.write(root, context).err().map(|error| error.to_string()));
    } else {
        let lacks = |what: String| format!("{path} lacks {what}: `UPDATE=1 cargo test` adds it");
        lines.extend(new(&lock, &locked).into_iter().map(lacks));
    }
    lines
}

/// What the one lock has and the other lacks.
fn new(lock: &Lock, locked: &Lock) -> Vec<String> {
    let mut new = Vec::new();
    for (name, of) in &lock.events {
        let Some(before) = locked.events.get(name) else {
            new.push(format!("the type {name}"));
            continue;
        };
        for (number, version) in &of.versions {
            match before.versions.get(number) {
                None => new.push(format!("version {number} of {name}")),
                Some(before) if before.samples != version.samples => {
                    new.push(format!("a sample of {name}"));
                }
                Some(_) => {}
            }
        }
    }
    for (name, command) in &lock.commands {
        match locked.commands.get(name) {
            None => new.push(format!("the command {name}")),
            Some(before) => {
                let codes = command.rejections.difference(&before.rejections);
                new.extend(codes.map(|code| format!("the rejection {code} of {name}")));
            }
        }
    }
    let names = |what: &'static str, all: &BTreeSet<String>, before: &BTreeSet<String>| {
        let new = all.difference(before).map(|name| format!("the {what} {name}"));
        new.collect::<Vec<_>>()
    };
    new.extend(names("snapshot", &lock.snapshots, &locked.snapshots));
    new.extend(names("view", &lock.views, &locked.views));
    new.extend(names("reactor", &lock.reactors, &locked.reactors));
    new
}

/// What has another shape than the lock says.
fn changed(path: &str, locked: &Lock, present: &Lock) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, of) in &present.events {
        let before = locked.events.get(name);
        for (number, version) in &of.versions {
            let before = before.and_then(|before| before.versions.get(number));
            if before.is_some_and(|before| before.shape != version.shape) {
                lines.push(another(path, &format!("version {number} of {name}")));
            }
        }
    }
    for (name, command) in &present.commands {
        let before = locked.commands.get(name);
        if before.is_some_and(|before| before.shape != command.shape) {
            lines.push(another(path, &format!("the command {name}")));
        }
    }
    lines
}

fn another(path: &str, what: &str) -> String {
    format!(
        "{path} has another shape of {what}. If it was never released, take it out of the file: `UPDATE=1 cargo test` \
         writes it again"
    )
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

fn gone_type(path: &str, name: &str, context: &str) -> String {
    format!(
        "{path} has the type {name}, which the context {context} does not declare any more. Its events stay in the log \
         under this name, so a decision would overlook them, or fail. Declare {name} again; a new name is for a new \
         type beside it, and the slices that read the one read the other too. If no log has an event of it (it was \
         never deployed, or is an unfold), remove it from the file"
    )
}

/// Whether the tests write what they compare.
pub(crate) fn updates() -> bool {
    env::var_os("UPDATE").is_some()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ringfence_schemas::{LockedType, LockedVersion, Shape};
    use serde_json::json;

    use super::*;

    fn lock(event_types: &[&str]) -> BTreeMap<&'static str, Lock> {
        let version = LockedVersion { shape: Shape::Any, samples: vec![json!({})] };
        let of = LockedType { versions: BTreeMap::from([(1, version)]), ..LockedType::default() };
        let events = event_types.iter().map(|name| ((*name).to_owned(), of.clone())).collect();
        BTreeMap::from([("rooms", Lock { events, ..Lock::default() })])
    }

    #[test]
    fn a_type_that_was_released_stays_and_a_new_one_is_added_on_demand() {
        let root = tempfile::tempdir().expect("a folder");
        let differences = |types: &[&str], update| differences(&lock(types), root.path(), update);
        let lacks = |name| {
            format!("schemas/rooms.json lacks the type {name}: `UPDATE=1 cargo test` adds it")
        };
        assert_eq!(differences(&["RoomBooked"], false), [lacks("RoomBooked")]);
        assert!(differences(&["RoomBooked"], true).is_empty());
        assert!(differences(&["RoomBooked"], false).is_empty());
        // Renamed: the old name is named however often the file is written.
        for update in [false, true, true] {
            let lines = differences(&["RoomReserved"], update);
            assert_eq!(lines[0], gone_type("schemas/rooms.json", "RoomBooked", "rooms"));
            assert_eq!(lines.len(), if update { 1 } else { 2 });
        }
        assert!(differences(&["RoomBooked", "RoomReserved"], false).is_empty());
        let written = Lock::read(root.path(), "rooms").expect("written");
        assert_eq!(written, lock(&["RoomBooked", "RoomReserved"])["rooms"]);
        fs::write(root.path().join("schemas/rooms.json"), "{").expect("written");
        fs::write(root.path().join("schemas/halls.json"), "{}").expect("written");
        let lines = differences(&["RoomBooked"], true);
        assert!(lines[0].starts_with("schemas/rooms.json: EOF"), "{lines:?}");
        assert!(lines[1].starts_with("schemas/halls.json is of no context"), "{lines:?}");
        assert_eq!(lines.len(), 2);
    }
}
