//! `events.jsonl`: the events of the project, a [`Line`] each.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};

use anyhow::{Context, Result, anyhow};
use serde::de::DeserializeOwned;

use super::super::line::{self, Line, Place};
use super::super::standing::Snapshot;
use super::{Appending, EVENTS, Reading, Writing, open, sync_folder_of};

/// Where the good lines end.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct End {
    /// The bytes of the good lines.
    pub(crate) bytes: u64,
    /// The last good line.
    pub(crate) last: Option<Line>,
    /// The last event that the snapshot tells of, if the copy was compacted.
    pub(crate) snapshot: Option<Place>,
}

impl End {
    /// The last event that the file tells of. In a compacted copy, the last line may be older than the snapshot.
    pub(crate) fn place(&self) -> Option<Place> {
        let last = self.last.as_ref().map(Place::of_line);
        last.into_iter().chain(self.snapshot.clone()).max_by_key(|place| place.checkpoint)
    }
}

impl Reading<'_> {
    /// Reads the good lines: those of whole appends. The last append may be torn or wrong, because it broke off. Of
    /// a copy nothing is lost then: the next pull begins behind the last good line. Of a local project the append
    /// has not taken place.
    ///
    /// # Errors
    /// A line before the last one is damaged, or the file is another project's.
    pub(crate) fn lines(&self, mut each: impl FnMut(Line) -> Result<()>) -> Result<End> {
        let path = self.path(EVENTS);
        let reading = || format!("reading {}", path.display());
        let Some(file) = self.open(EVENTS)? else { return Ok(End::default()) };
        let mut file = BufReader::new(file);
        let (mut end, mut text) = (End::default(), Vec::new());
        // The lines and the bytes of an append whose last line was not read yet.
        let (mut begun, mut begun_bytes): (Vec<Line>, u64) = (Vec::new(), 0);
        // How many lines a snapshot has that must follow, and how many lines there were.
        let (mut kept, mut number) = (0, 0);
        loop {
            text.clear();
            let bytes = file.read_until(b'\n', &mut text).with_context(reading)?;
            number += 1;
            if bytes == 0 {
                break;
            }
            if number == 1
                && let Some(snapshot) = self.snapshot_of(&text)?
            {
                (end.bytes, end.snapshot, kept) =
                    (bytes as u64, Some(snapshot.last), snapshot.kept);
                continue;
            }
            let last = begun.last().or(end.last.as_ref());
            let line = whole::<Line>(&text);
            line.iter().try_for_each(|line| self.check_project(EVENTS, &line.project))?;
            let line = line.filter(|line| line.follows(last));
            let Some(line) = line else {
                if file.fill_buf().with_context(reading)?.is_empty() {
                    break;
                }
                return Err(self.damaged(number)?);
            };
            let is_last = line.rest.is_none_or(|rest| rest == 0);
            begun.push(line);
            begun_bytes += bytes as u64;
            if is_last {
                end.bytes += std::mem::take(&mut begun_bytes);
                for line in begun.drain(..) {
                    if let Some(last) = end.last.replace(line) {
                        each(last)?;
                    }
                }
            }
        }
        // A line that the snapshot counts is missing or torn, and no pull would bring it back.
        if end.snapshot.is_some() && number <= kept + 1 {
            return Err(self.damaged(number)?);
        }
        if let Some(last) = &end.last {
            each(last.clone())?;
        }
        Ok(end)
    }

    fn damaged(&self, number: u64) -> Result<anyhow::Error> {
        let way_out = match self.is_local()? {
            true => "the project is local, so take the file from a copy",
            false => {
                "`ringfence project reconstruct` writes the file anew from the index; commands that wait to be sent \
                 stay"
            }
        };
        Ok(anyhow!("line {number} of {} is damaged: {way_out}", self.path(EVENTS).display()))
    }

    /// The first line of a copy that was compacted; `None` if it was not.
    pub(crate) fn snapshot(&self) -> Result<Option<Snapshot>> {
        let Some(file) = self.open(EVENTS)? else { return Ok(None) };
        let (mut text, path) = (Vec::new(), self.path(EVENTS));
        let read = BufReader::new(file).read_until(b'\n', &mut text);
        read.with_context(|| format!("reading {}", path.display()))?;
        self.snapshot_of(&text)
    }

    fn snapshot_of(&self, text: &[u8]) -> Result<Option<Snapshot>> {
        let snapshot = whole::<Snapshot>(text);
        snapshot.iter().try_for_each(|it| self.check_project(EVENTS, &it.project))?;
        Ok(snapshot)
    }

    /// Whether the project is local: of no stack, so that the file is its log and not a copy. Any good line says so,
    /// because a log that is damaged elsewhere must not be written anew either.
    pub(crate) fn is_local(&self) -> Result<bool> {
        let Some(file) = self.open(EVENTS)? else { return Ok(false) };
        for text in BufReader::new(file).split(b'\n') {
            let text = text.with_context(|| format!("reading {}", self.path(EVENTS).display()))?;
            // Only a copy is compacted.
            if let Some(snapshot) = parse::<Snapshot>(&text) {
                self.check_project(EVENTS, &snapshot.project)?;
                return Ok(false);
            }
            if let Some(line) = parse::<Line>(&text) {
                self.check_project(EVENTS, &line.project)?;
                return Ok(line.rest.is_some());
            }
        }
        Ok(false)
    }
}

