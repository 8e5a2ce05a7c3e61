//! The folder of a project: `.ringfence/<project>/`.
//!
//! | file | holds |
//! |---|---|
//! | `events.jsonl` | the events of the project, a [`Line`] each, in the order of the index |
//! | `pull.json` | how far the index was read behind the last line |
//! | `outbox.jsonl` | commands that wait to be sent |
//! | `conflicts/` | commands that were refused, one file each |
//! | `lock` | who reads and who writes |

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use projects::ProjectId;
use ringfence::SequencedEvent;

use super::line::Line;
use super::outbox::OUTBOX;

/// The folder with a folder for each project.
const ROOT: &str = ".ringfence";
const EVENTS: &str = "events.jsonl";
/// How often a lock is tried, with a pause between: for five seconds.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// The folder of a project.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) project: ProjectId,
    path: PathBuf,
}

/// The folder, while nobody else writes there.
pub(crate) struct Reading<'a> {
    folder: &'a Folder,
    _lock: File,
}

/// The folder, while nobody else reads or writes there.
pub(crate) struct Writing<'a>(Reading<'a>);

/// Where the good lines of `events.jsonl` end.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct End {
    /// The bytes of the good lines.
    pub(crate) bytes: u64,
    /// The last good line.
    pub(crate) last: Option<Line>,
}

impl Folder {
    /// The folder of a project, or of the only one that has one here.
    ///
    /// # Errors
    /// No project is named, and there is none or more than one.
    pub(crate) fn find(project: Option<&ProjectId>) -> Result<Self> {
        if let Some(project) = project {
            return Ok(Self::of(project));
        }
        let names = fs::read_dir(ROOT).into_iter().flatten();
        let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        // A command for a project that is not here leaves only a lock.
        let has_files = |name: &String| {
            [EVENTS, OUTBOX].iter().any(|file| Path::new(ROOT).join(name).join(file).exists())
        };
        let names = names.filter(has_files);
        let found: Vec<ProjectId> = names.filter_map(|name| name.parse().ok()).collect();
        match &found[..] {
            [project] => Ok(Self::of(project)),
            [] => bail!("{ROOT} has no project: name one with --project"),
            _ => bail!("{ROOT} has several projects: name one with --project"),
        }
    }

    pub(crate) fn of(project: &ProjectId) -> Self {
        Self::at(Path::new(ROOT), project)
    }

    fn at(root: &Path, project: &ProjectId) -> Self {
        Self { project: project.clone(), path: root.join(project.to_string()) }
    }

    /// Waits until nobody writes.
    ///
    /// # Errors
    /// Somebody writes for more than five seconds.
    pub(crate) fn read(&self) -> Result<Reading<'_>> {
        self.lock(File::try_lock_shared)
    }

    /// Waits until nobody reads or writes.
    ///
    /// # Errors
    /// Somebody does for more than five seconds.
    pub(crate) fn write(&self) -> Result<Writing<'_>> {
        self.lock(File::try_lock).map(Writing)
    }

    fn lock(&self, try_lock: fn(&File) -> Result<(), TryLockError>) -> Result<Reading<'_>> {
        fs::create_dir_all(&self.path)
            .with_context(|| format!("making the folder {}", self.path.display()))?;
        let path = self.path.join("lock");
        let locking = || format!("locking {}", path.display());
        let open = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let lock = open.with_context(locking)?;
        for _ in 0..LOCK_TRIES {
            match try_lock(&lock) {
                Ok(()) => return Ok(Reading { folder: self, _lock: lock }),
                Err(TryLockError::WouldBlock) => sleep(LOCK_PAUSE),
                Err(TryLockError::Error(error)) => return Err(error).with_context(locking),
            }
        }
        let path = path.display();
        bail!("another program has held {path} for five seconds: try again when it is done")
    }
}

impl Reading<'_> {
    pub(crate) fn project(&self) -> &ProjectId {
        &self.folder.project
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path.join(name)
    }

    /// The text of a file; `None` if there is none.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>> {
        let path = self.path(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
        }
    }

    /// Reads the good lines. The last line may be torn or wrong: an append broke off, and nothing is lost, because
    /// the next pull begins behind the last good line.
    ///
    /// # Errors
    /// A line before the last one is damaged.
    pub(crate) fn lines(&self, mut each: impl FnMut(Line) -> Result<()>) -> Result<End> {
        let path = self.path(EVENTS);
        let reading = || format!("reading {}", path.display());
        let mut file = match File::open(&path) {
            Ok(file) => BufReader::new(file),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(End::default()),
            Err(error) => return Err(error).with_context(reading),
        };
        let (mut end, mut text) = (End::default(), Vec::new());
        for number in 1.. {
            text.clear();
            let bytes = file.read_until(b'\n', &mut text).with_context(reading)?;
            if bytes == 0 {
                break;
            }
            let line = text.strip_suffix(b"\n").and_then(|text| str::from_utf8(text).ok());
            let line = line.and_then(Line::parse).filter(|line| {
                let is_later = |last: &Line| last.checkpoint < line.checkpoint;
                line.project == self.folder.project && end.last.as_ref().is_none_or(is_later)
            });
            let Some(line) = line else {
                if file.fill_buf().with_context(reading)?.is_empty() {
                    break;
                }
                bail!(
                    "line {number} of {} is damaged: `ringfence project reconstruct` writes the file anew from \
                     the index; commands that wait to be sent stay",
                    path.display()
                );
            };
            end.bytes += bytes as u64;
            if let Some(last) = end.last.replace(line) {
                each(last)?;
            }
        }
        if let Some(last) = &end.last {
            each(last.clone())?;
        }
        Ok(end)
    }

    /// Reads the events of the good lines.
    ///
    /// # Errors
    /// As of [`Reading::lines`].
    pub(crate) fn events(&self, mut each: impl FnMut(SequencedEvent) -> Result<()>) -> Result<()> {
        self.lines(|line| {
            let id = &line.event_id;
            let wrong = || format!("{id} has no place or no time: `ringfence project reconstruct`");
            each(line.event().with_context(wrong)?)
        })
        .map(drop)
    }
}

