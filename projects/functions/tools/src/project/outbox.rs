//! `outbox.jsonl`: commands that wait to be sent, a JSON object each, in the order in which they were given.
//!
//! It has commands and not events: otherwise two agents who have finished one edge offline would both count. A rejected
//! command goes to a new file in `conflicts/`, with all later commands of its edge, which depend on it. Commands in
//! such a file wait no more, even if the program ended before the outbox was written.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow};
use projects::EdgeRef;
use ringfence_core::Id;
use serde_json::Value;

use super::folder::{OUTBOX, Reading, Writing};
use super::json;
use projects::line::About;

const CONFLICTS: &str = "conflicts";

/// A command that waits.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Queued {
    pub(crate) slice: String,
    pub(crate) data: Value,
    /// The idempotency key.
    pub(crate) key: Id,
    /// When it was given: RFC 3339.
    pub(crate) effective_at: String,
}

impl Queued {
    pub(crate) fn edge(&self) -> Option<EdgeRef> {
        About::of(&self.data).edge
    }
}

/// A file in `conflicts/`.
#[ringfence::value]
struct Conflict {
    command: Queued,
    /// The answer that rejects it.
    answer: Value,
    /// The later commands of its edge.
    later: Vec<Queued>,
}

/// The commands that wait.
pub(crate) struct Outbox(Vec<Queued>);

impl Outbox {
    /// Reads them.
    ///
    /// # Errors
    /// A line is not a command, or is of another project.
    pub(crate) fn read(folder: &Reading<'_>) -> Result<Self> {
        let text = folder.text(OUTBOX)?.unwrap_or_default();
        let mut queued = Vec::new();
        for (n, line) in text.lines().enumerate() {
            let command: Queued = json::read(line).map_err(|error| {
                let path = folder.path(OUTBOX);
                anyhow!(
                    "line {} of {} is not a command ({error:#}): mend or remove it",
                    n + 1,
                    path.display()
                )
            })?;
            let project = About::of(&command.data).project;
            project.iter().try_for_each(|project| folder.check_project(OUTBOX, project))?;
            queued.push(command);
        }
        let rejected = rejected(folder)?;
        queued.retain(|queued: &Queued| !rejected.contains(&queued.key));
        Ok(Self(queued))
    }

    /// The first one.
    pub(crate) fn first(&self) -> Option<&Queued> {
        self.0.first()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Queued> {
        self.0.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a command after the others.
    pub(crate) fn add(&mut self, folder: &Writing<'_>, queued: Queued) -> Result<()> {
        self.0.push(queued);
        self.keep(folder)
    }

    /// A command has taken effect, so it waits no more.
    pub(crate) fn accepted(&mut self, folder: &Writing<'_>, key: &Id) -> Result<()> {
        self.0.retain(|queued| queued.key != *key);
        self.keep(folder)
    }

    /// A command is rejected, so it waits no more. Returns how many later ones of its edge go with it.
    pub(crate) fn rejected(
        &mut self,
        folder: &Writing<'_>,
        command: Queued,
        answer: Value,
    ) -> Result<usize> {
        let edge = command.edge();
        let rests = |queued: &Queued| edge.is_some() && queued.edge() == edge;
        self.0.retain(|queued| queued.key != command.key);
        let (later, left) = self.0.drain(..).partition(rests);
        self.0 = left;
        let (name, conflict) = (
            format!("{CONFLICTS}/{}.json", command.key.as_str()),
            Conflict { command, answer, later },
        );
        folder.replace(&name, &serde_json::to_string_pretty(&conflict)?)?;
        self.keep(folder)?;
        Ok(conflict.later.len())
    }

    /// Writes the commands that wait, without those in `conflicts/`.
    pub(crate) fn keep(&self, folder: &Writing<'_>) -> Result<()> {
        let lines = self.0.iter().map(|queued| Ok(serde_json::to_string(queued)? + "\n"));
        folder.replace(OUTBOX, &lines.collect::<Result<String>>()?)
    }
}

/// The keys of the commands in the files of `conflicts/`.
fn rejected(folder: &Reading<'_>) -> Result<BTreeSet<Id>> {
    let mut keys = BTreeSet::new();
    for name in folder.names(CONFLICTS)? {
        let name = format!("{CONFLICTS}/{name}");
        if name.ends_with(".json")
            && let Some(text) = folder.text(&name)?
        {
            let conflict: Conflict = json::read(&text).map_err(|error| {
                let path = folder.path(&name);
                anyhow!("{} has no rejected command ({error:#}): mend or delete it", path.display())
            })?;
            keys.extend([conflict.command].into_iter().chain(conflict.later).map(|it| it.key));
        }
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::folder::Folder;
    use super::*;

    #[test]
    fn a_rejected_command_leaves_the_outbox_only_after_it_is_in_conflicts() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::at(root.path(), &"shop".parse().unwrap());
        let writing = folder.write().unwrap();
        let queued = |key: &str| Queued {
            slice: "create-feature".to_owned(),
            data: json!({ "feature": "shop/REQ-F-AUTH-001" }),
            key: key.to_owned().try_into().unwrap(),
            effective_at: "2026-11-22T19:30:00Z".to_owned(),
        };
        let mut outbox = Outbox::read(&writing).unwrap();
        outbox.add(&writing, queued("k1")).unwrap();
        outbox.add(&writing, queued("k2")).unwrap();
        // A file can't be written in the place of a folder.
        let barrier = writing.path("conflicts/k1.json.new");
        std::fs::create_dir_all(&barrier).unwrap();
        outbox.rejected(&writing, queued("k1"), json!({})).unwrap_err();
        let mut outbox = Outbox::read(&writing).unwrap();
        assert_eq!(outbox.0, [queued("k1"), queued("k2")]);
        std::fs::remove_dir(barrier).unwrap();
        outbox.rejected(&writing, queued("k1"), json!({})).unwrap();
        assert_eq!(Outbox::read(&writing).unwrap().0, [queued("k2")]);
    }
}
