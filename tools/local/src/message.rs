//! A message of a queue, in SQS's format.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;

/// A message of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Message {
    /// Its id.
    pub message_id: String,
    /// Its body.
    pub body: String,
    /// Its attributes, all of them strings.
    #[serde(
        rename = "MessageAttributes",
        default,
        serialize_with = "as_texts",
        deserialize_with = "of_texts",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub attributes: BTreeMap<String, String>,
    /// The group of a message in a FIFO queue, which keeps the order in each group.
    #[serde(rename = "MessageGroupId", default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// Attributes in SQS's format, in which each names its type.
fn as_texts<S: Serializer>(all: &BTreeMap<String, String>, to: S) -> Result<S::Ok, S::Error> {
    let text = |value| json!({ "DataType": "String", "StringValue": value });
    to.collect_map(all.iter().map(|(name, value)| (name, text(value))))
}

fn of_texts<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Text {
        string_value: String,
    }

    let all = BTreeMap::<String, Text>::deserialize(from)?;
    Ok(all.into_iter().map(|(name, text)| (name, text.string_value)).collect())
}
