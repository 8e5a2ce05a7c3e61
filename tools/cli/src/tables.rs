//! Flags that say where the logs, the index, the views and the keys of personal data are.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use aws_sdk_dynamodb::Client;
use clap::Args;
use ringfence_aggregate_log::AggregateTable;
use ringfence_aws::Clock;
use ringfence_core::{Catalog, LogKind};
use ringfence_dcb_log::DcbLog;
use ringfence_document_log::{DocumentLog, DynamoStore};
use ringfence_feed::{Checkpoint, FeedError, Index, Sources};
use ringfence_lambda::VaultNames;
use ringfence_log::{InTable, OpenSource, StackLogs};
use ringfence_subjects::{KeyTable, KeyVault};

use crate::layout::Layout;
use crate::machine::{sdk_config, trust};
use crate::stack::name;

/// All logs: the command line reads the events of any stack.
#[must_use]
pub fn sources() -> Sources {
    [ringfence_dcb_log::SOURCE, ringfence_aggregate_log::SOURCE, ringfence_document_log::SOURCE]
        .into()
}

/// The table of the DCB log.
#[derive(Args)]
pub struct EventTable {
    /// The table of the DCB log.
    #[arg(long, env = "EVENT_TABLE", value_parser = name)]
    table: String,
}

impl EventTable {
    /// The table of this name.
    #[must_use]
    pub fn named(table: String) -> Self {
        Self { table }
    }

    /// Checks that the table is a DCB log.
    ///
    /// # Errors
    /// It is another one, or can't be reached.
    pub async fn check(&self, client: &Client) -> Result<()> {
        Layout::Events.check(client, &self.table).await
    }

    /// It and the other tables.
    pub(crate) fn with(&self, streams: &StreamTables) -> LogTables {
        LogTables { table: Some(self.table.clone()), streams: streams.clone() }
    }

    /// The log, for readers of the index.
    #[must_use]
    pub fn bodies(&self, client: Client) -> Vec<OpenSource> {
        let streams = StreamTables { aggregate_table: None, document_table: None };
        self.with(&streams).bodies(client)
    }

    /// The log, with the events of a catalog.
    pub(crate) fn log(&self, client: Client, catalog: &Catalog) -> DcbLog {
        self.log_at(client, catalog, Clock::system())
    }

    /// The log with another clock than the machine's.
    #[must_use]
    pub fn log_at(&self, client: Client, catalog: &Catalog, clock: Clock) -> DcbLog {
        DcbLog::new(client, &self.table, catalog.clone(), clock)
    }
}

/// The tables of the logs; absent if no flag names them.
#[derive(Args, Clone)]
pub struct LogTables {
    /// The table of the DCB log, if the stack has one.
    #[arg(long, env = "EVENT_TABLE", value_parser = name)]
    pub table: Option<String>,
    #[command(flatten)]
    /// The tables of the logs of single streams.
    pub streams: StreamTables,
}

impl LogTables {
    /// The logs whose tables are named.
    #[must_use]
    pub fn logs(&self, client: Client, clock: Clock) -> StackLogs {
        let StreamTables { aggregate_table, document_table } = &self.streams;
        let all = [
            (LogKind::Dcb, &self.table),
            (LogKind::Aggregates, aggregate_table),
            (LogKind::Documents, document_table),
        ];
        let named = all.into_iter().filter_map(|(log, table)| Some((log, table.clone()?)));
        StackLogs { client, clock, tables: named.collect(), vault: None }
    }

    /// The logs whose tables are named, for readers of the index.
    #[must_use]
    pub fn bodies(&self, client: Client) -> Vec<OpenSource> {
        self.logs(client, Clock::system()).bodies(&sources())
    }

    /// The table of the DCB log.
    ///
    /// # Errors
    /// No flag names it.
    pub(crate) fn events(&self) -> Result<EventTable> {
        let table =
            self.table.clone().context("name the table of the DCB log with --table or --stack")?;
        Ok(EventTable { table })
    }
}

/// The keys of personal data. Without them, values stay sealed.
#[derive(Args, Clone)]
pub struct KeyFlags {
    /// The table of the keys of personal data, for slices that read or write such data.
    #[arg(long, env = "KEY_TABLE", value_parser = name, requires = "personal_key")]
    key_table: Option<String>,
    /// The ARN of the KMS key that wraps them, or `file:` and a path.
    #[arg(long, env = "PERSONAL_KEY", value_parser = name, requires = "stack_name")]
    personal_key: Option<String>,
    /// The name of the stack, to which personal values are bound.
    #[arg(long, env = "STACK_NAME", value_parser = name)]
    stack_name: Option<String>,
}

impl KeyFlags {
    /// These logs with a vault for personal data, if the keys are named.
    ///
    /// # Errors
    /// The key's file can't be read, or the configuration lacks something for KMS.
    pub async fn open(&self, logs: StackLogs) -> Result<StackLogs> {
        match self.key_table {
            None => Ok(logs),
            Some(_) => Ok(StackLogs { vault: Some(Arc::new(self.vault(&logs).await?)), ..logs }),
        }
    }

    /// The vault.
    ///
    /// # Errors
    /// As of [`KeyFlags::open`], or no flag names the keys.
    pub(crate) async fn vault(&self, logs: &StackLogs) -> Result<KeyVault> {
        let Self { key_table, personal_key, stack_name } = self.clone();
        let named = key_table.zip(personal_key).zip(stack_name).context(NO_KEYS)?;
        let ((table, key), stack) = named;
        let names = VaultNames { stack, table, key, bundle: String::new() };
        let vault = names.open(&sdk_config().await?, &trust()?, &logs.client, &logs.clock).await;
        vault.map_err(|error| anyhow!(error))
    }

