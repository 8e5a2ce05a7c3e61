//! Compares this build with the build of another commit, by their locks.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};
use ringfence_schemas::{Audience, Finding, Lock, changed_folds, compare, forward};
use serde_json::{Value, json};

use crate::Lists;
use crate::out::{Output, serialize_as, write_line};

/// The comparison.
struct Compared<'a> {
    base: &'a str,
    contexts: usize,
    /// Contexts that this build does not have.
    gone: Vec<String>,
    findings: Vec<Finding>,
}

/// Compares this build with a commit's locks of the stack in the working directory.
pub(super) fn check(base: &str, lists: &Lists, output: Output) -> Result<ExitCode> {
    let root = ringfence_new::root()?;
    let (locks, mut now) = (locks(&root, base)?, (lists.locks)());
    for (context, now) in &mut now {
        add_versions(now, Lock::read(&root, context)?);
    }
    let mut compared = Compared::of(base, &locks, &now)?;
    for (context, lock) in &locks {
        let changed = changed_folds(&lists.stack, &lists.readers, context, lock);
        compared.findings.extend(changed);
    }
    let is_well = compared.gone.is_empty() && compared.findings.is_empty();
    Ok(output.end(&compared, is_well))
}

impl<'a> Compared<'a> {
    fn of(
        base: &'a str,
        locks: &BTreeMap<String, Lock>,
        now: &BTreeMap<&'static str, Lock>,
    ) -> Result<Self> {
        let (mut gone, mut findings) = (Vec::new(), Vec::new());
        for (context, lock) in locks {
            let Some(now) = now.get(&**context) else {
                gone.push(context.clone());
                continue;
            };
            // A finding counts if this build breaks a released promise, or writes what the functions of that commit
            // can't read.
            let breaks = |finding: &Finding| !finding.breaks.is_empty();
            findings.extend(compare(context, lock, now).findings.into_iter().filter(breaks));
            findings.extend(forward(context, lock, now));
        }
        ensure!(
            gone.len() < locks.len(),
            "{base} has the contexts {}, and this build has {}: call the command line of the stack in this folder",
            gone.join(", "),
            now.keys().copied().collect::<Vec<_>>().join(", ")
        );
        Ok(Self { base, contexts: locks.len() - gone.len(), gone, findings })
    }
}

/// Adds the older versions from the folder's lock. The code knows only the newest one.
fn add_versions(now: &mut Lock, of_folder: Lock) {
    for (name, of) in of_folder.events {
        if let Some(now) = now.events.get_mut(&name) {
            let newest = now.versions.keys().max().copied().unwrap_or(1);
            now.versions.extend(of.versions.into_iter().filter(|(number, _)| *number < newest));
        }
    }
}

/// A commit's locks of the stack in a folder, by the names of their contexts.
fn locks(root: &Path, base: &str) -> Result<BTreeMap<String, Lock>> {
    let commit = format!("{base}^{{commit}}");
    let commit = git(root, &["rev-parse", "--verify", "--end-of-options", &commit]);
    let commit = commit.with_context(|| {
        format!(
            "--base {base}: name a branch, a tag or a commit that this clone has; `git fetch origin` brings the \
             others"
        )
    })?;
    let (commit, folder) = (commit.trim(), format!("{}/", Lock::FOLDER));
    let files = git(root, &["ls-tree", "-z", "--name-only", commit, "--", &folder])?;
    let mut locks = BTreeMap::new();
    for file in files.split_terminator('\0') {
        let name = file.strip_prefix(&folder).and_then(|file| file.strip_suffix(".json"));
        let Some(context) = name else { continue };
        let text = git(root, &["show", &format!("{commit}:./{file}")])?;
        let lock = text.parse().with_context(|| format!("{file} of {base}"))?;
        locks.insert(context.to_owned(), lock);
    }
    ensure!(
        !locks.is_empty(),
        "--base {base}: it has no locks in {folder}, so there is nothing to compare with"
    );
    Ok(locks)
}