/// The object of a line with its end.
fn whole<T: DeserializeOwned>(text: &[u8]) -> Option<T> {
    parse(text.strip_suffix(b"\n")?)
}

fn parse<T: DeserializeOwned>(text: &[u8]) -> Option<T> {
    line::parse(str::from_utf8(text).ok()?)
}

impl Writing<'_> {
    /// The file of the events, to append to it behind the good lines.
    pub(crate) fn behind(&self, end: &End) -> Result<Appending> {
        let path = self.path(EVENTS);
        let opening = || format!("opening {}", path.display());
        let file = open(&path, File::options().create(true).truncate(false).write(true));
        let mut file = file.with_context(opening)?;
        file.set_len(end.bytes).with_context(opening)?;
        file.seek(SeekFrom::End(0)).with_context(opening)?;
        sync_folder_of(&path)?;
        Ok(Appending { path, file })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::super::super::line::tests::entry;
    use super::super::Folder;
    use super::*;

    fn shop(root: &TempDir) -> Folder {
        Folder::at(root.path(), &"shop".parse().unwrap())
    }

    fn text(checkpoints: impl IntoIterator<Item = i64>) -> String {
        let line = |at: i64| line::to_text(&Line::of(entry(at, at.unsigned_abs())).unwrap());
        checkpoints.into_iter().map(line).collect()
    }

    fn read(folder: &Folder) -> Result<(Vec<i64>, u64)> {
        let mut found = Vec::new();
        let end = folder.read()?.lines(|line| {
            found.push(line.checkpoint.into());
            Ok(())
        })?;
        Ok((found, end.bytes))
    }

    #[test]
    fn of_an_append_that_broke_off_anywhere_whole_lines_are_read() {
        let root = tempfile::tempdir().unwrap();
        let (folder, before, all) = (shop(&root), text([1, 2]), text([1, 2, 5, 6]));
        let ends: Vec<usize> = all.match_indices('\n').map(|(n, _)| n + 1).collect();
        for cut in before.len()..=all.len() {
            drop(folder.write().unwrap());
            fs::write(folder.path.join(EVENTS), &all.as_bytes()[..cut]).unwrap();
            let whole = ends.iter().filter(|end| **end <= cut).count();
            let expected = ([1, 2, 5, 6][..whole].to_vec(), ends[whole - 1] as u64);
            assert_eq!(read(&folder).unwrap(), expected, "cut at {cut}");
            // The next append cuts the torn line off.
            let writing = folder.write().unwrap();
            let end = writing.lines(|_| Ok(())).unwrap();
            writing.behind(&end).unwrap().append(&text([9])).unwrap();
            drop(writing);
            assert_eq!(read(&folder).unwrap().0.last(), Some(&9), "cut at {cut}");
        }
    }

    #[test]
    fn a_damaged_byte_is_an_error_that_names_the_line_unless_it_is_in_the_last_one() {
        let root = tempfile::tempdir().unwrap();
        let (folder, good) = (shop(&root), text([1, 2, 3]));
        let last = text([1, 2]).len();
        for n in 0..good.len() {
            let mut bytes = good.clone().into_bytes();
            bytes[n] ^= 1;
            drop(folder.write().unwrap());
            fs::write(folder.path.join(EVENTS), &bytes).unwrap();
            match read(&folder) {
                Ok((found, _)) => {
                    // Where the end of the line before it is damaged, the last line is both of them.
                    let whole = if n == last - 1 { &[1][..] } else { &[1, 2] };
                    assert!(n >= last - 1 && found == whole, "byte {n}: {found:?}");
                }
                Err(error) => {
                    let line = good.bytes().take(n).filter(|byte| *byte == b'\n').count() + 1;
                    let named = format!("line {line} of {}", folder.path.join(EVENTS).display());
                    assert!(error.to_string().starts_with(&named), "byte {n}: {error}");
                }
            }
        }
    }

    #[test]
    fn a_line_that_is_there_twice_is_damage() {
        let root = tempfile::tempdir().unwrap();
        let folder = shop(&root);
        folder.write().unwrap().replace(EVENTS, &text([1, 1, 2])).unwrap();
        assert!(read(&folder).unwrap_err().to_string().starts_with("line 2 of "));
    }

    #[test]
    fn the_file_of_another_project_is_neither_read_nor_cut() {
        let root = tempfile::tempdir().unwrap();
        // One line, which would be cut off if it were taken for a torn one.
        shop(&root).write().unwrap().replace(EVENTS, &text([1])).unwrap();
        let same = Folder { project: "Shop".parse().unwrap(), path: shop(&root).path };
        let writing = same.write().unwrap();
        let errors = [writing.lines(|_| Ok(())).map(drop), writing.is_local().map(drop)];
        for error in errors {
            let error = error.unwrap_err().to_string();
            assert!(error.contains("is of the project shop and not of Shop"), "{error}");
        }
        drop(writing);
        assert_eq!(read(&shop(&root)).unwrap().0, [1]);
    }
}
