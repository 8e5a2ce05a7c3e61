//! The lock of a context: what was released of it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Shape;

/// What was released of a context: the content of a committed file. A log keeps its events for ever, so each version of
/// a type of events that was released stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Lock {
    /// The types of events, by their names.
    pub events: BTreeMap<String, LockedType>,
    /// The names of the snapshots that documents of the context have.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub snapshots: BTreeSet<String>,
    /// The commands, by the names of their slices.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub commands: BTreeMap<String, LockedCommand>,
    /// The names of the views, which are in the paths of their rows.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub views: BTreeSet<String>,
    /// The names of the slices that react to events: their reactions' keys have them.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub reactors: BTreeSet<String>,
}

/// What was released of a type of events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct LockedType {
    /// Whether others than the stack's own readers take it from the bus. A person writes it into the file.
    #[serde(skip_serializing_if = "is_false")]
    pub public: bool,
    /// Whether no slice writes it any more.
    #[serde(skip_serializing_if = "is_false")]
    pub retired: bool,
    /// Its tags, in the order of its fields.
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
    /// Its versions, from 1 on.
    pub versions: Vec<LockedVersion>,
}

/// A tag of a type of events. Where it is filed follows from it.
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
}

/// A version of a type of events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedVersion {
    /// What payloads of this version look like.
    pub shape: Shape,
    /// Payloads of this version, of the cases of slices.
    pub samples: Vec<Value>,
}

/// The command of a slice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedCommand {
    /// What it takes.
    pub shape: Shape,
    /// The codes of its rejections, of its cases.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub rejections: BTreeSet<String>,
}

impl Lock {
    /// The folder of the locks, in the repository of a stack.
    pub const FOLDER: &'static str = "schemas";

    /// The file of the lock of a context.
    #[must_use]
    pub fn path(context: &str) -> String {
        format!("{}/{context}.json", Self::FOLDER)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_false(value: &bool) -> bool {
    !value
}
