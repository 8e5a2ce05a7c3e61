//! The stack's buckets, each a folder.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
    time::SystemTime,
};

use chrono::{DateTime, Utc};

/// An object of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its key.
    pub key: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was written.
    pub modified: DateTime<Utc>,
}

/// Why a request to a bucket failed.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    /// The template has no such bucket.
    #[error("there is no bucket {bucket}")]
    NoBucket {
        /// The name asked for.
        bucket: String,
    },
    /// The bucket has no object with this key.
    #[error("there is no object {key}")]
    NoKey {
        /// The key asked for.
        key: String,
    },
    /// The key is invalid for S3, or for the folder of the bucket.
    #[error("the key can't be used: {why}")]
    Key {
        /// The rule that it breaks.
        why: String,
    },
    /// Its folder can't be read or written.
    #[error("the folder of bucket {bucket} can't be used")]
    Folder {
        /// The bucket.
        bucket: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// The most bytes of a key, as for S3.
const KEY_BYTES_MAX: usize = 1_024;

/// All buckets of the stack.
#[derive(Clone, Debug)]
pub struct Buckets {
    folder: PathBuf,
    names: Vec<String>,
}

impl Buckets {
    /// The buckets of these names. Each is a folder in `folder`, which is created with its first object.
    #[must_use]
    pub fn new(folder: PathBuf, names: Vec<String>) -> Self {
        Self { folder, names }
    }

    /// Every bucket's name.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Writes an object.
    ///
    /// # Errors
    /// [`BucketError`].
    pub fn put(&self, bucket: &str, key: &str, body: &[u8]) -> Result<(), BucketError> {
        let path = self.path(bucket, key)?;
        let folder = path.parent().unwrap_or(&self.folder);
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, body));
        written.map_err(|source| failed(bucket, source))
    }

    /// An object's content.
    ///
    /// # Errors
    /// [`BucketError`].
    pub fn get(&self, bucket: &str, key: &str) -> Result<Vec<u8>, BucketError> {
        fs::read(self.path(bucket, key)?).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::IsADirectory => {
                BucketError::NoKey { key: key.to_owned() }
            }
            _ => failed(bucket, source),
        })
    }

    /// Deletes an object, if it exists.
    ///
    /// # Errors
    /// [`BucketError`].
    pub fn delete(&self, bucket: &str, key: &str) -> Result<(), BucketError> {
        match fs::remove_file(self.path(bucket, key)?) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(failed(bucket, source)),
            _ => Ok(()),
        }
    }

    /// All objects, by key.
    ///
    /// # Errors
    /// [`BucketError`].
    pub fn list(&self, bucket: &str) -> Result<Vec<Object>, BucketError> {
        let root = self.path(bucket, "")?;
        let mut objects = Vec::new();
        match collect(&root, &root, &mut objects) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(failed(bucket, source)),
            _ => {
                objects.sort_by(|a, b| a.key.cmp(&b.key));
                Ok(objects)
            }
        }
    }

    fn path(&self, bucket: &str, key: &str) -> Result<PathBuf, BucketError> {
        if !self.names.iter().any(|name| name == bucket) {
            return Err(BucketError::NoBucket { bucket: bucket.to_owned() });
        }
        if key.len() > KEY_BYTES_MAX {
            let why = format!("it has {} bytes, and may have {KEY_BYTES_MAX}", key.len());
            return Err(BucketError::Key { why });
        }
        // A key such as `../x` would be a file outside of the bucket.
        if !Path::new(key).components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(BucketError::NoKey { key: key.to_owned() });
        }
        Ok(self.folder.join(bucket).join(key))
    }
}

fn failed(bucket: &str, source: io::Error) -> BucketError {
    match source.kind() {
        // A part of the key is longer than a file name may be, or has a NUL.
        io::ErrorKind::InvalidFilename | io::ErrorKind::InvalidInput => {
            BucketError::Key { why: format!("here it is the path of a file: {source}") }
        }
        _ => BucketError::Folder { bucket: bucket.to_owned(), source },
    }
}

fn collect(root: &Path, folder: &Path, objects: &mut Vec<Object>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, metadata) = (entry.path(), entry.metadata()?);
        if metadata.is_dir() {
            collect(root, &path, objects)?;
        } else if let Ok(key) = path.strip_prefix(root) {
            let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH).into();
            let key = key.to_string_lossy().into_owned();
            objects.push(Object { key, bytes: metadata.len(), modified });
        }
    }
    Ok(())
}
