//! The lines of a section that a person has written, entry by entry.

use std::collections::BTreeSet;

use serde_yaml_ng::{Mapping, Value};

use super::error::WriteError;

/// The lines of the kept entries, with the comments before each entry, and the lines of the dropped ones.
pub(super) struct Lines {
    pub(super) kept: String,
    pub(super) dropped: String,
}

impl Lines {
    /// # Errors
    /// The lines do not show where the entries begin.
    pub(super) fn of(
        section: &str,
        body: &str,
        all: &Mapping,
        is_kept: impl Fn(&str) -> bool,
    ) -> Result<Self, WriteError> {
        let mut found = BTreeSet::new();
        let (mut kept, mut dropped, mut lead, mut keeps) =
            (String::new(), String::new(), String::new(), true);
        for line in body.split_inclusive('\n') {
            let text = line.trim_start();
            let depth = line.len() - text.len();
            if text.trim().is_empty() || text.starts_with('#') && depth <= 2 {
                lead += line;
                continue;
            }
            if depth == 2 && !text.starts_with('-') {
                let id = text.trim_end();
                let id = id.split_once(": ").map_or_else(|| id.trim_end_matches(':'), |(id, _)| id);
                let id = id.trim_matches(['"', '\'']);
                found.insert(id.to_owned());
                keeps = is_kept(id);
            }
            let to = if keeps { &mut kept } else { &mut dropped };
            to.push_str(&std::mem::take(&mut lead));
            to.push_str(line);
        }
        // These comments may belong to the next section.
        kept += &lead;
        if found
            .iter()
            .map(String::as_str)
            .ne(all.keys().filter_map(Value::as_str).collect::<BTreeSet<_>>())
        {
            return Err(WriteError::Form(section.to_owned()));
        }
        Ok(Self { kept, dropped })
    }
}

/// The comments of a text, without the marks.
pub(super) fn comments(text: &str) -> BTreeSet<String> {
    let comment = |line: &str| {
        let begin = if line.trim_start().starts_with('#') { 0 } else { line.find(" # ")? };
        let comment = line[begin..].trim();
        (!comment.starts_with("# ---")).then(|| comment.to_owned())
    };
    text.lines().filter_map(comment).collect()
}
