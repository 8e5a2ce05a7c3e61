//! The folder of an export: its segments, and the list that names them.
//!
//! A segment is written under another name, synced and renamed. Then its line is added to the list. So the list names
//! only whole segments, and each entry of the index is in one of them. After an interruption the next run writes the
//! rest again. If the last line of the list is cut off, the line and its segment are dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use ringfence_feed::Checkpoint;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::subject::{Form, Subject};
use crate::Lists;
use crate::shown::ShownEvent;

/// The list, one JSON a line: the subject of the export, then each segment.
const LIST: &str = "export.list";

/// The versions of the payloads in a file, by context and type: `shelf/ItemAdded`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Versions(BTreeMap<String, BTreeSet<u32>>);

/// A part of an export, one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Segment {
    pub(crate) file: String,
    /// It has the entries of the index up to this checkpoint.
    pub(crate) until: Checkpoint,
    pub(crate) events: u64,
    pub(crate) bytes: u64,
    /// The hash of the file, in hexadecimal digits.
    pub(crate) sha256: String,
    /// Empty if an earlier release wrote the file, which did not note them.
    #[serde(default)]
    versions: Versions,
}

/// An export, for reading.
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    pub(crate) subject: Subject,
    pub(crate) segments: Vec<Segment>,
}

/// An export that is being written. No other program may write to its folder meanwhile.
pub(crate) struct Written {
    pub(crate) folder: Folder,
    list: File,
}

/// A file that is being written, with its hash so far.
pub(crate) struct Hashed {
    file: io::BufWriter<File>,
    hash: Sha256,
    bytes: u64,
}

impl Versions {
    pub(crate) fn add(&mut self, event: &ShownEvent) {
        let name = format!("{}/{}", event.context, event.event_type);
        self.0.entry(name).or_default().insert(event.event.version);
    }
}

impl Folder {
    /// The export in a folder; `None` if there is none.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>> {
        let list = path.join(LIST);
        let reading = || format!("reading {}", list.display());
        match fs::read_to_string(&list) {
            Ok(text) => Ok(Self::of_list(path, &text).with_context(reading)?.map(|(it, _)| it)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(reading),
        }
    }

    /// The content of a list, and the length of its whole lines in bytes; `None` if it has none.
    fn of_list(path: &Path, text: &str) -> Result<Option<(Self, usize)>> {
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let mut lines = text[..whole].lines();
        let Some(subject) = lines.next() else { return Ok(None) };
        let subject = Subject::of_line(subject)?;
        let segment = |(n, line): (usize, &str)| {
            serde_json::from_str(line)
                .with_context(|| format!("line {} names no file of an export", n + 2))
        };
        let segments = lines.enumerate().map(segment).collect::<Result<_>>()?;
        Ok(Some((Self { path: path.to_owned(), subject, segments }, whole)))
    }

    /// The file of a segment.
    pub(crate) fn file(&self, segment: &Segment) -> PathBuf {
        self.path.join(&segment.file)
    }

    /// The files of segments that are missing, or have another length than the list says.
    pub(crate) fn damaged(&self) -> Vec<PathBuf> {
        let is_whole =
            |it: &Segment| fs::metadata(self.file(it)).is_ok_and(|found| found.len() == it.bytes);
        self.segments.iter().filter(|it| !is_whole(it)).map(|it| self.file(it)).collect()
    }

    /// Compares the files with their hashes.
    ///
    /// # Errors
    /// A file can't be read, or is not as it was written.
    pub(crate) fn check(&self) -> Result<()> {
        for segment in &self.segments {
            let path = self.file(segment);
            let file = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
            segment.ensure_is(Sha256::new_with_prefix(file), &path)?;
        }
        Ok(())
    }

    /// The first file that has a type of this build in another version than the newest, with the type and the version.
    pub(crate) fn other_version(&self, lists: &Lists) -> Option<(&Segment, &str, u32)> {
        self.segments.iter().find_map(|segment| {
            segment.other_version(lists).map(|(name, version)| (segment, name, version))
        })
    }

    /// It has every entry up to this checkpoint.
    pub(crate) fn until(&self) -> Checkpoint {
        self.segments.last().map_or(self.subject.from, |segment| segment.until)
    }
}