    /// The table of keys.
    ///
    /// # Errors
    /// No flag names it.
    pub(crate) fn table(&self, client: &Client) -> Result<KeyTable> {
        let name = self.key_table.as_ref().context(NO_KEYS)?;
        Ok(KeyTable::new(client.clone(), name, Clock::system()))
    }
}

const NO_KEYS: &str = "name the table of keys with --key-table or --stack";

/// The table of a log.
///
/// # Errors
/// It is not named.
pub(crate) fn table(logs: &StackLogs, log: LogKind) -> Result<InTable> {
    logs.table(log).with_context(|| unnamed(log))
}

/// The DCB log with the events of a catalog.
pub(crate) fn dcb(logs: &StackLogs, catalog: &Catalog) -> Result<DcbLog> {
    let InTable { client, name, clock, .. } = table(logs, LogKind::Dcb)?;
    Ok(DcbLog::new(client, name, catalog.clone(), clock))
}

/// The aggregate log.
pub(crate) fn aggregates(logs: &StackLogs) -> Result<AggregateTable> {
    let InTable { client, name, clock, .. } = table(logs, LogKind::Aggregates)?;
    Ok(AggregateTable::new(client, name, clock))
}

/// The document log.
pub(crate) fn documents(logs: &StackLogs) -> Result<DocumentLog<DynamoStore>> {
    let InTable { client, name, clock, .. } = table(logs, LogKind::Documents)?;
    Ok(DocumentLog::new(DynamoStore::new(client, name), clock))
}

/// The message about a log whose table is not named.
pub(crate) fn unnamed(log: LogKind) -> String {
    let flag = match log {
        LogKind::Dcb => "--table",
        LogKind::Aggregates => "--aggregate-table",
        LogKind::Documents => "--document-table",
    };
    format!("it is on the {} log: name its table with {flag} or --stack", log_name(log))
}

/// The name of a log, for people.
pub(crate) fn log_name(log: LogKind) -> &'static str {
    match log {
        LogKind::Dcb => "DCB",
        LogKind::Aggregates => "aggregate",
        LogKind::Documents => "document",
    }
}

/// The tables of the logs of single streams.
#[derive(Args, Clone)]
pub struct StreamTables {
    /// The table of the aggregate log, if the stack has one.
    #[arg(long, env = "AGGREGATE_TABLE", value_parser = name)]
    pub aggregate_table: Option<String>,
    /// The table of the document log, if the stack has one.
    #[arg(long, env = "DOCUMENT_TABLE", value_parser = name)]
    pub document_table: Option<String>,
}

impl StreamTables {
    /// Fails if a table is of another log.
    pub async fn check(&self, client: &Client) -> Result<()> {
        if let Some(table) = &self.aggregate_table {
            Layout::Aggregates.check(client, table).await?;
        }
        if let Some(table) = &self.document_table {
            Layout::Documents.check(client, table).await?;
        }
        Ok(())
    }

    /// The table of the aggregate log.
    ///
    /// # Errors
    /// No flag names it.
    pub(crate) fn aggregates(&self) -> Result<&str> {
        let table = self.aggregate_table.as_deref();
        table.context("name the table of the aggregate log with --aggregate-table or --stack")
    }

    /// The table of the document log.
    ///
    /// # Errors
    /// No flag names it.
    pub(crate) fn documents_table(&self) -> Result<&str> {
        let table = self.document_table.as_deref();
        table.context("name the table of the document log with --document-table or --stack")
    }

    /// The logs whose tables are not named.
    pub fn missing(&self) -> Vec<LogKind> {
        let aggregates = self.aggregate_table.is_none().then_some(LogKind::Aggregates);
        let documents = self.document_table.is_none().then_some(LogKind::Documents);
        aggregates.into_iter().chain(documents).collect()
    }
}

/// The table of the index.
#[derive(Args)]
pub struct IndexTable {
    /// The table of the index.
    #[arg(long, env = "INDEX_TABLE", value_parser = name)]
    pub index_table: String,
}

impl IndexTable {
    /// The index in it, for a command that reads no event.
    ///
    /// # Errors
    /// The table is not an index, or can't be reached.
    pub(crate) async fn index(&self, client: Client) -> Result<Index> {
        index_of(client, &self.index_table, Vec::new()).await
    }
}

/// The tables of the index and of the logs, which have its events.
#[derive(Args)]
pub struct FeedTables {
    #[command(flatten)]
    /// The table of the index.
    pub index: IndexTable,
    #[command(flatten)]
    pub(crate) logs: LogTables,
}

impl FeedTables {
    /// The index, for a command that reads events.
    ///
    /// # Errors
    /// The table is not an index, or can't be reached.
    pub(crate) async fn index(&self, client: Client) -> Result<Index> {
        index_of(client.clone(), &self.index.index_table, self.logs.bodies(client)).await
    }
}

/// The index in a table, and the logs whose events are read.
///
/// # Errors
/// The table is not an index, or can't be reached.
pub(crate) async fn index_of(client: Client, table: &str, logs: Vec<OpenSource>) -> Result<Index> {
    let index = Index::new(client.clone(), table, logs);
    let end = index.end().await;
    let may_be_another = match &end {
        Ok(end) => *end == Checkpoint::START,
        Err(FeedError::Failed { source, .. }) => source.is_of_content(),
        Err(error) => !error.is_transient(),
    };
    // A table of documents has no entry, a table with other keys refuses the query, and Propulsion's index has other
    // items.
    if may_be_another {
        Layout::check_index(&client, table).await?;
    }
    end?;
    Ok(index)
}

/// The table of the views and of the readers' checkpoints.
#[derive(Args)]
pub struct ViewTable {
    /// The table of the views and of the readers' checkpoints.
    #[arg(long, env = "VIEW_TABLE", value_parser = name)]
    pub view_table: String,
}
