//! DynamoDB in this process, with streams: one database for each [`Embedded`], on a loopback port.

use std::{
    net::Ipv4Addr,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use dynoxide::{
    Database,
    actions::{
        TableDescription, describe_stream::DescribeStreamRequest,
        describe_table::DescribeTableRequest, get_records::GetRecordsRequest,
        get_shard_iterator::GetShardIteratorRequest, list_tables::ListTablesRequest,
        scan::ScanRequest, update_table::UpdateTableRequest,
    },
};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{net::TcpListener, sync::oneshot};

use crate::{
    engine::{Engine, message},
    engine_server::{Serve, apart, beside, hidden},
};

pub use crate::engine::EmbeddedError;

/// The folder whose files are in memory on Linux. On other systems the database is an ordinary temporary file.
const MEMORY_FOLDER: &str = "/dev/shm";

/// For every record that it writes, the engine looks up the stream's last sequence number. It has no index for that, so
/// each write would scan all earlier records.
const SEQUENCE_INDEX: &str = "CREATE INDEX IF NOT EXISTS ringfence_sequence \
     ON _stream_records (table_name, CAST(sequence_number AS INTEGER))";

/// The engine's statement. If another version of the engine has another one, [`Embedded::start`] fails, instead of
/// becoming slow.
const SEQUENCE_QUERY_PLAN: &str = "EXPLAIN QUERY PLAN \
     SELECT COALESCE(MAX(CAST(sequence_number AS INTEGER)), 0) + 1 \
     FROM _stream_records WHERE table_name = 'events'";

/// The most records in one answer of GetRecords, as for DynamoDB Streams.
const RECORDS_MAX: usize = 1_000;

/// A new DynamoDB, which is deleted when dropped.
pub struct Embedded {
    endpoint: String,
    database: Database,
    changes: Changes,
    // Dropping the sender stops the server. The folder is deleted after it.
    _stop: oneshot::Sender<()>,
    _folder: Option<TempDir>,
}

/// The position of a stream's reader, by the sequence number of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Position {
    /// At the record.
    #[serde(rename = "AT_SEQUENCE_NUMBER")]
    At(String),
    /// After the record.
    #[serde(rename = "AFTER_SEQUENCE_NUMBER")]
    After(String),
}

impl Embedded {
    /// Starts an empty DynamoDB on a free loopback port.
    ///
    /// # Errors
    /// There is no folder or port, or the engine does not have the pinned version.
    pub async fn start() -> Result<Self, EmbeddedError> {
        Self::at(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?, beside)
    }

    /// Starts one for a stack, at an address that only the stack's guard forwards to ([`hidden`]).
    pub(crate) async fn hidden() -> Result<Self, EmbeddedError> {
        Self::at(hidden().await?, apart)
    }

    fn at(listener: TcpListener, serve: Serve) -> Result<Self, EmbeddedError> {
        let memory = Path::new(MEMORY_FOLDER);
        let builder = || tempfile::Builder::new().prefix("ringfence-").to_owned();
        let folder = match memory.is_dir() {
            true => builder().tempdir_in(memory).or_else(|_| builder().tempdir())?,
            false => builder().tempdir()?,
        };
        let file = folder.path().join("dynamodb.sqlite");
        Self::of(listener, &file, Some(folder), serve)
    }

    /// Starts a DynamoDB for a stack, with the data in this file.
    ///
    /// # Errors
    /// The file can't be opened, there is no port, or the engine does not have the pinned version.
    pub async fn open(file: &Path) -> Result<Self, EmbeddedError> {
        Self::of(hidden().await?, file, None, apart)
    }

    fn of(
        listener: TcpListener,
        file: &Path,
        folder: Option<TempDir>,
        serve: Serve,
    ) -> Result<Self, EmbeddedError> {
        let database = Database::new(&file.to_string_lossy())
            .map_err(|source| EmbeddedError::Database { action: "open", source })?;
        let changes = Changes(Arc::new(with_sequence_index(file)?.into()));

        let endpoint = format!("http://{}", listener.local_addr()?);
        let (stop, stopped) = oneshot::channel::<()>();
        serve(listener, database.clone(), stopped)?;
        Ok(Self { endpoint, database, changes, _stop: stop, _folder: folder })
    }

