//! The files that stand in for keys of KMS.

use std::{fs, io::Write, path::Path};

use anyhow::{Context, Result, ensure};

/// The bytes of a key.
const BYTES: usize = 32;

/// Makes the file of a key, for its owner alone, unless it is there. It is whole before it has its name.
pub(crate) fn make(path: &Path) -> Result<()> {
    if let Ok(found) = fs::metadata(path) {
        ensure!(
            found.len() == BYTES as u64,
            "the key of the stack, {}, has {} bytes and not {BYTES}; restore it, or delete it with all data of the stack",
            path.display(),
            found.len()
        );
        return Ok(());
    }
    let made = || -> Result<()> {
        let folder = path.parent().context("it is in no folder")?;
        fs::create_dir_all(folder)?;
        let mut key = [0; BYTES];
        getrandom::fill(&mut key)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&key)?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    made().with_context(|| format!("cannot make the key of the stack, {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_only_its_owner_can_read_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let made = || {
            let path = folder.path().join("new/key");
            make(&path).expect("a key");
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                let mode = fs::metadata(&path).expect("a file").permissions().mode();
                assert_eq!(mode & 0o777, 0o600);
            }
            fs::read(&path).expect("a key")
        };
        let key = made();
        assert_eq!(key.len(), BYTES);
        assert!(key != [0; BYTES] && key == made());
        let path = folder.path().join("new/key");
        fs::write(&path, [1; 31]).expect("it is written");
        let error = make(&path).expect_err("it is short").to_string();
        assert!(error.contains("has 31 bytes and not 32; restore it"), "{error}");
    }
}
