//! Records of the tables' streams, as Lambda delivers them.

use aws_lambda_events::dynamodb::EventRecord;
use ringfence_aws::Item;
use serde::Deserialize;
use serde_json::Value;

/// A record that no table's stream has.
#[derive(Debug, thiserror::Error)]
#[error("not a stream record")]
pub struct RecordError(#[from] serde_json::Error);

/// The item that a record shows as it is since the change; `None` if it shows none, as for a deletion.
///
/// # Errors
/// It is not a record of a table's stream.
pub fn new_image(record: &Value) -> Result<Option<Item>, RecordError> {
    let image: Item = EventRecord::deserialize(record)?.change.new_image.into();
    Ok(Some(image).filter(|image| !image.is_empty()))
}
