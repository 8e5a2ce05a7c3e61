//! The lock of a context: its released events, commands and names.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::Path;
use std::str::FromStr;
use std::{fmt, fs, io};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::object::{Object, named, objects};
use crate::{Histories, Shape};

/// The beginning of a line that marks a merge conflict of git.
const CONFLICT: &str = "<<<<<<< ";

/// The released parts of a context: the content of a committed file. A log keeps its events for ever, so each released
/// version of a type of events stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Lock {
    /// The types of events, by their names.
    #[serde(deserialize_with = "named")]
    pub events: BTreeMap<String, LockedType>,
    /// Events of cases, on which the folds below run.
    #[serde(deserialize_with = "object", skip_serializing_if = "Histories::is_empty")]
    pub histories: Histories,
    /// The states that slices keep in the log, by the names of the slices.
    #[serde(deserialize_with = "named", skip_serializing_if = "BTreeMap::is_empty")]
    pub states: BTreeMap<String, LockedFold>,
    /// The snapshots that documents of the context have, by their names.
    #[serde(deserialize_with = "named", skip_serializing_if = "BTreeMap::is_empty")]
    pub snapshots: BTreeMap<String, LockedFold>,
    /// The commands, by the names of their slices.
    #[serde(deserialize_with = "named", skip_serializing_if = "BTreeMap::is_empty")]
    pub commands: BTreeMap<String, LockedCommand>,
    /// The views, by their names, which are in the paths of their rows.
    #[serde(deserialize_with = "named", skip_serializing_if = "BTreeMap::is_empty")]
    pub views: BTreeMap<String, LockedFold>,
    /// The names of the slices that react to events. The keys of their reactions have these names.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub reactors: BTreeSet<String>,
    /// The dues, by the names of the slices whose commands are sent at a time. The rows of dues have these names.
    #[serde(deserialize_with = "named", skip_serializing_if = "BTreeMap::is_empty")]
    pub dues: BTreeMap<String, LockedFold>,
}

/// The released versions of a type of events, and how its events are filed and read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct LockedType {
    /// Whether consumers outside of the stack read it from the bus. A person writes this into the file.
    #[serde(skip_serializing_if = "is_false")]
    pub public: bool,
    /// Whether no slice writes it any more.
    #[serde(skip_serializing_if = "is_false")]
    pub retired: bool,
    /// Its tags, in the order of its fields.
    #[serde(deserialize_with = "objects")]
    pub tags: Vec<LockedTag>,
    /// Joins the values of a composite partition; absent if the partition is one tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub separator: Option<char>,
    /// Whether some decision reads the type by its whole set of tags.
    #[serde(skip_serializing_if = "is_false")]
    pub read_as_composite: bool,
    /// Whether some decision reads the type alone.
    #[serde(skip_serializing_if = "is_false")]
    pub read_by_type: bool,
    /// Whether a fence of its partition counts the type.
    #[serde(skip_serializing_if = "is_false")]
    pub fenced: bool,
    /// The older version that its slices still write; absent if they write the newest one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<u32>,
    /// Its versions, by their numbers. The code has only the newest one.
    #[serde(deserialize_with = "versions")]
    pub versions: BTreeMap<u32, LockedVersion>,
}

impl LockedType {
    /// The number of the newest version; 0 if there is none.
    #[must_use]
    pub fn newest(&self) -> u32 {
        self.versions.keys().last().copied().unwrap_or_default()
    }

    /// The number of the version that its slices write.
    #[must_use]
    pub fn written(&self) -> u32 {
        self.write.unwrap_or_else(|| self.newest())
    }
}

/// A tag of a type of events. It decides where events are filed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LockedTag {
    /// The key.
    pub key: String,
    /// Whether it is (part of) the partition tag.
    #[serde(default, skip_serializing_if = "is_false")]
    pub partition: bool,
    /// Whether decisions read all events with the tag, in any partition.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cross_partition: bool,
    /// Whether it is read by index items.
    #[serde(default, skip_serializing_if = "is_false")]
    pub strong: bool,
    /// Whether it can have several values.
    #[serde(default, skip_serializing_if = "is_false")]
    pub many: bool,
    /// Whether it has an HMAC in place of a personal value.
    #[serde(default, skip_serializing_if = "is_false")]
    pub blind: bool,
}

/// A version of a type of events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedVersion {
    /// The shape of payloads of this version.
    pub shape: Shape,
    /// Payloads of this version, of the cases of slices.
    pub samples: Vec<Value>,
    /// The places of members that the type no longer has, as a [`ShapeDifference`] names them.
    ///
    /// [`ShapeDifference`]: crate::ShapeDifference
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub gone: BTreeSet<String>,
}

/// The command of a slice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedCommand {
    /// Its shape.
    pub shape: Shape,
    /// The codes of the rejections in its cases.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub rejections: BTreeSet<String>,
}

/// A fold whose result is stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LockedFold {
    /// The version of the stored results.
    #[serde(skip_serializing_if = "is_zero")]
    pub version: u32,
    /// The types of events that it reads. A kept state is not read after a change of these types or their versions, so
    /// a state's types also have the versions above 1.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub types: BTreeSet<String>,
    /// Its results for histories, by their numbers: eight digits of a hash for each event that it reads.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub made: BTreeMap<usize, String>,
}

impl LockedFold {
    /// Whether one fold continues from the results that the other one, of the same kind, has stored.
    pub(crate) fn is_same_version(&self, kind: FoldKind, other: &Self) -> bool {
        self.version == other.version && (kind != FoldKind::State || self.types == other.types)
    }
}

/// A kind of stored fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoldKind {
    /// A state that a slice keeps.
    State,
    /// The snapshot of a document.
    Document,
    /// The rows of a view.
    View,
    /// The rows of a due.
    Due,
}

