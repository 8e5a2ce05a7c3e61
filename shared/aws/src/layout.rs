//! The layout of the table that a log needs, and the requests that create it.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::client::Waiters;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection,
    ProjectionType, ScalarAttributeType, StreamSpecification, StreamViewType,
    TimeToLiveSpecification,
};
use ringfence_core::StoreError;
use serde_json::{Value, json};

use crate::{Item, attribute_bytes, write_units};

/// DynamoDB may take this long to create a table with its indexes.
const MADE_WITHIN: Duration = Duration::from_secs(300);

/// The kinds of the keys, in their order.
const KINDS: [KeyType; 2] = [KeyType::Hash, KeyType::Range];

/// A key attribute: its name, and `S` for a string or `N` for a number.
pub type Key = (String, ScalarAttributeType);

/// The keys, the indexes and the stream of a table. Each log has the layout of its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableLayout {
    /// The partition key, and the sort key if there is one.
    pub keys: Vec<Key>,
    /// The global secondary indexes.
    pub indexes: Vec<IndexLayout>,
    /// The content of the table's stream; `None` if nothing reads a stream of it.
    pub stream: Option<StreamViewType>,
    /// The attribute with the time, in seconds since 1970, after which DynamoDB deletes an item.
    pub expires_at: Option<&'static str>,
}

/// One global secondary index of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexLayout {
    /// Its name.
    pub name: String,
    /// The partition key and the sort key.
    pub keys: [Key; 2],
    /// Its attributes besides the keys.
    pub attributes: Vec<&'static str>,
}

/// A key attribute that holds a string.
pub fn text_key(name: impl Into<String>) -> Key {
    (name.into(), ScalarAttributeType::S)
}

/// A key attribute that holds a number.
pub fn number_key(name: impl Into<String>) -> Key {
    (name.into(), ScalarAttributeType::N)
}

impl TableLayout {
    /// The properties of an `AWS::DynamoDB::Table` for a template.
    #[must_use]
    pub fn properties(&self) -> Value {
        let typed = |(name, kind): (&str, &ScalarAttributeType)| json!({ "AttributeName": name, "AttributeType": kind.as_str() });
        let schema = |keys: &[Key]| -> Value {
            let key = |(key, kind): (&Key, KeyType)| json!({ "AttributeName": key.0, "KeyType": kind.as_str() });
            keys.iter().zip(KINDS).map(key).collect()
        };
        let index = |index: &IndexLayout| {
            let projection = match index.attributes[..] {
                [] => json!({ "ProjectionType": "KEYS_ONLY" }),
                _ => json!({
                    "ProjectionType": "INCLUDE", "NonKeyAttributes": index.attributes,
                }),
            };
            let keys = schema(&index.keys);
            json!({ "IndexName": index.name, "KeySchema": keys, "Projection": projection })
        };
        let mut properties = json!({
            "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": schema(&self.keys),
            "AttributeDefinitions": self.attributes().into_iter().map(typed).collect::<Vec<_>>(),
        });
        if let Some(stream) = &self.stream {
            properties["StreamSpecification"] = json!({ "StreamViewType": stream.as_str() });
        }
        if !self.indexes.is_empty() {
            properties["GlobalSecondaryIndexes"] = self.indexes.iter().map(index).collect();
        }
        if let Some(attribute) = self.expires_at {
            let specification = json!({ "AttributeName": attribute, "Enabled": true });
            properties["TimeToLiveSpecification"] = specification;
        }
        properties
    }

