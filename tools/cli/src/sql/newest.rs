//! The files of an export with every payload in the newest version of its type. DuckDB can't run upcasts.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::Lists;
use crate::export::folder::Folder;
use crate::export::subject::Form;
use crate::line;
use crate::progress;

/// Writes a converted copy of each file that has other versions into the folder `copies`.
pub(super) fn files(folder: &Folder, lists: &Lists, copies: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::with_capacity(folder.segments.len());
    for segment in &folder.segments {
        let mut path = folder.file(segment);
        let other = segment.other_version(lists);
        if other.is_some() || !segment.has_versions() {
            let what = match other {
                Some((name, version)) => format!("{name} in version {version}"),
                None => "versions that its list does not name".to_owned(),
            };
            ensure!(
                folder.subject.form == Form::Jsonl,
                "{} has {what}, and only exports to jsonl can be converted to the newest version: \
                 export with --newest into another folder, or query the stored payloads with --newest=false",
                path.display()
            );
            let copy = copies.join(&segment.file);
            convert(&path, &copy, lists)?;
            path = copy;
        }
        files.push(path);
        progress::show(format_args!("{} of {} files read", files.len(), folder.segments.len()));
    }
    progress::clear();
    Ok(files)
}

fn convert(from: &Path, to: &Path, lists: &Lists) -> Result<()> {
    let reading = || format!("reading {}", from.display());
    let writing = || format!("writing {}", to.display());
    let lines = BufReader::new(File::open(from).with_context(reading)?);
    let mut copy = BufWriter::new(File::create(to).with_context(writing)?);
    for line in lines.lines() {
        let line = line::newest(&line.with_context(reading)?, lists).with_context(|| {
            format!(
                "{} has an event that this build can't show in its newest version; use a build that can, or query the \
                 stored payloads with --newest=false",
                from.display()
            )
        })?;
        writeln!(copy, "{line}").with_context(writing)?;
    }
    copy.flush().with_context(writing)
}