impl FoldKind {
    pub(crate) const ALL: [Self; 4] = [Self::State, Self::Document, Self::View, Self::Due];
}

/// A lock that can't be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}")]
pub struct LockError {
    /// The file, as a path in the repository of the stack.
    pub path: String,
    /// Why.
    pub source: io::Error,
}

impl Lock {
    /// The folder of the locks, in the repository of a stack.
    pub const FOLDER: &'static str = "schemas";

    /// The folds of a kind.
    pub(crate) fn folds(&self, kind: FoldKind) -> &BTreeMap<String, LockedFold> {
        match kind {
            FoldKind::State => &self.states,
            FoldKind::Document => &self.snapshots,
            FoldKind::View => &self.views,
            FoldKind::Due => &self.dues,
        }
    }

    /// The folds of a kind.
    pub(crate) fn folds_mut(&mut self, kind: FoldKind) -> &mut BTreeMap<String, LockedFold> {
        match kind {
            FoldKind::State => &mut self.states,
            FoldKind::Document => &mut self.snapshots,
            FoldKind::View => &mut self.views,
            FoldKind::Due => &mut self.dues,
        }
    }

    /// The file of the lock of a context.
    #[must_use]
    pub fn path(context: &str) -> String {
        format!("{}/{context}.json", Self::FOLDER)
    }

    /// The lock of a context in the repository of a stack; an empty one if there is no file.
    ///
    /// # Errors
    /// The file can't be read, or it does not hold a lock.
    pub fn read(root: &Path, context: &str) -> Result<Self, LockError> {
        let path = Self::path(context);
        let read = match fs::read_to_string(root.join(&path)) {
            Ok(text) if text.lines().any(|line| line.starts_with(CONFLICT)) => {
                Err(io::Error::other("it has the marks of a merge that is not resolved"))
            }
            Ok(text) => text.parse().map_err(io::Error::from),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        };
        read.map_err(|source| LockError { path, source })
    }

    /// Writes the lock of a context into the repository of a stack.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn write(&self, root: &Path, context: &str) -> Result<(), LockError> {
        let path = Self::path(context);
        let write = || {
            fs::create_dir_all(root.join(Self::FOLDER))?;
            fs::write(root.join(&path), self.to_string())
        };
        write().map_err(|source| LockError { path: path.clone(), source })
    }
}

/// The content of its file.
impl fmt::Display for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = serde_json::to_string_pretty(self).map_err(|_| fmt::Error)?;
        writeln!(f, "{text}")
    }
}

impl FromStr for Lock {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        serde_json::from_str(text).map(|Object(lock)| lock)
    }
}

/// Reads versions, whose numbers begin with 1.
fn versions<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<u32, LockedVersion>, D::Error> {
    let versions: BTreeMap<NonZeroU32, _> = named(deserializer)?;
    Ok(versions.into_iter().map(|(number, version)| (number.get(), version)).collect())
}

fn object<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Object::deserialize(deserializer).map(|Object(object)| object)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(version: &u32) -> bool {
    *version == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lock_is_written_as_it_is_read() {
        let version =
            json!({ "shape": { "type": "string", "enum": ["a", "b"] }, "samples": ["a"] });
        let json = json!({
            "events": {
                "Kept": { "public": true, "tags": [], "versions": { "1": version } },
                "New": { "tags": [{ "key": "id", "many": true }], "versions": {} },
            },
            "histories": {
                "events": [
                    { "context": "kept", "partition": "id:a", "type": "Kept", "data": "a" },
                    { "context": "new", "partition": "new-b", "type": "New", "version": 2, "data": {} },
                ],
                "sequences": ["1 1 2"],
            },
            "states": { "keep": { "types": ["Kept 2"], "made": { "1": "01234567 89abcdef" } } },
            "snapshots": { "New": { "version": 2 } },
            "commands": { "keep": { "shape": {}, "rejections": ["Gone"] }, "new": { "shape": {} } },
            "views": { "new": {}, "old": {} },
            "reactors": ["new"],
            "dues": { "new": {} },
        });
        let lock: Lock = serde_json::from_value(json.clone()).expect("a lock");
        assert_eq!(serde_json::to_value(&lock).expect("JSON"), json);
        assert_eq!(lock.to_string().parse::<Lock>().expect("a lock"), lock);
    }

    #[test]
    fn other_files_are_not_read_as_locks() {
        let version = r#"{ "shape": {}, "samples": [] }"#;
        let of_type = |rest: &str| format!(r#"{{ "events": {{ "New": {{ {rest} }} }} }}"#);
        for (text, why) in [
            ("[]", "invalid type: sequence, expected an object"),
            (r#"{ "events": [] }"#, "invalid type: sequence, expected an object"),
            (r#"{ "views": ["new"] }"#, "invalid type: sequence, expected an object"),
            (r#"{ "histories": [[], []] }"#, "invalid type: sequence, expected an object"),
            (
                r#"{ "histories": { "events": [], "sequences": ["1,2"] } }"#,
                r#""1,2" is no sequence"#,
            ),
            (r#"{ "events": { "New": [] } }"#, "invalid type: sequence, expected an object"),
            (&of_type(r#""tags": [["id"]]"#), "invalid type: sequence, expected an object"),
            (
                &of_type(&format!(r#""versions": {{ "0": {version} }}"#)),
                "invalid value: integer `0`, expected a nonzero u32",
            ),
            (
                &of_type(&format!(r#""versions": {{ "1": {version}, "1": {version} }}"#)),
                "it has 1 twice",
            ),
        ] {
            let error = text.parse::<Lock>().expect_err(text).to_string();
            assert!(error.starts_with(why), "{text}: {error}");
        }
    }
}