impl<'a> std::ops::Deref for Writing<'a> {
    type Target = Reading<'a>;

    fn deref(&self) -> &Reading<'a> {
        &self.0
    }
}

impl Writing<'_> {
    /// The file of the events, to append to it behind the good lines.
    pub(crate) fn behind(&self, end: &End) -> Result<Appending> {
        let path = self.path(EVENTS);
        let opening = || format!("opening {}", path.display());
        let open = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let mut file = open.with_context(opening)?;
        file.set_len(end.bytes).with_context(opening)?;
        file.seek(SeekFrom::End(0)).with_context(opening)?;
        sync_folder_of(&path)?;
        Ok(Appending { path, file })
    }

    /// A file that takes the place of that of the events when it is [put](Self::put).
    pub(crate) fn anew(&self) -> Result<Appending> {
        let path = self.path(&format!("{EVENTS}.new"));
        let file = File::create(&path).with_context(|| format!("making {}", path.display()))?;
        Ok(Appending { path, file })
    }

    /// Puts the new file in the place of that of the events.
    pub(crate) fn put(&self, new: Appending) -> Result<()> {
        self.rename(&new.path, EVENTS)
    }

    /// Replaces a file, so that it has the old text or the new one, whenever the program ends.
    pub(crate) fn replace(&self, name: &str, text: &str) -> Result<()> {
        let path = self.path(&format!("{name}.new"));
        let writing = || format!("writing {}", path.display());
        fs::create_dir_all(path.parent().unwrap_or(&path)).with_context(writing)?;
        let mut file = File::create(&path).with_context(writing)?;
        file.write_all(text.as_bytes()).with_context(writing)?;
        file.sync_all().with_context(writing)?;
        self.rename(&path, name)
    }

    fn rename(&self, from: &Path, name: &str) -> Result<()> {
        let to = self.path(name);
        fs::rename(from, &to).with_context(|| format!("replacing {}", to.display()))?;
        sync_folder_of(&to)
    }
}

/// Waits until the name of a file is on the disk.
fn sync_folder_of(file: &Path) -> Result<()> {
    let folder = file.parent().unwrap_or(file);
    let sync = File::open(folder).and_then(|folder| folder.sync_all());
    sync.with_context(|| format!("keeping {}", folder.display()))
}

/// A file that lines are appended to.
pub(crate) struct Appending {
    path: PathBuf,
    file: File,
}

impl Appending {
    /// Appends whole lines, and waits until they are on the disk.
    pub(crate) fn append(&mut self, lines: &str) -> Result<()> {
        let written = self.file.write_all(lines.as_bytes()).and_then(|()| self.file.sync_data());
        written.with_context(|| format!("writing {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::super::line::tests::entry;
    use super::*;

    fn shop(root: &TempDir) -> Folder {
        Folder::at(root.path(), &"shop".parse().unwrap())
    }

    fn text(checkpoints: impl IntoIterator<Item = i64>) -> String {
        let line = |at: i64| Line::of(entry(at, at.unsigned_abs())).unwrap().to_text() + "\n";
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
    fn a_line_that_is_there_twice_or_of_another_project_is_damage() {
        let root = tempfile::tempdir().unwrap();
        let folder = shop(&root);
        folder.write().unwrap().replace(EVENTS, &text([1, 1, 2])).unwrap();
        assert!(read(&folder).unwrap_err().to_string().starts_with("line 2 of "));
        let other = Folder::at(root.path(), &"other".parse().unwrap());
        other.write().unwrap().replace(EVENTS, &text([1, 2])).unwrap();
        assert!(read(&other).unwrap_err().to_string().starts_with("line 1 of "));
    }

    #[test]
    fn many_read_or_one_writes() {
        let root = tempfile::tempdir().unwrap();
        let folder = shop(&root);
        let readers = [folder.read().unwrap(), folder.read().unwrap()];
        let error = folder.write().err().unwrap().to_string();
        assert!(error.contains("has held") && error.ends_with("try again when it is done"));
        drop(readers);
        std::thread::scope(|scope| {
            let writing = folder.write().unwrap();
            let waiting = scope.spawn(|| folder.read().is_ok());
            drop(writing);
            assert!(waiting.join().unwrap());
        });
    }
}
