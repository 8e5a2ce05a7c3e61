//! The files of a project's folder, and the locks under which they are read and written.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use projects::ProjectId;

/// The folder with a folder for each project.
const ROOT: &str = ".ringfence";
pub(crate) const EVENTS: &str = "events.jsonl";
pub(crate) const TORN: &str = "events.jsonl.torn";
pub(crate) const OUTBOX: &str = "outbox.jsonl";
const LOCK: &str = "lock";
const PUSH_LOCK: &str = "push.lock";
/// How often a lock is tried, with a pause between: for five seconds.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(50);
/// How many projects an error names.
const LISTED_MAX: usize = 20;

/// The folder of a project.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) project: ProjectId,
    pub(super) path: PathBuf,
}

/// Another program has a lock for longer than this one waits.
#[derive(Debug, thiserror::Error)]
#[error("another program holds {}: try again when it is done", .path.display())]
pub(crate) struct Held {
    path: PathBuf,
}

/// The folder, while nobody else writes there.
pub(crate) struct Reading<'a> {
    folder: &'a Folder,
    _lock: File,
}

/// The folder, while nobody else reads or writes there.
pub(crate) struct Writing<'a>(Reading<'a>);

impl Folder {
    /// The folder of a project, or of the only one that has one here.
    ///
    /// # Errors
    /// No project is named, and the folder does not have exactly one.
    pub(crate) fn find(project: Option<&ProjectId>) -> Result<Self> {
        if let Some(project) = project {
            return Ok(Self::of(project));
        }
        let names = names_in(Path::new(ROOT)).with_context(|| format!("reading {ROOT}"))?;
        let mut found = Vec::new();
        for project in names.iter().filter_map(|name| name.parse().ok()) {
            let folder = Self::of(&project);
            if folder.is_begun()? {
                found.push(folder);
            }
        }
        ensure!(!found.is_empty(), "{ROOT} has no project: name one with --project");
        ensure!(
            found.len() == 1,
            "{ROOT} has several projects: name one with --project, of {}",
            listed(found.iter().map(|folder| &folder.project))
        );
        Ok(found.remove(0))
    }

    pub(crate) fn of(project: &ProjectId) -> Self {
        Self::at(Path::new(ROOT), project)
    }

    pub(crate) fn at(root: &Path, project: &ProjectId) -> Self {
        Self { project: project.clone(), path: root.join(project.to_string()) }
    }

    /// Whether it has events, or commands that wait. A command for a project that is not here leaves only a lock.
    ///
    /// # Errors
    /// The folder can't be read.
    pub(crate) fn is_begun(&self) -> Result<bool> {
        for file in [EVENTS, OUTBOX].map(|file| self.path.join(file)) {
            let is_there = file.try_exists();
            if is_there.with_context(|| format!("reading {}", file.display()))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Waits until nobody writes.
    ///
    /// # Errors
    /// Somebody writes for more than five seconds.
    pub(crate) fn read(&self) -> Result<Reading<'_>> {
        self.lock(LOCK, File::try_lock_shared, LOCK_TRIES)
            .map(|lock| Reading { folder: self, _lock: lock })
    }

    /// Waits until nobody reads or writes.
    ///
    /// # Errors
    /// Somebody does for more than five seconds.
    pub(crate) fn write(&self) -> Result<Writing<'_>> {
        self.lock(LOCK, File::try_lock, LOCK_TRIES).map(|lock| self.writing(lock))
    }

    /// Waits until nobody reads or writes, however long that is.
    ///
    /// # Errors
    /// The folder can't be locked.
    pub(crate) fn write_at_last(&self) -> Result<Writing<'_>> {
        self.lock(LOCK, File::try_lock, u32::MAX).map(|lock| self.writing(lock))
    }

    /// Lets one program at a time send waiting commands, until the file is dropped. Others read and write meanwhile.
    ///
    /// # Errors
    /// Another program does.
    pub(crate) fn push(&self) -> Result<File> {
        self.lock(PUSH_LOCK, File::try_lock, 1)
    }

    fn writing(&self, lock: File) -> Writing<'_> {
        Writing(Reading { folder: self, _lock: lock })
    }

    fn lock(
        &self,
        name: &str,
        try_lock: fn(&File) -> Result<(), TryLockError>,
        tries: u32,
    ) -> Result<File> {
        let project = self.project.to_string();
        ensure!(
            ![".", ".."].contains(&&*project),
            "project {project:?} can't have a folder here, because this name means another folder: take another name"
        );
        let making = || format!("making the folder {}", self.path.display());
        let root = self.path.parent().unwrap_or(&self.path);
        [root, &self.path].into_iter().try_for_each(check_folder).with_context(making)?;
        fs::create_dir_all(&self.path).with_context(making)?;
        let path = self.path.join(name);
        let locking = || format!("locking {}", path.display());
        let lock = open(&path, File::options().create(true).truncate(false).write(true));
        let lock = lock.with_context(locking)?;
        for tried in 1.. {
            match try_lock(&lock) {
                Ok(()) => return Ok(lock),
                Err(TryLockError::WouldBlock) if tried < tries => sleep(LOCK_PAUSE),
                Err(TryLockError::WouldBlock) => break,
                Err(TryLockError::Error(error)) => return Err(error).with_context(locking),
            }
        }
        bail!(Held { path })
    }
}

