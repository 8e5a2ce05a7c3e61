//! Records of the tables' streams, as Lambda delivers them.

use aws_lambda_events::dynamodb::StreamRecord;
use ringfence_aws::Item;
use serde::Deserialize;
use serde_json::Value;

/// A record that does not come from a table's stream.
#[derive(Debug, thiserror::Error)]
#[error("not a stream record")]
pub struct RecordError(#[from] serde_json::Error);

/// The item after the change; `None` if the record has none, as for a deletion.
///
/// # Errors
/// The record does not come from a table's stream.
pub fn new_image(record: &Value) -> Result<Option<Item>, RecordError> {
    let image: Item = StreamRecord::deserialize(&record["dynamodb"])?.new_image.into();
    Ok(Some(image).filter(|image| !image.is_empty()))
}