impl Segment {
    /// Whether the list says which versions the file has.
    pub(crate) fn has_versions(&self) -> bool {
        !self.versions.0.is_empty()
    }

    /// A type of this build that it has in another version than the newest, and the version.
    pub(crate) fn other_version(&self, lists: &Lists) -> Option<(&str, u32)> {
        self.versions.0.iter().find_map(|(name, versions)| {
            let (context, event_type) = name.split_once('/')?;
            let newest = lists.catalog(context, event_type)?.version(event_type);
            Some((&**name, *versions.iter().find(|version| **version != newest)?))
        })
    }

    /// Fails if its file has another hash.
    pub(crate) fn ensure_is(&self, hash: Sha256, path: &Path) -> Result<()> {
        ensure!(
            self.sha256 == hex(hash),
            "{} is not as the export wrote it: its SHA-256 is not the one in `export.list`. Take the file from another \
             copy, or export again into another folder",
            path.display()
        );
        Ok(())
    }
}

impl Written {
    /// Continues the export in a folder, or begins a new one. A subject without `from` continues whatever is there.
    pub(crate) fn open(path: &Path, subject: Subject, has_from: bool) -> Result<Self> {
        let opening = || format!("opening {}", path.join(LIST).display());
        fs::create_dir_all(path).with_context(|| format!("making {}", path.display()))?;
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut list = options.open(path.join(LIST)).with_context(opening)?;
        match list.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                bail!("another export writes to {}: wait until it has ended", path.display())
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(opening),
        }
        let mut text = String::new();
        list.read_to_string(&mut text).with_context(opening)?;
        let found = Folder::of_list(path, &text).with_context(opening)?;
        let (folder, whole) = match found {
            None => {
                let first = path.join(segment_name(1, subject.form));
                ensure!(
                    !first.exists(),
                    "{} has {}, and {LIST} does not name it: name another folder, or put the list back",
                    path.display(),
                    segment_name(1, subject.form)
                );
                let path = path.to_owned();
                (Folder { path, subject, segments: Vec::new() }, 0)
            }
            Some((folder, whole)) => {
                folder.subject.ensure_same(&subject, has_from, path)?;
                (folder, whole)
            }
        };
        list.set_len(whole as u64)
            .and_then(|()| list.seek(io::SeekFrom::End(0)))
            .with_context(opening)?;
        let mut written = Self { folder, list };
        if whole == 0 {
            let line = serde_json::to_string(&written.folder.subject)?;
            written.add(&line).with_context(opening)?;
        }
        Ok(written)
    }

    /// The file of the next segment, which begins under another name.
    pub(crate) fn begin(&self) -> Result<Hashed> {
        let path = self.next().with_extension("part");
        let file = File::create(&path).with_context(|| format!("making {}", path.display()))?;
        Ok(Hashed { file: io::BufWriter::new(file), hash: Sha256::new(), bytes: 0 })
    }

    /// Ends the open segment, with its last checkpoint, the number of its events, and their versions.
    pub(crate) fn end(
        &mut self,
        written: Hashed,
        until: Checkpoint,
        events: u64,
        versions: Versions,
    ) -> Result<()> {
        let path = self.next();
        let writing = || format!("writing {}", path.display());
        let Hashed { file, hash, bytes } = written;
        let file =
            file.into_inner().map_err(io::IntoInnerError::into_error).with_context(writing)?;
        file.sync_all().with_context(writing)?;
        fs::rename(path.with_extension("part"), &path).with_context(writing)?;
        let file = self.name();
        let sha256 = hex(hash);
        let segment = Segment { file, until, events, bytes, sha256, versions };
        self.add(&serde_json::to_string(&segment)?).with_context(writing)?;
        self.folder.segments.push(segment);
        Ok(())
    }

    fn name(&self) -> String {
        segment_name(self.folder.segments.len() + 1, self.folder.subject.form)
    }

    fn next(&self) -> PathBuf {
        self.folder.path.join(self.name())
    }

    fn add(&mut self, line: &str) -> io::Result<()> {
        self.list.write_all(format!("{line}\n").as_bytes())?;
        self.list.sync_all()
    }
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The name of the `n`th segment.
fn segment_name(n: usize, form: Form) -> String {
    format!("{n:06}.{}", form.ending())
}