    /// The endpoint URL for an AWS SDK. It accepts any region and credentials.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The same DynamoDB without the socket.
    #[must_use]
    pub fn engine(&self) -> Engine {
        Engine(self.database.clone())
    }

    /// Creates a table from the properties of an `AWS::DynamoDB::Table`: keys, indexes, stream and
    /// TTL attribute.
    ///
    /// # Errors
    /// The engine refuses it.
    pub fn create_table(&self, properties: &Value, name: &str) -> Result<(), EmbeddedError> {
        self.engine().create_table(properties, name)
    }

    /// The names of all tables.
    ///
    /// # Errors
    /// The engine refuses to list them.
    pub fn tables(&self) -> Result<Vec<String>, EmbeddedError> {
        let request: ListTablesRequest = message("request", json!({}))?;
        let answer = self.database.list_tables(request);
        let failed = |source| EmbeddedError::Database { action: "list the tables", source };
        Ok(answer.map_err(failed)?.table_names)
    }

    /// A table as DynamoDB describes it.
    ///
    /// # Errors
    /// There is no such table.
    pub fn describe(&self, table: &str) -> Result<Value, EmbeddedError> {
        let answer = self.table(table)?;
        serde_json::to_value(answer)
            .map_err(|source| EmbeddedError::Shape { what: "table", source })
    }

    /// Creates or deletes an index of a table: an entry of UpdateTable's `GlobalSecondaryIndexUpdates`.
    ///
    /// # Errors
    /// The engine refuses it.
    pub fn change_index(
        &self,
        table: &str,
        properties: &Value,
        change: Value,
    ) -> Result<(), EmbeddedError> {
        let request: UpdateTableRequest = message(
            "index",
            json!({
                "TableName": table,
                "AttributeDefinitions": properties["AttributeDefinitions"],
                "GlobalSecondaryIndexUpdates": [change],
            }),
        )?;
        let failed = |source| EmbeddedError::Database { action: "change the index", source };
        self.database.update_table(request).map_err(failed)?;
        Ok(())
    }

    fn table(&self, table: &str) -> Result<TableDescription, EmbeddedError> {
        let request: DescribeTableRequest = message("request", json!({ "TableName": table }))?;
        let failed = |source| EmbeddedError::Database { action: "describe the table", source };
        Ok(self.database.describe_table(request).map_err(failed)?.table)
    }

    /// Every item of a table in DynamoDB's JSON, if they have at most 1 MB together.
    ///
    /// # Errors
    /// The engine refuses to read.
    pub fn items(&self, table: &str) -> Result<Vec<Value>, EmbeddedError> {
        let request: ScanRequest = message("request", json!({ "TableName": table }))?;
        let answer = self
            .database
            .scan(request)
            .map_err(|source| EmbeddedError::Database { action: "scan the table", source })?;
        let items = serde_json::to_value(answer.items)
            .map_err(|source| EmbeddedError::Shape { what: "items", source })?;
        message("items", items)
    }

    /// Deletes every expired item, as DynamoDB does by itself. Returns how many.
    ///
    /// # Errors
    /// The engine refuses to.
    pub fn expire(&self) -> Result<usize, EmbeddedError> {
        let swept = self.database.sweep_ttl();
        swept.map_err(|source| EmbeddedError::Database { action: "delete what expired", source })
    }

    /// Opens a table's stream at its oldest record.
    ///
    /// # Errors
    /// The table has no stream.
    pub fn stream(&self, table: &str) -> Result<StreamReader, EmbeddedError> {
        self.stream_from(table, None)
    }