impl Reading<'_> {
    pub(crate) fn project(&self) -> &ProjectId {
        &self.folder.project
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path.join(name)
    }

    /// Checks that a file is of this project. It may be another's if the disk ignores case in names, or if a person has
    /// renamed the folder.
    ///
    /// # Errors
    /// The project of the file is another one.
    pub(crate) fn check_project(&self, file: &str, project: &ProjectId) -> Result<()> {
        let ours = self.project();
        ensure!(
            project == ours,
            "{} is of the project {project} and not of {ours}: name {project} with --project, or work on {ours} in \
             another folder",
            self.path(file).display()
        );
        Ok(())
    }

    /// A file to read from; `None` if it does not exist.
    pub(crate) fn open(&self, name: &str) -> Result<Option<File>> {
        let path = self.path(name);
        match open(&path, File::options().read(true)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
        }
    }

    /// The text of a file; `None` if the file does not exist.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>> {
        let Some(mut file) = self.open(name)? else { return Ok(None) };
        let mut text = String::new();
        let read = file.read_to_string(&mut text);
        read.with_context(|| format!("reading {}", self.path(name).display()))?;
        Ok(Some(text))
    }

    /// The names of the files in a folder below the project's; none if the folder does not exist.
    pub(crate) fn names(&self, folder: &str) -> Result<Vec<String>> {
        let path = self.path(folder);
        let reading = || format!("reading {}", path.display());
        check_folder(&path).with_context(reading)?;
        names_in(&path).with_context(reading)
    }
}

impl<'a> std::ops::Deref for Writing<'a> {
    type Target = Reading<'a>;

    fn deref(&self) -> &Reading<'a> {
        &self.0
    }
}

impl Writing<'_> {
    /// Replaces a file. It has the old text or the new one, even if the program ends meanwhile.
    pub(crate) fn replace(&self, name: &str, text: &str) -> Result<()> {
        let mut new = self.new_file(name)?;
        new.append(text)?;
        self.put(new, name)
    }

    /// A new file, which replaces the one of this name when it is [put](Self::put).
    pub(crate) fn new_file(&self, name: &str) -> Result<Appending> {
        let path = self.path(&format!("{name}.new"));
        let making = || format!("making {}", path.display());
        let folder = path.parent().unwrap_or(&path);
        check_folder(folder).and_then(|()| fs::create_dir_all(folder)).with_context(making)?;
        // A program that ended before the put may have left it.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error).with_context(making)?,
            _ => {}
        }
        let file = open(&path, File::options().create_new(true).write(true));
        Ok(Appending { file: file.with_context(making)?, path })
    }

    /// Replaces the file of this name by a new one.
    pub(crate) fn put(&self, new: Appending, name: &str) -> Result<()> {
        let to = self.path(name);
        fs::rename(new.path, &to).with_context(|| format!("replacing {}", to.display()))?;
        sync_folder_of(&to)
    }
}

/// A file that text is appended to.
pub(crate) struct Appending {
    pub(super) path: PathBuf,
    pub(super) file: File,
}

impl Appending {
    /// Appends whole lines, and waits until they are on the disk.
    pub(crate) fn append(&mut self, lines: &str) -> Result<()> {
        let written = self.file.write_all(lines.as_bytes()).and_then(|()| self.file.sync_data());
        written.with_context(|| format!("writing {}", self.path.display()))
    }
}

/// Opens a file in a folder.
///
/// # Errors
/// It can't be opened, or one of the two is a link.
pub(super) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    check_folder(path.parent().unwrap_or(path))?;
    check(path, Metadata::is_file)?;
    // Here a link that is made in this moment is an error as well.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        options,
        rustix::fs::OFlags::NOFOLLOW.bits().cast_signed(),
    );
    options.open(path)
}

/// The names in a folder; none if it does not exist.
pub(crate) fn names_in(folder: &Path) -> io::Result<Vec<String>> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?.map(|it| Ok(it?.file_name().to_string_lossy().into_owned())).collect(),
    }
}

/// The names of projects, at most [`LISTED_MAX`] of them.
pub(crate) fn listed<'p>(projects: impl Iterator<Item = &'p ProjectId>) -> String {
    let names: Vec<String> = projects.map(ToString::to_string).collect();
    match names.len() {
        ..=LISTED_MAX => names.join(", "),
        all => format!("{} and {} more", names[..LISTED_MAX].join(", "), all - LISTED_MAX),
    }
}

fn check_folder(path: &Path) -> io::Result<()> {
    check(path, Metadata::is_dir)
}

/// Checks that an existing entry has the right kind, and is not a link.
fn check(path: &Path, is_plain: fn(&Metadata) -> bool) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => Err(io::Error::other(format!(
            "{} is a link, which could lead to any file: remove it, or put in its place what it leads to",
            path.display()
        ))),
        Ok(found) if !is_plain(&found) => Err(io::Error::other(format!(
            "{} is a file where a folder has to be, or a folder where a file has to be",
            path.display()
        ))),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Waits until the name of a file is on the disk.
pub(super) fn sync_folder_of(file: &Path) -> Result<()> {
    let folder = file.parent().unwrap_or(file);
    let sync = File::open(folder).and_then(|folder| folder.sync_all());
    sync.with_context(|| format!("keeping {}", folder.display()))
}

#[cfg(test)]
mod tests;
