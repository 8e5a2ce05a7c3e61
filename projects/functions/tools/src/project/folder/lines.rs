//! `events.jsonl`: the events of the project, a [`Line`] each.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};

use anyhow::{Context, Result, anyhow};
use projects::{FeatureId, ProjectId};
use ringfence_cli::remark;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::super::json;
use super::files::{Appending, EVENTS, Reading, TORN, Writing, open, sync_folder_of};
use projects::line::{Line, Place, summed};

/// The end of the good lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct End {
    /// The bytes of the good lines.
    pub(crate) bytes: u64,
    /// The last good line.
    pub(crate) last: Option<Line>,
    /// The last event in the snapshot, if the copy was compacted.
    pub(crate) snapshot: Option<Place>,
    /// The number of the first line of a torn append, which is cut off before the next one.
    pub(crate) torn: Option<u64>,
}

/// The first line of a compacted copy. It stands for all events up to its last one. Lines of such events that follow
/// are for decisions, and need not be folded again.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Snapshot {
    /// The features whose lines are gone.
    pub(crate) folded: BTreeSet<FeatureId>,
    /// How many lines of these events follow. If one is missing, no pull would bring it back.
    pub(crate) kept: u64,
    pub(crate) last: Place,
    pub(crate) project: ProjectId,
    /// The standing, as the version has it.
    pub(crate) standing: Value,
    /// The version of the program that has folded the events.
    pub(crate) version: String,
}

/// The parts of a line that every version of the program writes.
#[derive(Deserialize)]
struct Head {
    project: ProjectId,
    /// Only lines of a local project have it.
    rest: Option<IgnoredAny>,
}

impl End {
    /// The last event in the file. In a compacted copy, the last line may be older than the snapshot.
    pub(crate) fn place(&self) -> Option<Place> {
        let last = self.last.as_ref().map(Place::of_line);
        last.into_iter().chain(self.snapshot.clone()).max_by_key(|place| place.checkpoint)
    }
}

impl Reading<'_> {
    /// Reads the good lines, which are those of whole appends. The last append may be torn: its last line has no end or
    /// a wrong sum, or lines of it are missing. A copy loses nothing, because the next pull begins after the last good
    /// line. In a local project such an append has not taken place.
    ///
    /// # Errors
    /// A line before the last one is damaged, or a line is whole but can't be taken: it does not follow the one before,
    /// or another version has written it. Or the file is of another project.
    pub(crate) fn lines(&self, mut each: impl FnMut(Line) -> Result<()>) -> Result<End> {
        let path = self.path(EVENTS);
        let reading = || format!("reading {}", path.display());
        let Some(file) = self.open(EVENTS)? else { return Ok(End::default()) };
        let mut file = BufReader::new(file);
        let (mut end, mut text) = (End::default(), Vec::new());
        // The lines with their numbers, and the bytes, of an append whose last line was not read yet.
        let (mut begun, mut begun_bytes): (Vec<(u64, Line)>, u64) = (Vec::new(), 0);
        // How many lines must follow a snapshot, how many lines there were, and how many of them are good.
        let (mut kept, mut number, mut good) = (0, 0, 0);
        // Passes a line on.
        let mut pass = |number: u64, line: Line| {
            each(line).with_context(|| format!("line {number} of {}", path.display()))
        };
        let mut last_number = 0;
        loop {
            text.clear();
            let bytes = file.read_until(b'\n', &mut text).with_context(reading)?;
            if bytes == 0 {
                break;
            }
            number += 1;
            let Some(object) = whole(&text) else {
                if file.fill_buf().with_context(reading)?.is_empty() {
                    break;
                }
                return Err(self.damaged(number, "is damaged")?);
            };
            if number == 1
                && let Some(snapshot) = self.snapshot_of(&object)?
            {
                (end.bytes, end.snapshot, kept) =
                    (bytes as u64, Some(snapshot.last), snapshot.kept);
                good = number;
                continue;
            }
            let line: Line = json::read(&object).map_err(|error| {
                let path = path.display();
                anyhow!(
                    "line {number} of {path} is whole, but this version of the program can't read it ({error:#}): \
                     take the version that has written it"
                )
            })?;
            self.check_project(EVENTS, &line.project)?;
            if !line.follows(begun.last().map(|(_, line)| line).or(end.last.as_ref())) {
                let wrong =
                    "is whole, but does not follow the line before it, as if two files were merged";
                return Err(self.damaged(number, wrong)?);
            }
            let is_last = line.rest.is_none_or(|rest| rest == 0);
            begun.push((number, line));
            begun_bytes += bytes as u64;
            if is_last {
                (end.bytes, good) = (end.bytes + std::mem::take(&mut begun_bytes), number);
                for (number, line) in begun.drain(..) {
                    if let Some(last) = end.last.replace(line) {
                        pass(last_number, last)?;
                    }
                    last_number = number;
                }
            }
        }
        // A line that the snapshot counts is missing or torn, and no pull would bring it back.
        if end.snapshot.is_some() && good <= kept {
            return Err(self.damaged(good + 1, "is damaged")?);
        }
        end.torn = (number > good).then_some(good + 1);
        if let Some(last) = &end.last {
            pass(last_number, last.clone())?;
        }
        Ok(end)
    }

    fn damaged(&self, number: u64, wrong: &str) -> Result<anyhow::Error> {
        let way_out = match self.is_local()? {
            true => "the project is local, so take the file from a copy",
            false => {
                "`ringfence project reconstruct` writes the file again from the index; commands that wait to be sent \
                 stay"
            }
        };
        Ok(anyhow!("line {number} of {} {wrong}: {way_out}", self.path(EVENTS).display()))
    }

    /// The first line of a copy that was compacted; `None` if it was not.
    pub(crate) fn snapshot(&self) -> Result<Option<Snapshot>> {
        let Some(file) = self.open(EVENTS)? else { return Ok(None) };
        let (mut text, path) = (Vec::new(), self.path(EVENTS));
        let read = BufReader::new(file).read_until(b'\n', &mut text);
        read.with_context(|| format!("reading {}", path.display()))?;
        whole(&text).map_or(Ok(None), |object| self.snapshot_of(&object))
    }

    fn snapshot_of(&self, object: &str) -> Result<Option<Snapshot>> {
        let snapshot = serde_json::from_str::<Snapshot>(object).ok();
        snapshot.iter().try_for_each(|it| self.check_project(EVENTS, &it.project))?;
        Ok(snapshot)
    }

    /// Whether the project is local, so that the file is its log and not a copy.
    pub(crate) fn is_local(&self) -> Result<bool> {
        Ok(self.whose()?.unwrap_or(false))
    }

    /// The same, or `None` if no line with a right sum tells it. One such line is enough, even if its end was changed
    /// by another program: a log that is damaged elsewhere, or of another version, must not be replaced.
    fn whose(&self) -> Result<Option<bool>> {
        let Some(file) = self.open(EVENTS)? else { return Ok(None) };
        for text in BufReader::new(file).split(b'\n') {
            let text = text.with_context(|| format!("reading {}", self.path(EVENTS).display()))?;
            let text = text.strip_suffix(b"\r").unwrap_or(&text);
            let object = object(text).and_then(|object| serde_json::from_str(&object).ok());
            if let Some(Head { project, rest }) = object {
                self.check_project(EVENTS, &project)?;
                return Ok(Some(rest.is_some()));
            }
        }
        Ok(None)
    }
}

