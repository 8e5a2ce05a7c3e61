//! Destinations of events and records that failed for good: queues and buckets.

use serde_json::Value;

use crate::{
    buckets::{BucketError, Buckets},
    clock,
    queues::{Queues, SendError},
};

/// A destination that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum DestinationError {
    /// The stack has no such queue, or the queue refuses the message.
    #[error("the destination does not take it")]
    Queue(#[from] SendError),
    /// The stack has no such bucket, or it can't be written.
    #[error("the destination takes no object")]
    Bucket(#[from] BucketError),
    /// The ARN belongs to neither a queue nor a bucket.
    #[error("{arn} is not a destination on this machine")]
    Unknown {
        /// The ARN.
        arn: String,
    },
}

/// The stack's queues and buckets.
#[derive(Clone)]
pub struct Destinations {
    /// The queues.
    pub queues: Queues,
    /// The buckets.
    pub buckets: Buckets,
}

impl Destinations {
    /// Sends a record of a failure to the queue or bucket of this ARN. As on AWS, a bucket's object has the payload,
    /// and a queue gets the record without it.
    ///
    /// # Errors
    /// The destination does not exist or can't be written.
    pub fn send(&self, arn: &str, record: &Value, payload: &Value) -> Result<(), DestinationError> {
        if arn.starts_with("arn:aws:sqs:") {
            self.queues.send(arn, record.to_string())?;
            return Ok(());
        }
        let unknown = || DestinationError::Unknown { arn: arn.to_owned() };
        let bucket = arn.strip_prefix("arn:aws:s3:::").ok_or_else(unknown)?;
        let mut object = record.clone();
        object["payload"] = Value::String(payload.to_string());
        self.buckets.put(bucket, &key(record), object.to_string().as_bytes())?;
        Ok(())
    }
}

/// An object's key, in Lambda's form for batches of a stream.
fn key(record: &Value) -> String {
    let text = |pointer| record.pointer(pointer).and_then(Value::as_str).unwrap_or("none");
    let function = text("/requestContext/functionArn");
    let shard = text("/DDBStreamBatchInfo/shardId");
    let time = clock::now().format("%Y/%m/%d/%H.%M.%S");
    format!("aws/lambda/{function}/{shard}/{time}-{}", clock::id())
}
