//! The files that a command will write. All of them are computed before the first is written.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};

/// Files and their new contents.
pub(crate) struct Plan {
    /// The folder that they are in.
    root: PathBuf,
    files: BTreeMap<PathBuf, String>,
}

impl Plan {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root, files: BTreeMap::new() }
    }

    /// The folder that the files are in.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The manifests of this stack and of all crates in the workspace, which may have other stacks.
    pub(super) fn manifests(&self) -> BTreeMap<PathBuf, String> {
        // A new stack is a separate workspace.
        let is_workspace = |folder: &&Path| {
            let manifest = fs::read_to_string(folder.join("Cargo.toml"));
            **folder == *self.root && self.has("Cargo.toml")
                || manifest.is_ok_and(|text| text.contains("[workspace]"))
        };
        let folder = self.root.ancestors().find(is_workspace).unwrap_or(&self.root);
        let mut found = BTreeMap::new();
        add_manifests(folder, &mut found);
        let own = self.files.iter().filter(|(path, _)| path.ends_with("Cargo.toml"));
        found.extend(own.map(|(path, text)| (self.root.join(path), text.clone())));
        found
    }

    /// Whether the file exists, or will exist.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.files.contains_key(Path::new(path)) || self.root.join(path).exists()
    }

    /// The sources below a folder, in the order of their paths.
    pub(crate) fn sources(&self, folder: &str) -> Result<Vec<String>> {
        let mut found = Vec::new();
        let reading = || format!("cannot read {folder}");
        for entry in fs::read_dir(self.root.join(folder)).with_context(reading)? {
            let name = entry.with_context(reading)?.file_name();
            let path = format!("{folder}/{}", name.to_string_lossy());
            if self.root.join(&path).is_dir() {
                found.extend(self.sources(&path)?);
            } else if path.ends_with(".rs") {
                found.push(path);
            }
        }
        found.sort();
        Ok(found)
    }

    /// The file as it will be, with LF at the end of each line.
    pub(crate) fn read(&self, path: &str) -> Result<String> {
        Ok(self.raw(path)?.replace("\r\n", "\n"))
    }

    fn raw(&self, path: &str) -> Result<String> {
        if let Some(text) = self.files.get(Path::new(path)) {
            return Ok(text.clone());
        }
        let file = self.root.join(path);
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
    }

    /// Makes a file, unless it exists.
    pub(crate) fn create(&mut self, path: &str, text: &str) {
        if !self.has(path) {
            let text = if path.ends_with(".rs") { formatted(text) } else { None }
                .unwrap_or_else(|| text.to_owned());
            self.files.insert(path.into(), text);
        }
    }

    /// Changes a file, which keeps its line ends. A file that rustfmt had formatted is formatted again.
    pub(crate) fn edit(
        &mut self,
        path: &str,
        change: impl FnOnce(&str) -> Result<String>,
    ) -> Result<()> {
        let before = self.read(path)?;
        let mut after = change(&before).with_context(|| path.to_owned())?;
        if before == after {
            return Ok(());
        }
        if path.ends_with(".rs") && formatted(&before).as_ref() == Some(&before) {
            after = formatted(&after).unwrap_or(after);
        }
        if self.raw(path)?.contains("\r\n") {
            after = after.replace('\n', "\r\n");
        }
        self.files.insert(path.into(), after);
        Ok(())
    }

    /// Writes the files. Returns a line for each file.
    ///
    /// # Errors
    /// A file can't be written. Then all files are as they were.
    pub(crate) fn write(self) -> Result<String> {
        if self.files.is_empty() {
            return Ok("Everything is there already; nothing was changed.\n".to_owned());
        }
        let mut before = Vec::new();
        for (path, text) in &self.files {
            let file = self.root.join(path);
            let folder = file.parent().context("a file is in a folder")?;
            before.push(fs::read(&file).ok());
            let written = fs::create_dir_all(folder).and_then(|()| fs::write(&file, text));
            if let Err(error) = written {
                self.take_back(before);
                bail!("cannot write {}, so nothing is written: {error}", file.display());
            }
        }
        let line = |(path, before): (&PathBuf, Option<_>)| {
            let does = if before.is_some() { "changed" } else { "wrote  " };
            format!("{does} {}\n", path.display())
        };
        Ok(self.files.keys().zip(before).map(line).collect())
    }

    /// Restores the written files: a second run could not complete a slice that exists in part. Empty folders go too,
    /// because a new stack needs an empty folder.
    fn take_back(&self, before: Vec<Option<Vec<u8>>>) {
        for (path, before) in self.files.keys().zip(before) {
            let file = self.root.join(path);
            // If a file can't be restored either, `git status` shows it.
            let _ = match before {
                Some(bytes) => fs::write(file, bytes),
                None => fs::remove_file(file),
            };
            let folders = path.ancestors().skip(1).filter(|it| !it.as_os_str().is_empty());
            folders.for_each(|folder| drop(fs::remove_dir(self.root.join(folder))));
        }
    }
}

/// Lets cargo write the dependencies of the manifests into its lock file, so the first build does not change the file.
pub(crate) fn settle_lock(root: &Path) {
    let mut cargo = Command::new("cargo");
    cargo.args(["update", "--workspace", "--offline"]).current_dir(root);
    // Cargo needs an index of the dependencies on this machine. Without one, the first build changes the lock file.
    let _ = cargo.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// Adds the manifests below a folder, without built and hidden ones.
fn add_manifests(folder: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if name == "Cargo.toml" {
            found.extend(fs::read_to_string(&path).ok().map(|text| (path, text)));
        } else if path.is_dir() && !name.starts_with('.') && name != "target" {
            add_manifests(&path, found);
        }
    }
}

/// The source as rustfmt writes it, if the machine has rustfmt and it can parse the source. rustfmt takes long to
/// start, and a command changes some files several times. So rustfmt runs once for each text.
fn formatted(source: &str) -> Option<String> {
    static KNOWN: Mutex<BTreeMap<String, Option<String>>> = Mutex::new(BTreeMap::new());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(formatted) = known().get(source) {
        return formatted.clone();
    }
    let formatted = rustfmt(source);
    // Formatted text stays as it is.
    known().extend(formatted.iter().map(|text| (text.clone(), Some(text.clone()))));
    known().insert(source.to_owned(), formatted.clone());
    formatted
}

fn rustfmt(source: &str) -> Option<String> {
    // Under cargo, use the rustfmt beside it. The one of rustup looks for the toolchain at each start.
    let beside = env::var_os("CARGO").map(|cargo| Path::new(&cargo).with_file_name("rustfmt"));
    let mut rustfmt = Command::new(beside.filter(|it| it.exists()).unwrap_or("rustfmt".into()));
    rustfmt.args(["--edition", "2024", "--config", "max_width=100,use_small_heuristics=Max"]);
    let streams = rustfmt.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = streams.spawn().ok()?;
    child.stdin.take()?.write_all(source.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).ok()).flatten()
}

/// The text with values in place of their names, such as `__name__`. A line that has only the name of an empty value is
/// left out.
pub(crate) fn fill(text: &str, values: &[(&str, &str)]) -> String {
    let mut filled = text.to_owned();
    for (name, value) in values {
        let name = format!("__{name}__");
        if value.is_empty() {
            filled = filled.replace(&format!("{name}\n"), "");
        }
        filled = filled.replace(&name, value);
    }
    filled
}
