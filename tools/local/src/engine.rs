//! The embedded DynamoDB without its server. A request is a function call, so it needs no socket, thread or time.

use dynoxide::{
    Database, DynoxideError,
    actions::{create_table::CreateTableRequest, update_time_to_live::UpdateTimeToLiveRequest},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// A failed operation on the embedded DynamoDB.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// No folder, file or port for the database.
    #[error("the embedded database has no folder or port")]
    Io(#[from] std::io::Error),
    /// The database refused an operation.
    #[error("the embedded database refused to {action}")]
    Database {
        /// The operation, as a verb.
        action: &'static str,
        /// The engine's answer.
        #[source]
        source: DynoxideError,
    },
    /// The index could not be added to the database's file.
    #[error("the embedded database cannot be given its stream index")]
    Index(#[from] rusqlite::Error),
    /// The engine no longer uses the index, because its version has changed.
    #[error("the embedded database does not use its stream index: {plan}")]
    IndexUnused {
        /// The answer of `EXPLAIN QUERY PLAN`.
        plan: String,
    },
    /// DynamoDB has no such definition, or the engine's answer can't be decoded.
    #[error("the embedded database does not understand the {what}")]
    Shape {
        /// The name of the message.
        what: &'static str,
        /// The fault.
        #[source]
        source: serde_json::Error,
    },
    /// The table has no stream to read.
    #[error("table {table} has no stream")]
    NoStream {
        /// The table's name.
        table: String,
    },
}

/// A DynamoDB that lives as long as its clones.
#[derive(Clone)]
pub struct Engine(pub(crate) Database);

impl Engine {
    /// An empty DynamoDB in memory.
    ///
    /// # Errors
    /// The engine can't be opened.
    pub fn memory() -> Result<Self, EmbeddedError> {
        let opened = Database::memory();
        Ok(Self(opened.map_err(|source| EmbeddedError::Database { action: "open", source })?))
    }

    /// Creates a table from the properties of an `AWS::DynamoDB::Table`.
    ///
    /// # Errors
    /// The engine refuses it.
    pub fn create_table(&self, properties: &Value, name: &str) -> Result<(), EmbeddedError> {
        let mut request = json!({ "TableName": name, "BillingMode": "PAY_PER_REQUEST" });
        for key in ["KeySchema", "AttributeDefinitions", "GlobalSecondaryIndexes"] {
            if let Some(value) = properties.get(key) {
                request[key] = value.clone();
            }
        }
        if let Some(view) = properties.pointer("/StreamSpecification/StreamViewType") {
            request["StreamSpecification"] =
                json!({ "StreamEnabled": true, "StreamViewType": view });
        }
        let request: CreateTableRequest = message("table", request)?;
        self.0
            .create_table(request)
            .map_err(|source| EmbeddedError::Database { action: "create the table", source })?;
        if let Some(specification) = properties.get("TimeToLiveSpecification") {
            let request = json!({ "TableName": name, "TimeToLiveSpecification": specification });
            let request: UpdateTimeToLiveRequest = message("time to live", request)?;
            self.0.update_time_to_live(request).map_err(|source| EmbeddedError::Database {
                action: "set the time to live",
                source,
            })?;
        }
        Ok(())
    }

    /// Carries out an operation on items, or describes a table. Returns status and body of the answer.
    #[must_use]
    pub fn call(&self, operation: &str, body: &[u8]) -> (u16, Vec<u8>) {
        let database = &self.0;
        match operation {
            "DescribeTable" => answer(body, |request| database.describe_table(request)),
            "Query" => answer(body, |request| database.query(request)),
            "Scan" => answer(body, |request| database.scan(request)),
            "GetItem" => answer(body, |request| database.get_item(request)),
            "PutItem" => answer(body, |request| database.put_item(request)),
            "UpdateItem" => answer(body, |request| database.update_item(request)),
            "DeleteItem" => answer(body, |request| database.delete_item(request)),
            "BatchGetItem" => answer(body, |request| database.batch_get_item(request)),
            "BatchWriteItem" => answer(body, |request| database.batch_write_item(request)),
            "TransactGetItems" => answer(body, |request| database.transact_get_items(request)),
            "TransactWriteItems" => answer(body, |request| database.transact_write_items(request)),
            _ => refusal(&DynoxideError::ValidationException(format!("no operation {operation}"))),
        }
    }
}

/// Takes and returns text like the engine's server, so the work is done in the engine's code, which is optimized.
fn answer<Q: DeserializeOwned, A: Serialize>(
    body: &[u8],
    call: impl FnOnce(Q) -> dynoxide::Result<A>,
) -> (u16, Vec<u8>) {
    let wrong = DynoxideError::SerializationException;
    let text = std::str::from_utf8(body).map_err(|error| wrong(error.to_string()));
    let request =
        text.and_then(|text| serde_json::from_str(text).map_err(|error| wrong(error.to_string())));
    let answer = request.and_then(call).and_then(|answer| {
        serde_json::to_string(&answer)
            .map_err(|error| DynoxideError::InternalServerError(error.to_string()))
    });
    answer.map_or_else(|error| refusal(&error), |answer| (200, answer.into_bytes()))
}

fn refusal(error: &DynoxideError) -> (u16, Vec<u8>) {
    (error.status_code(), error.to_json().into_bytes())
}

pub(crate) fn message<T: serde::de::DeserializeOwned>(
    what: &'static str,
    value: Value,
) -> Result<T, EmbeddedError> {
    serde_json::from_value(value).map_err(|source| EmbeddedError::Shape { what, source })
}