    /// Creates the table `name`, paid by the request, and waits until it can be used.
    ///
    /// # Errors
    /// There is a table of this name, the role lacks `dynamodb:CreateTable`, `dynamodb:DescribeTable` or
    /// `dynamodb:UpdateTimeToLive`, or DynamoDB takes longer than five minutes. A part of it may exist by then.
    pub async fn create(&self, client: &Client, name: &str) -> Result<(), StoreError> {
        let indexes: Vec<_> = self.indexes.iter().map(IndexLayout::request).collect();
        let stream = self.stream.clone().map(|view| {
            let stream = StreamSpecification::builder().stream_enabled(true).stream_view_type(view);
            stream.build().expect("it says whether there is a stream")
        });
        let request = client
            .create_table()
            .table_name(name)
            .billing_mode(BillingMode::PayPerRequest)
            .set_key_schema(Some(schema(&self.keys)))
            .set_attribute_definitions(Some(self.definitions()))
            .set_global_secondary_indexes((!indexes.is_empty()).then_some(indexes))
            .set_stream_specification(stream);
        request.send().await.map_err(|error| failed("CreateTable", error))?;
        let exists = client.wait_until_table_exists().table_name(name).wait(MADE_WITHIN).await;
        exists.map_err(|error| failed("waiting for the table", error))?;
        let Some(attribute) = self.expires_at else { return Ok(()) };
        let specification =
            TimeToLiveSpecification::builder().attribute_name(attribute).enabled(true).build();
        let request = client
            .update_time_to_live()
            .table_name(name)
            .time_to_live_specification(specification.expect("it has both fields"));
        request.send().await.map_err(|error| failed("UpdateTimeToLive", error))?;
        Ok(())
    }

    /// The index of this name.
    #[must_use]
    pub fn index(&self, name: &str) -> Option<&IndexLayout> {
        self.indexes.iter().find(|index| index.name == name)
    }

    /// Every key attribute of the table and its indexes with its type, each once, as DynamoDB requires.
    #[must_use]
    pub fn attributes(&self) -> BTreeMap<&str, &ScalarAttributeType> {
        let of_indexes = self.indexes.iter().flat_map(|index| &index.keys);
        self.keys.iter().chain(of_indexes).map(|(name, kind)| (name.as_str(), kind)).collect()
    }

    fn definitions(&self) -> Vec<AttributeDefinition> {
        let definition = |(name, kind): (&str, &ScalarAttributeType)| {
            let definition = AttributeDefinition::builder().attribute_name(name);
            definition.attribute_type(kind.clone()).build().expect("name and type are set")
        };
        self.attributes().into_iter().map(definition).collect()
    }
}

impl IndexLayout {
    /// The units to write a new item into the index; `None` if the item lacks one of the index's keys, and so is not in
    /// the index. `keys` are the keys of the table.
    #[must_use]
    pub fn write_units(&self, keys: &[Key], item: &Item) -> Option<f64> {
        let is_in = |(name, _): &Key| item.contains_key(name);
        let names = keys.iter().chain(&self.keys).map(|(name, _)| name.as_str());
        let names: BTreeSet<&str> = names.chain(self.attributes.iter().copied()).collect();
        let bytes = |name: &&str| item.get(*name).map(|value| name.len() + attribute_bytes(value));
        let bytes = names.iter().filter_map(bytes).sum();
        self.keys.iter().all(is_in).then(|| write_units(bytes))
    }

    fn request(&self) -> GlobalSecondaryIndex {
        let projection = match self.attributes[..] {
            [] => Projection::builder().projection_type(ProjectionType::KeysOnly),
            _ => Projection::builder()
                .projection_type(ProjectionType::Include)
                .set_non_key_attributes(Some(
                    self.attributes.iter().map(|name| (*name).to_owned()).collect(),
                )),
        };
        let index = GlobalSecondaryIndex::builder()
            .index_name(&self.name)
            .set_key_schema(Some(schema(&self.keys)))
            .projection(projection.build());
        index.build().expect("name and keys are set")
    }
}

fn schema(keys: &[Key]) -> Vec<KeySchemaElement> {
    let element = |((name, _), kind): (&Key, KeyType)| {
        let element = KeySchemaElement::builder().attribute_name(name).key_type(kind);
        element.build().expect("name and kind are set")
    };
    keys.iter().zip(KINDS).map(element).collect()
}

fn failed(operation: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
    StoreError::Failed { operation, source: source.into() }
}
