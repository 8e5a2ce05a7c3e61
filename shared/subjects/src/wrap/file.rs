//! A key in a file, for a stack on one machine.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use ringfence_aws::Clock;
use zeroize::Zeroizing;

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
    let bytes = Zeroizing::new(fs::read(path).map_err(failed)?);
    let length = || FileError::Length { path: path.to_owned(), bytes: bytes.len() };
    SecretKey::of(&bytes).ok_or_else(length)
}

fn make(path: &Path) -> io::Result<()> {
    let own = path.with_extension(format!("{}.new", Clock::system().uuid()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
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

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn programs_that_begin_together_have_one_key_which_only_its_owner_can_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        let path = &*path;
        let found: Vec<SecretKey> = thread::scope(|scope| {
            let begin = || scope.spawn(|| key(path).expect("a key"));
            let threads: Vec<_> = (0..8).map(|_| begin()).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(found.iter().all(|key| *key == found[0]), "{found:?}");
        assert_eq!(
            fs::read_dir(folder.path()).expect("a folder").count(),
            1,
            "the rest is removed"
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(path).expect("a file").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        fs::write(path, [1; 31]).expect("it is written");
        let refused = key(path).expect_err("it is short").to_string();
        assert!(refused.contains("it has 31 bytes and not 32; restore it"), "{refused}");
    }
}