/// A hash as text.
fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject() -> Subject {
        Subject::new(Form::Jsonl, "index", Checkpoint::START, &[], false)
    }

    fn until(number: i64) -> Checkpoint {
        Checkpoint::try_from(number).expect("a checkpoint")
    }

    fn write(path: &Path, text: &str, at: i64) {
        let mut written = Written::open(path, subject(), true).expect("a folder");
        let mut file = written.begin().expect("a file");
        file.write_all(text.as_bytes()).expect("a disk");
        written.end(file, until(at), 1, Versions::default()).expect("a segment");
    }

    #[test]
    fn an_export_of_an_earlier_release_is_read_and_continued() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("made");
        write(&path, "one\n", 3);
        let list = fs::read_to_string(path.join(LIST)).expect("a list");
        let earlier = list.replace(",\"newest\":false", "").replace(",\"versions\":{}", "");
        assert!(!earlier.contains("newest") && !earlier.contains("versions"), "{earlier}");
        fs::write(path.join(LIST), earlier).expect("a disk");
        write(&path, "two\n", 5);
        let read = Folder::read(&path).expect("it can be read").expect("an export");
        assert_eq!((read.segments.len(), read.segments[0].has_versions()), (2, false));
    }

    #[test]
    fn an_interrupted_export_is_completed_and_writes_nothing_twice() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("made");
        assert!(Folder::read(&path).expect("it can be read").is_none());
        write(&path, "one\n", 3);
        let list = fs::read_to_string(path.join(LIST)).expect("a list");
        write(&path, "two\n", 5);
        // The second line of the list is cut off, and a third segment was just begun.
        let cut = format!("{list}{{\"file\":\"000002.jso");
        fs::write(path.join(LIST), &cut).expect("a disk");
        fs::write(path.join("000002.part"), "tw").expect("a disk");
        let read = Folder::read(&path).expect("it can be read").expect("an export");
        assert_eq!((read.segments.len(), read.until()), (1, until(3)));
        // Without the list nothing says what the files belong to, so they stay.
        let renamed = path.join("list");
        fs::rename(path.join(LIST), &renamed).expect("a disk");
        let said =
            Written::open(&path, subject(), true).err().expect("a file is there").to_string();
        assert!(
            said.ends_with(
                "export.list does not name it: name another folder, or put the list back"
            ),
            "{said}"
        );
        fs::rename(renamed, path.join(LIST)).expect("a disk");
        write(&path, "two again\n", 6);
        let read = Folder::read(&path).expect("it can be read").expect("an export");
        let files: Vec<_> =
            read.segments.iter().map(|it| (&*it.file, it.until, it.bytes)).collect();
        assert_eq!(files, [("000001.jsonl", until(3), 4), ("000002.jsonl", until(6), 10)]);
        assert_eq!(read.damaged(), [""; 0].map(PathBuf::from));
        for segment in &read.segments {
            let hash = Sha256::new_with_prefix(fs::read(read.file(segment)).expect("a file"));
            assert_eq!(hex(hash), segment.sha256);
        }
        fs::write(path.join("000001.jsonl"), "on").expect("a disk");
        fs::remove_file(path.join("000002.jsonl")).expect("a disk");
        assert_eq!(read.damaged(), ["000001.jsonl", "000002.jsonl"].map(|name| path.join(name)));
    }

    #[test]
    fn a_folder_has_one_export_which_one_program_writes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        let first = Written::open(path, subject(), true).expect("a folder");
        let open = |subject, has_from| match Written::open(path, subject, has_from) {
            Ok(_) => panic!("it is opened"),
            Err(error) => error.to_string(),
        };
        assert!(open(subject(), true).starts_with("another export writes to "));
        drop(first);
        let contexts = ["carts".to_owned(), "ordering".to_owned()];
        let said = open(Subject::new(Form::Parquet, "other", until(7), &contexts, true), true);
        let why = "has an export of something else: it is jsonl of index from 0, all contexts, and this one would be \
                   parquet of other from 7, carts, ordering, in the newest versions; name another folder";
        assert!(said.ends_with(why), "{said}");
        let mut later = subject();
        later.from = until(7);
        assert_eq!(
            Written::open(path, later, false).expect("it goes on").folder.subject,
            subject()
        );
    }
}