    /// Opens a table's stream at this position, or at its oldest record.
    ///
    /// # Errors
    /// The table has no stream.
    pub fn stream_from(
        &self,
        table: &str,
        position: Option<&Position>,
    ) -> Result<StreamReader, EmbeddedError> {
        let no_stream = || EmbeddedError::NoStream { table: table.to_owned() };
        let arn = self.table(table)?.latest_stream_arn.ok_or_else(no_stream)?;

        let request: DescribeStreamRequest = message("request", json!({ "StreamArn": arn }))?;
        let answer = self
            .database
            .describe_stream(request)
            .map_err(|source| EmbeddedError::Database { action: "describe the stream", source })?;
        let answer = serde_json::to_value(answer)
            .map_err(|source| EmbeddedError::Shape { what: "stream", source })?;
        let shard = answer.pointer("/StreamDescription/Shards/0/ShardId").ok_or_else(no_stream)?;
        let (kind, number) = match position {
            None => ("TRIM_HORIZON", None),
            Some(Position::At(number)) => ("AT_SEQUENCE_NUMBER", Some(number)),
            Some(Position::After(number)) => ("AFTER_SEQUENCE_NUMBER", Some(number)),
        };
        let request = json!({
            "StreamArn": arn, "ShardId": shard, "ShardIteratorType": kind, "SequenceNumber": number,
        });
        let shard = shard.as_str().unwrap_or_default().to_owned();
        let request: GetShardIteratorRequest = message("request", request)?;
        let answer = self
            .database
            .get_shard_iterator(request)
            .map_err(|source| EmbeddedError::Database { action: "open the stream", source })?;
        Ok(StreamReader {
            database: self.database.clone(),
            arn,
            shard,
            iterator: answer.shard_iterator,
            changes: self.changes.clone(),
            ended_at: None,
        })
    }
}

/// A reader of one table's stream, with its position.
#[derive(Clone)]
pub struct StreamReader {
    database: Database,
    arn: String,
    shard: String,
    iterator: Option<String>,
    changes: Changes,
    /// The version of the database at which there was nothing more to read.
    ended_at: Option<i64>,
}

impl StreamReader {
    /// The stream's ARN.
    #[must_use]
    pub fn arn(&self) -> &str {
        &self.arn
    }

    /// The id of the stream's shard; the engine has one per table.
    #[must_use]
    pub fn shard(&self) -> &str {
        &self.shard
    }

    /// Whether there may be unread records. It takes microseconds.
    #[must_use]
    pub fn may_have_more(&self) -> bool {
        let version = self.changes.version();
        self.iterator.is_some() && (version.is_none() || version != self.ended_at)
    }

    /// The next records, at most 1,000, in the form in which Lambda passes them to a function. Empty if the stream has
    /// nothing new.
    ///
    /// # Errors
    /// The engine refuses to read.
    pub fn read(&mut self) -> Result<Vec<Value>, EmbeddedError> {
        let Some(iterator) = &self.iterator else { return Ok(Vec::new()) };
        let version = self.changes.version();
        let request: GetRecordsRequest =
            message("request", json!({ "ShardIterator": iterator, "Limit": RECORDS_MAX }))?;
        let answer = self
            .database
            .get_records(request)
            .map_err(|source| EmbeddedError::Database { action: "read the stream", source })?;
        self.iterator = answer.next_shard_iterator;
        self.ended_at = version.filter(|_| answer.records.is_empty());
        let shape = |source| EmbeddedError::Shape { what: "stream record", source };
        let mut records = Vec::with_capacity(answer.records.len());
        for record in answer.records {
            let mut record = serde_json::to_value(record).map_err(shape)?;
            record["eventSourceARN"] = json!(self.arn);
            records.push(record);
        }
        Ok(records)
    }
}

/// Tells whether anything was written, in a fraction of the time that the engine takes to read a stream. Each mapping
/// of a stack asks fifty times a second.
#[derive(Clone)]
struct Changes(Arc<Mutex<Connection>>);

impl Changes {
    /// A number that every write by the engine changes; `None` if it can't be read.
    fn version(&self) -> Option<i64> {
        let connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut version = connection.prepare_cached("PRAGMA data_version").ok()?;
        version.query_row([], |row| row.get(0)).ok()
    }
}

/// A connection to the engine's file, to which it adds the index.
fn with_sequence_index(file: &Path) -> Result<Connection, EmbeddedError> {
    let connection = Connection::open(file)?;
    connection.execute(SEQUENCE_INDEX, [])?;
    let plan: String = connection.query_row(SEQUENCE_QUERY_PLAN, [], |row| row.get("detail"))?;
    match plan.contains("ringfence_sequence") {
        true => Ok(connection),
        false => Err(EmbeddedError::IndexUnused { plan }),
    }
}

#[cfg(test)]
#[path = "embedded_tests.rs"]
pub(crate) mod tests;
