//! Where things go that were given up: queues, and folders in the place of buckets.

use std::{fs, path::PathBuf};

use serde_json::Value;

use crate::{
    clock,
    queues::{Queues, UnknownQueue},
};

/// A destination that took nothing.
#[derive(Debug, thiserror::Error)]
pub enum DestinationError {
    /// The queue is none of the stack's.
    #[error("the destination does not exist")]
    Queue(#[from] UnknownQueue),
    /// The file cannot be written.
    #[error("cannot write to the destination {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// Neither a queue nor a bucket.
    #[error("{arn} is no destination on this machine")]
    Unknown {
        /// The ARN.
        arn: String,
    },
}

/// The stack's queues, and a folder that holds its buckets.
#[derive(Clone)]
pub struct Destinations {
    /// The queues.
    pub queues: Queues,
    /// One folder per bucket is made in here.
    pub buckets: PathBuf,
}

impl Destinations {
    /// Sends a record of failure to the queue or bucket of this ARN. A bucket's object keeps the
    /// payload, as at AWS; a queue gets the record without it.
    ///
    /// # Errors
    /// When the destination does not exist or cannot be written.
    pub fn send(&self, arn: &str, record: &Value, payload: &Value) -> Result<(), DestinationError> {
        if arn.starts_with("arn:aws:sqs:") {
            self.queues.send(arn, record.to_string())?;
            return Ok(());
        }
        let unknown = || DestinationError::Unknown { arn: arn.to_owned() };
        let bucket = arn.strip_prefix("arn:aws:s3:::").ok_or_else(unknown)?;
        let folder = self.buckets.join(bucket);
        let path = folder.join(format!("{}.json", clock::id()));
        let mut object = record.clone();
        object["payload"] = Value::String(payload.to_string());
        fs::create_dir_all(&folder)
            .and_then(|()| fs::write(&path, object.to_string()))
            .map_err(|source| DestinationError::Write { path, source })
    }
}
