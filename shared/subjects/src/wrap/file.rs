//! A key in a file, for a stack on one machine.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::crypto::{KEY_BYTES, SecretKey};

/// The key of a stack on one machine.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file can't be made or read.
    #[error("the key of the stack, {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file has another length.
    #[error(
        "the key of the stack, {}: it has {bytes} bytes and not {KEY_BYTES}; restore it, or delete it with all data of \
         the stack", path.display()
    )]
    Length {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: usize,
    },
}

/// The key in the file. The first program makes it. The file is whole before it has its name, so of two programs that
/// begin together, one takes the other's.
pub(super) fn key(path: &Path) -> Result<SecretKey, FileError> {
    let failed = |source| FileError::Io { path: path.to_owned(), source };
    if !path.exists() {
        make(path).map_err(failed)?;
    }
    let bytes = zeroize::Zeroizing::new(fs::read(path).map_err(failed)?);
    let length = || FileError::Length { path: path.to_owned(), bytes: bytes.len() };
    SecretKey::of(&bytes).ok_or_else(length)
}

fn make(path: &Path) -> io::Result<()> {
    // The name is this program's alone: a process makes one file, and another process has another number.
    let own = path.with_extension(format!("{}.new", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&own)?;
    file.write_all(SecretKey::random().bytes())?;
    file.sync_all()?;
    let named = fs::hard_link(&own, path);
    fs::remove_file(&own)?;
    match named {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        named => named,
    }
}
