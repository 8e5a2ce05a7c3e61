//! The open segment of an export, in either format.

use std::io::Write;

use anyhow::{Result, bail};
use ringfence_feed::Checkpoint;

use super::folder::{Hashed, Versions, Written};
use super::subject::Form;
#[cfg(feature = "parquet")]
use super::table::Rows;
use crate::line::of_entry;
use crate::shown::ShownEvent;

/// The segment that is being written.
pub(super) struct OpenSegment {
    file: Hashed,
    #[cfg(feature = "parquet")]
    rows: Option<Rows>,
    pub(super) events: u64,
    versions: Versions,
    /// How many entries of the index it has read, with those that it leaves out.
    pub(super) entries: u64,
}

impl OpenSegment {
    /// Fails if this build can't write the format.
    pub(super) fn ensure_built(form: Form) -> Result<()> {
        if form == Form::Parquet && !cfg!(feature = "parquet") {
            bail!(
                "this build can't write Parquet: build it with --features ringfence-cli/parquet, such as `cargo run --bin \
                 ringfence --features ringfence-cli/parquet -- export …`"
            );
        }
        Ok(())
    }

    pub(super) fn begin(written: &Written) -> Result<Self> {
        Ok(Self {
            file: written.begin()?,
            #[cfg(feature = "parquet")]
            rows: (written.folder.subject.form == Form::Parquet).then(Rows::default),
            events: 0,
            versions: Versions::default(),
            entries: 0,
        })
    }

    pub(super) fn add(&mut self, checkpoint: Checkpoint, shown: &ShownEvent) -> Result<()> {
        self.events += 1;
        self.versions.add(shown);
        #[cfg(feature = "parquet")]
        if let Some(rows) = &mut self.rows {
            rows.add(checkpoint, shown);
            return Ok(());
        }
        Ok(writeln!(self.file, "{}", of_entry(checkpoint, shown))?)
    }

    pub(super) fn end(self, written: &mut Written, until: Checkpoint) -> Result<()> {
        #[cfg(feature = "parquet")]
        let file = match self.rows {
            Some(rows) => rows.write(self.file)?,
            None => self.file,
        };
        #[cfg(not(feature = "parquet"))]
        let file = self.file;
        written.end(file, until, self.events, self.versions)
    }
}
