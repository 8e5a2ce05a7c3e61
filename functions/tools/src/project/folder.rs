//! The folder of a project: `.ringfence/<project>/`.
//!
//! | file | holds |
//! |---|---|
//! | `events.jsonl` | the events of the project, a line each: a copy in the order of the index, or the log of a local project |
//! | `pull.json` | how far the index was read behind the last line |
//! | `outbox.jsonl` | commands that wait to be sent |
//! | `conflicts/` | commands that were refused, one file each |
//! | `lock` | who reads and who writes |

mod lines;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use projects::ProjectId;

use super::outbox::OUTBOX;

pub(crate) use lines::{Appending, End};

/// The folder with a folder for each project.
const ROOT: &str = ".ringfence";
pub(crate) const EVENTS: &str = "events.jsonl";
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

    pub(crate) fn at(root: &Path, project: &ProjectId) -> Self {
        Self { project: project.clone(), path: root.join(project.to_string()) }
    }

    /// Waits until nobody writes.
    ///
    /// # Errors
    /// Somebody writes for more than five seconds.
    pub(crate) fn read(&self) -> Result<Reading<'_>> {
        self.lock(File::try_lock_shared, LOCK_TRIES)
    }

    /// Waits until nobody reads or writes.
    ///
    /// # Errors
    /// Somebody does for more than five seconds.
    pub(crate) fn write(&self) -> Result<Writing<'_>> {
        self.lock(File::try_lock, LOCK_TRIES).map(Writing)
    }

    /// Waits until nobody reads or writes, however long that is.
    ///
    /// # Errors
    /// The folder can't be locked.
    pub(crate) fn write_at_last(&self) -> Result<Writing<'_>> {
        self.lock(File::try_lock, u32::MAX).map(Writing)
    }

    fn lock(
        &self,
        try_lock: fn(&File) -> Result<(), TryLockError>,
        tries: u32,
    ) -> Result<Reading<'_>> {
        let name = self.project.to_string();
        ensure!(
            ![".", ".."].contains(&&*name),
            "project {name:?} can't have a folder here, because that name means another folder: take another name"
        );
        fs::create_dir_all(&self.path)
            .with_context(|| format!("making the folder {}", self.path.display()))?;
        let path = self.path.join("lock");
        let locking = || format!("locking {}", path.display());
        let open = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let lock = open.with_context(locking)?;
        for _ in 0..tries {
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

    /// Checks that a file is of this project. It is not where a disk takes names that differ in case for one, or where
    /// a person has renamed the folder.
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

    /// The text of a file; `None` if there is none.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>> {
        let path = self.path(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
        }
    }
}

impl<'a> std::ops::Deref for Writing<'a> {
    type Target = Reading<'a>;

    fn deref(&self) -> &Reading<'a> {
        &self.0
    }
}

impl Writing<'_> {
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

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn shop(root: &TempDir) -> Folder {
        Folder::at(root.path(), &"shop".parse().unwrap())
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
