//! The places of an export's segments: a bucket, or a folder of this machine.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use projects::ProjectId;
use projects::exchange::SegmentName;
use projects::line::{Line, Place, summed};
use ringfence_cli::objects::Objects;

use super::folder::{Appending, names_in};
use super::json;

/// A bucket, `s3://<name>`, or a folder.
#[derive(Clone, Debug)]
pub(crate) enum Export {
    Bucket(String),
    Folder(PathBuf),
}

impl FromStr for Export {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("s3://") {
            Some(name) if name.is_empty() || name.contains('/') => {
                Err("must be s3://<bucket> or a folder".to_owned())
            }
            Some(name) => Ok(Self::Bucket(name.to_owned())),
            None if text.is_empty() => Err("must be s3://<bucket> or a folder".to_owned()),
            None => Ok(Self::Folder(text.into())),
        }
    }
}

impl Export {
    /// Whether it has a segment of the project.
    pub(crate) async fn has(&self, project: &ProjectId) -> Result<bool> {
        let names = Segments::open(self).await?.names(project, "").await?;
        Ok(!names.is_empty())
    }

    /// The projects that it has; `None` if that can't be known, because a role may list only the folder of a project.
    pub(crate) fn projects(&self) -> Result<Option<BTreeSet<ProjectId>>> {
        let Self::Folder(path) = self else { return Ok(None) };
        let names = names_in(path).with_context(|| format!("reading {}", path.display()))?;
        let has_segment = |name: &&String| {
            let files = names_in(&path.join(name)).unwrap_or_default();
            files.iter().any(|file| SegmentName::parse(file).is_some())
        };
        let projects = names.iter().filter(has_segment);
        Ok(Some(projects.filter_map(|name| name.parse().ok()).collect()))
    }

    /// Appends the lines of a project after a place. Returns how many there were, and the last one.
    ///
    /// # Errors
    /// A segment can't be read or is damaged. Or the export has other events there, so it is of another index.
    pub(crate) async fn copy(
        &self,
        project: &ProjectId,
        after: Option<Place>,
        file: &mut Appending,
    ) -> Result<(u64, Option<Place>)> {
        let segments = Segments::open(self).await?;
        let (mut lines, mut last) = (0, after.clone());
        let at = |place: &Option<Place>| place.as_ref().map_or(0, |it| i64::from(it.checkpoint));
        for name in segments.names(project, &SegmentName::after(at(&after))).await? {
            if name.last <= at(&last) {
                continue;
            }
            let text = segments.text(project, &name).await?;
            ensure!(
                name.is_of(&text),
                "the segment {project}/{name} is damaged: its hash is another one. The next export of the stack writes \
                 it again if `cursor.json` is deleted"
            );
            let (mut new, mut is_known) = (String::new(), false);
            for line in text.split_inclusive('\n') {
                let object = summed(line.trim_end()).with_context(|| damaged(project, &name))?;
                let place: Line = json::read(&object).with_context(|| damaged(project, &name))?;
                let place = Place::of_line(&place);
                is_known |= after.as_ref() == Some(&place);
                if i64::from(place.checkpoint) > at(&last) {
                    new += line;
                    lines += 1;
                    last = Some(place);
                }
            }
            if let Some(Place { checkpoint, event_id, .. }) = &after
                && (name.first..=name.last).contains(&i64::from(*checkpoint))
                && !is_known
            {
                bail!(
                    "IndexChanged: the export does not have the event {event_id} at checkpoint {checkpoint}, so it is \
                     of another index or of a new one. `ringfence project reconstruct` writes the file again from it; \
                     commands that wait to be sent stay"
                );
            }
            file.append(&new)?;
        }
        Ok((lines, last))
    }
}

fn damaged(project: &ProjectId, name: &SegmentName) -> String {
    format!("reading the segment {project}/{name}, which another version may have written")
}

/// The segments of all projects.
enum Segments<'e> {
    Bucket(Box<Objects>),
    Folder(&'e Path),
}

impl<'e> Segments<'e> {
    async fn open(export: &'e Export) -> Result<Self> {
        Ok(match export {
            Export::Bucket(name) => Self::Bucket(Box::new(Objects::of(name).await?)),
            Export::Folder(path) => Self::Folder(path),
        })
    }

    /// The segments of a project that sort after a name.
    async fn names(&self, project: &ProjectId, after: &str) -> Result<Vec<SegmentName>> {
        let prefix = format!("{project}/");
        let names = match self {
            Self::Bucket(objects) => {
                let keys = objects.keys(&prefix, &format!("{prefix}{after}")).await?;
                keys.iter().filter_map(|key| Some(key.strip_prefix(&prefix)?.to_owned())).collect()
            }
            Self::Folder(path) => {
                let reading = || format!("reading {}", path.display());
                // The export is there, although a project may not be.
                fs::read_dir(path).with_context(reading)?;
                names_in(&path.join(project.to_string())).with_context(reading)?
            }
        };
        let names = names.iter().filter(|name| name.as_str() > after);
        let mut names: Vec<_> = names.filter_map(|name| SegmentName::parse(name)).collect();
        names.sort_by_key(|name| (name.first, name.last));
        Ok(names)
    }

    async fn text(&self, project: &ProjectId, name: &SegmentName) -> Result<String> {
        let key = format!("{project}/{name}");
        match self {
            Self::Bucket(objects) => objects.text(&key).await,
            Self::Folder(path) => {
                let path = path.join(&key);
                fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
            }
        }
    }
}