/// The output of git.
fn git(root: &Path, arguments: &[&str]) -> Result<String> {
    let mut git = Command::new("git");
    let output = git.args(arguments).current_dir(root).stdin(Stdio::null()).output();
    let output = output.context("git can't be started")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

impl Display for Compared<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { base, contexts, gone, findings } = self;
        for context in gone {
            let path = Lock::path(context);
            write_line!(
                f,
                "{path} of {base} is of a context that this build does not have, and its events may be in a log"
            )?;
        }
        for finding in findings {
            writeln!(f, "{finding}")?;
        }
        let is_well = gone.is_empty() && findings.is_empty();
        let end = if is_well { "compatible" } else { "not compatible" };
        write_line!(f, "{contexts} contexts compared with {base}: {end}")
    }
}

serialize_as!(Compared<'_>, |Compared { base, contexts, gone, findings }| {
    let findings = findings.iter().map(|finding| {
        let Finding { path, subject, changes, breaks, remedy, .. } = finding;
        let breaks = breaks.iter().map(|(audience, how)| json!({ "scope": scope(*audience), "how": how }));
        json!({
            "path": path, "subject": subject, "changes": changes, "breaks": breaks.collect::<Value>(),
            "remedy": remedy,
        })
    });
    json!({ "base": base, "contexts": contexts, "gone": gone, "findings": findings.collect::<Value>() })
});

fn scope(audience: Audience) -> &'static str {
    match audience {
        Audience::Log => "log",
        Audience::Bus => "bus",
        Audience::Http => "http",
        Audience::Rows => "rows",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(lock: Value) -> Lock {
        serde_json::from_value(lock).expect("a lock")
    }

    /// A context with an event whose one field is one of these texts, and a command with these codes.
    fn rooms(choices: &[&str], samples: &[&str], codes: &[&str]) -> Value {
        let shape = json!({
            "type": "object", "properties": { "kind": { "type": "string", "enum": choices } },
            "required": ["kind"], "additionalProperties": false,
        });
        let samples: Vec<_> = samples.iter().map(|kind| json!({ "kind": kind })).collect();
        json!({
            "events": { "RoomBooked": { "tags": [], "versions": { "1": { "shape": shape, "samples": samples } } } },
            "commands": { "book-room": { "shape": shape, "rejections": codes } },
        })
    }

    #[test]
    fn the_code_has_its_newest_version_and_the_folder_the_older_ones() {
        let versions = |numbers: &[u32]| {
            let version =
                |number: &u32| (number.to_string(), json!({ "shape": {}, "samples": [] }));
            let versions = numbers.iter().map(version).collect::<Value>();
            lock(json!({ "events": { "RoomBooked": { "tags": [], "versions": versions } } }))
        };
        let mut now = versions(&[2]);
        add_versions(&mut now, versions(&[1, 2, 3]));
        assert_eq!(now, versions(&[1, 2]));
    }

    #[test]
    fn both_directions_are_compared_and_each_scope_is_named() {
        let mut base = rooms(&["double"], &["double"], &["RoomTaken"]);
        base["events"]["RoomLeft"] = json!({ "public": true, "tags": [], "versions": {} });
        let now = rooms(&["double", "single"], &["double", "single"], &[]);
        let (now, base) = (BTreeMap::from([("rooms", lock(now))]), lock(base));
        let locks =
            BTreeMap::from([("rooms".to_owned(), base.clone()), ("halls".to_owned(), base)]);
        let report = json!(Compared::of("main", &locks, &now).expect("rooms are in both"));
        let findings = report["findings"].as_array().expect("findings");
        let found = |of: &Value| (of["subject"].clone(), of["breaks"][0]["scope"].clone());
        let expected = [
            ("the type RoomLeft", "log"),
            ("the command book-room", "http"),
            ("RoomBooked version 1", "log"),
        ];
        let expected = expected.map(|(subject, scope)| (json!(subject), json!(scope)));
        assert_eq!(findings.iter().map(found).collect::<Vec<_>>(), expected);
        assert_eq!(report["gone"], json!(["halls"]));

        let same = BTreeMap::from([("rooms".to_owned(), now["rooms"].clone())]);
        let compared = Compared::of("main", &same, &now).expect("rooms are in both").to_string();
        assert_eq!(compared, "1 contexts compared with main: compatible\n");
        let other = BTreeMap::from([("halls".to_owned(), Lock::default())]);
        let error = Compared::of("main", &other, &now).err().expect("another stack").to_string();
        assert!(error.contains("halls, and this build has rooms"), "{error}");
    }
}