/// The JSON of the object of a line with its end.
fn whole(text: &[u8]) -> Option<String> {
    object(text.strip_suffix(b"\n")?)
}

fn object(text: &[u8]) -> Option<String> {
    summed(str::from_utf8(text).ok()?)
}

impl Writing<'_> {
    /// The file of the events, to append to it after the good lines. The rest of a torn append is cut off, and
    /// kept in another file.
    pub(crate) fn behind(&self, end: &End) -> Result<Appending> {
        let path = self.path(EVENTS);
        let opening = || format!("opening {}", path.display());
        let options = &mut File::options();
        let file = open(&path, options.create(true).truncate(false).read(true).write(true));
        let mut file = file.with_context(opening)?;
        file.seek(SeekFrom::Start(end.bytes)).with_context(opening)?;
        let mut torn = Vec::new();
        file.read_to_end(&mut torn).with_context(opening)?;
        if !torn.is_empty() {
            self.keep_torn(
                &torn,
                "ends with an append that broke off or is damaged: it is cut off",
            )?;
            file.set_len(end.bytes).with_context(opening)?;
            file.seek(SeekFrom::End(0)).with_context(opening)?;
        }
        sync_folder_of(&path)?;
        Ok(Appending { path, file })
    }

    /// Keeps the file of the events before it is replaced, unless a line shows that it is a copy.
    pub(crate) fn keep_unknown(&self) -> Result<()> {
        let Some(mut file) = self.open(EVENTS)? else { return Ok(()) };
        let mut text = Vec::new();
        file.read_to_end(&mut text)
            .with_context(|| format!("reading {}", self.path(EVENTS).display()))?;
        match self.whose()? {
            None if !text.is_empty() => {
                self.keep_torn(&text, "has no line with the right sum: it is replaced")
            }
            _ => Ok(()),
        }
    }

    /// Keeps lines that are cut off: if a sum is wrong, a person may recognize the line.
    fn keep_torn(&self, torn: &[u8], wrong: &str) -> Result<()> {
        let (from, path) = (self.path(EVENTS), self.path(TORN));
        let writing = || format!("writing {}", path.display());
        let file = open(&path, File::options().create(true).append(true));
        let mut file = file.with_context(writing)?;
        let lines = [torn.strip_suffix(b"\n").unwrap_or(torn), b"\n"].concat();
        file.write_all(&lines).and_then(|()| file.sync_data()).with_context(writing)?;
        sync_folder_of(&path)?;
        remark!("warning: {} {wrong}, and kept in {}", from.display(), path.display());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ringfence_harness::bound;
    use tempfile::TempDir;

    use super::super::files::Folder;
    use super::*;
    use projects::facts::entry;
    use projects::line::to_text;

    fn shop(root: &TempDir) -> Folder {
        Folder::at(root.path(), &"shop".parse().unwrap())
    }

    fn text(checkpoints: impl IntoIterator<Item = i64>) -> String {
        let line = |at: i64| to_text(&Line::of(entry(at, at.unsigned_abs())).unwrap());
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
        for cut in (before.len()..=all.len()).step_by(bound(7, 1)) {
            drop(folder.write().unwrap());
            fs::write(folder.path.join(EVENTS), &all.as_bytes()[..cut]).unwrap();
            let whole = ends.iter().filter(|end| **end <= cut).count();
            let expected = ([1, 2, 5, 6][..whole].to_vec(), ends[whole - 1] as u64);
            assert_eq!(read(&folder).unwrap(), expected, "cut at {cut}");
            // The next append cuts the torn line off, and keeps it.
            let writing = folder.write().unwrap();
            let end = writing.lines(|_| Ok(())).unwrap();
            writing.behind(&end).unwrap().append(&text([9])).unwrap();
            drop(writing);
            assert_eq!(read(&folder).unwrap().0.last(), Some(&9), "cut at {cut}");
            let torn = &all.as_bytes()[ends[whole - 1]..cut];
            assert_eq!(end.torn, (!torn.is_empty()).then_some(whole as u64 + 1), "cut at {cut}");
            let kept = fs::read(folder.path.join(TORN)).unwrap_or_default();
            let is_kept = kept.strip_suffix(b"\n").is_some_and(|kept| kept.ends_with(torn));
            assert!(torn.is_empty() || is_kept, "cut at {cut}");
        }
    }

    #[test]
    fn a_damaged_byte_is_an_error_that_names_the_line_unless_it_is_in_the_last_one() {
        let root = tempfile::tempdir().unwrap();
        let (folder, good) = (shop(&root), text([1, 2, 3]));
        let last = text([1, 2]).len();
        for n in (0..good.len()).step_by(bound(7, 1)) {
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
    fn a_whole_line_that_can_not_be_taken_is_an_error_and_is_never_cut_off() {
        let root = tempfile::tempdir().unwrap();
        let folder = shop(&root);
        let writing = folder.write().unwrap();
        let line = |number: i64, rest: Option<u64>| {
            let line = Line::of(entry(number, number.unsigned_abs())).unwrap();
            serde_json::to_value(Line { rest, ..line }).unwrap()
        };
        let newer = |mut line: Value| {
            line["newer"] = true.into();
            line
        };
        let follows = "is whole, but does not follow the line before it";
        let version = "this version of the program can't read it (`newer` is not expected)";
        for (rest, last, expected) in [
            (None, line(2, None), follows),
            (None, newer(line(3, None)), version),
            (None, line(3, Some(0)), follows),
            (Some(0), line(2, Some(0)), follows),
            (Some(0), line(4, Some(0)), follows),
            (Some(0), newer(line(3, Some(0))), version),
            (Some(0), line(3, None), follows),
        ] {
            let lines = [&line(1, rest), &line(2, rest), &last].map(to_text);
            for lines in [lines.concat(), lines.concat() + &to_text(&line(5, rest))] {
                writing.replace(EVENTS, &lines).unwrap();
                let error = writing.lines(|_| Ok(())).unwrap_err().to_string();
                assert!(error.starts_with("line 3 of ") && error.contains(expected), "{error}");
            }
        }
        // A log counts even if another version has written all of its lines.
        writing.replace(EVENTS, &to_text(&newer(line(1, Some(0))))).unwrap();
        assert!(writing.is_local().unwrap());
        // A line whose sum is wrong may have been hit on its way to the disk.
        let wrong = to_text(&line(2, Some(0))).replacen("ada", "adx", 1);
        writing.replace(EVENTS, &(to_text(&line(1, Some(0))) + &wrong)).unwrap();
        let end = writing.lines(|_| Ok(())).unwrap();
        assert_eq!((end.last.as_ref().unwrap().checkpoint.into(), end.torn), (1, Some(2)));
        drop(writing.behind(&end).unwrap());
        assert_eq!(writing.text(TORN).unwrap().unwrap(), wrong);
        assert_eq!(writing.text(EVENTS).unwrap().unwrap(), to_text(&line(1, Some(0))));
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
        // An error about a line names the line.
        let folder = shop(&root);
        let wrong = folder.read().unwrap().lines(|_| Err(anyhow!("wrong"))).unwrap_err();
        assert!(format!("{wrong:#}").starts_with("line 1 of "), "{wrong:#}");
    }
}
