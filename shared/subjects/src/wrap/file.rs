//! A key in a file, for a stack on one machine.

use std::path::{Path, PathBuf};
use std::{fs, io};

use zeroize::Zeroizing;

use crate::crypto::{KEY_BYTES, SecretKey};

/// The key of a stack on one machine.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file can't be read.
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

/// The key in the file.
pub(super) fn key(path: &Path) -> Result<SecretKey, FileError> {
    let failed = |source| FileError::Io { path: path.to_owned(), source };
    let bytes = Zeroizing::new(fs::read(path).map_err(failed)?);
    let length = || FileError::Length { path: path.to_owned(), bytes: bytes.len() };
    SecretKey::of(&bytes).ok_or_else(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_must_be_there_with_the_right_number_of_bytes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        let refused = || key(&path).expect_err("no key").to_string();
        assert_eq!(refused(), format!("the key of the stack, {}", path.display()));
        fs::write(&path, [1; 31]).expect("it is written");
        assert!(refused().contains("it has 31 bytes and not 32; restore it"), "{}", refused());
        fs::write(&path, [1; 32]).expect("it is written");
        assert_eq!(key(&path).expect("a key").bytes(), &[1; 32]);
    }
}
