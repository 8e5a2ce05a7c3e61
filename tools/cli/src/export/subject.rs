//! The subject of an export: which events it has, and in which form.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use ringfence_feed::Checkpoint;
use serde::{Deserialize, Serialize};

/// The version of the layout of a folder.
const LAYOUT: u32 = 1;

/// The format of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Form {
    /// One JSON a line for each event. `ringfence import` reads it.
    Jsonl,
    /// A table with columns, for analysis.
    Parquet,
}

impl Form {
    /// The file extension.
    pub(crate) fn ending(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Parquet => "parquet",
        }
    }
}

/// The subject of an export.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Subject {
    layout: u32,
    pub(crate) form: Form,
    /// The table of the index.
    index: String,
    /// The checkpoint after which it begins.
    pub(crate) from: Checkpoint,
    /// The contexts whose events it has; empty for all.
    pub(crate) contexts: BTreeSet<String>,
    /// Whether payloads are in the newest versions of their types. Otherwise they are as they are stored, as in each
    /// export of an earlier release.
    #[serde(default)]
    pub(crate) newest: bool,
}

impl Subject {
    pub(crate) fn new(
        form: Form,
        index: &str,
        from: Checkpoint,
        contexts: &[String],
        newest: bool,
    ) -> Self {
        let (index, contexts) = (index.to_owned(), contexts.iter().cloned().collect());
        Self { layout: LAYOUT, form, index, from, contexts, newest }
    }

    /// The subject in the first line of a list.
    pub(super) fn of_line(line: &str) -> Result<Self> {
        let subject: Self =
            serde_json::from_str(line).context("line 1 is not the first line of an export")?;
        ensure!(
            subject.layout == LAYOUT,
            "it has layout {}, and this build knows {LAYOUT}",
            subject.layout
        );
        Ok(subject)
    }

    /// Fails if the export in the folder has another subject.
    pub(super) fn ensure_same(&self, wanted: &Self, has_from: bool, path: &Path) -> Result<()> {
        let wanted =
            Self { from: if has_from { wanted.from } else { self.from }, ..wanted.clone() };
        let contexts = |it: &Self| match it.contexts.is_empty() {
            true => "all contexts".to_owned(),
            false => Vec::from_iter(it.contexts.iter().map(String::as_str)).join(", "),
        };
        let of = |it: &Self| {
            let (form, index, from) = (it.form.ending(), &it.index, it.from);
            let newest = if it.newest { ", in the newest versions" } else { "" };
            format!("{form} of {index} from {from}, {}{newest}", contexts(it))
        };
        ensure!(
            *self == wanted,
            "{} has an export of something else: it is {}, and this one would be {}; name another folder",
            path.display(),
            of(self),
            of(&wanted)
        );
        Ok(())
    }
}
