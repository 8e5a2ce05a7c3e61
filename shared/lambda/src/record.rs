//! Records of the tables' streams, as Lambda delivers them.

use aws_lambda_events::dynamodb::StreamRecord;
use ringfence_aws::Item;
use serde::Deserialize;
use serde::de::value::MapDeserializer;
use serde_json::Value;

/// The fields of a change that are read. To copy the others would cost a tenth of an event's way to the bus.
const READ: [&str; 2] = ["NewImage", "SizeBytes"];

/// A record that does not come from a table's stream.
#[derive(Debug, thiserror::Error)]
#[error("not a stream record")]
pub struct RecordError(#[from] serde_json::Error);

/// The item after the change; `None` if the record has none, as for a deletion.
///
/// # Errors
/// The record does not come from a table's stream.
pub fn new_image(record: &Value) -> Result<Option<Item>, RecordError> {
    let change = record["dynamodb"].as_object().into_iter().flatten();
    let read = change.map(|(name, value)| (name.as_str(), value));
    let read = MapDeserializer::new(read.filter(|(name, _)| READ.contains(name)));
    let image: Item = StreamRecord::deserialize(read)?.new_image.into();
    Ok(Some(image).filter(|image| !image.is_empty()))
}
