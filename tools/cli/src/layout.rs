//! Finds the kind of a table. A check of the wrong table would report damage everywhere, or find nothing and call the
//! table fine.

use anyhow::{Context, Result, ensure};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::TableDescription;
use ringfence_aws::{Clock, Retry, Table};
use ringfence_core::{Consistency, Envelope};
use ringfence_document_log::attributes::P;
use ringfence_document_log::{DocumentLog, DynamoStore, StreamName};
use ringfence_feed::{Checkpoint, Index};
use ringfence_template::{keys_of, properties_of};

/// The index of first events. Its key distinguishes the two layouts of Castore.
const INITIAL_EVENTS: &str = "initialEvents";

/// The kinds of tables, which have different keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    Events,
    Reventless,
    Aggregates,
    AggregatesOfOneStore,
    Documents,
    Index,
    PropulsionIndex,
    Views,
    Keys,
}

impl Layout {
    fn describe(self) -> &'static str {
        match self {
            Self::Events => "the table of a DCB log, which --table names; see `ringfence verify`",
            Self::Reventless => "a table of Reventless' DCB log; see `ringfence import`",
            Self::Aggregates => {
                "the table of an aggregate log, which --aggregate-table names; see `ringfence aggregates verify`"
            }
            Self::AggregatesOfOneStore => {
                "a table of Castore's older layout, which has one store a table; see `ringfence import`"
            }
            Self::Documents => {
                "the table of a document log, which --document-table names; see `ringfence documents verify`"
            }
            Self::Index => {
                "an index of all events, which --index-table names; see `ringfence index verify`"
            }
            Self::PropulsionIndex => "an index of Propulsion; see `ringfence import`",
            Self::Views => "a table of views, which --view-table names",
            Self::Keys => "a table of keys of personal data, which --key-table names",
        }
    }

    fn of_keys(keys: &str, first_events: &str) -> Option<Self> {
        match keys {
            "id (S), position (N)" => Some(Self::Events),
            "id (S), position (S)" => Some(Self::Reventless),
            "aggregateId (S), version (N)" if first_events.starts_with("isInitialEvent") => {
                Some(Self::AggregatesOfOneStore)
            }
            "aggregateId (S), version (N)" => Some(Self::Aggregates),
            "p (S), i (N)" => Some(Self::Documents),
            "p (S)" => Some(Self::Keys),
            "view (S), id (S)" => Some(Self::Views),
            _ => None,
        }
    }

    /// Fails if the table has another layout, and names that layout.
    pub(crate) async fn check(self, client: &Client, table: &str) -> Result<()> {
        Self::of(client, table).await?.is(self, table)
    }

    /// Fails if the table can't be an index, and says what it is.
    pub(crate) async fn check_index(client: &Client, table: &str) -> Result<()> {
        Self::of(client, table).await?.is_for_index(client, table).await
    }

    /// Fails if the table can't be an index, and says what it is. A new index is a table with the keys of a document
    /// table and without documents.
    async fn is_for_index(self, client: &Client, table: &str) -> Result<()> {
        match self {
            Self::Documents if !has_documents(client, table).await? => Ok(()),
            found => found.is(Self::Index, table),
        }
    }

    /// Fails if the table has another known layout, and names it. For other tables [`ringfence_template::compare`] says
    /// what they lack.
    pub(crate) async fn check_known(self, client: &Client, table: &str) -> Result<()> {
        match (self, Self::find(client, table).await?.0) {
            (Self::Aggregates, Some(Self::AggregatesOfOneStore)) | (_, None) => Ok(()),
            (Self::Index, Some(found)) => found.is_for_index(client, table).await,
            (wanted, Some(found)) => found.is(wanted, table),
        }
    }

    /// Fails if this is not the wanted layout, and says what the table is.
    pub(crate) fn is(self, wanted: Self, table: &str) -> Result<()> {
        ensure!(self == wanted, "{table} is {}", self.describe());
        Ok(())
    }

    /// The layout of a table.
    pub(crate) async fn of(client: &Client, table: &str) -> Result<Self> {
        let (found, keys) = Self::find(client, table).await?;
        found.with_context(|| format!("{table} has the keys {keys}, which no log has"))
    }

    /// The layout of a table, if it is known, and the keys of the table.
    async fn find(client: &Client, table: &str) -> Result<(Option<Self>, String)> {
        let properties = properties_of(&described(client, table).await?, None);
        let keys = keys_of(&properties, None);
        let found = Self::of_keys(&keys, &keys_of(&properties, Some(INITIAL_EVENTS)));
        // Both kinds of index have the keys of a document table.
        let found = match found {
            Some(Self::Documents) if is_of_propulsion(client, table).await? => {
                Some(Self::PropulsionIndex)
            }
            Some(Self::Documents) if has_index(client, table).await? => Some(Self::Index),
            found => found,
        };
        Ok((found, keys))
    }
}

/// A table, as DynamoDB describes it.
pub(crate) async fn described(client: &Client, table: &str) -> Result<TableDescription> {
    let describe =
        || async { client.describe_table().table_name(table).send().await.map_err(Into::into) };
    let described = Retry::default().run(describe).await;
    let described = described.with_context(|| format!("describing table {table}"))?;
    described.table.context("the answer describes no table")
}

/// Whether it is Propulsion's index, which has a document for each epoch.
async fn is_of_propulsion(client: &Client, table: &str) -> Result<bool> {
    let log = DocumentLog::new(DynamoStore::new(client.clone(), table), Clock::system());
    let (epoch, envelope) = (StreamName::new("$AppendsEpoch", "0_0")?, Envelope::default());
    let tip = log.tip(&epoch, Consistency::Strong, &envelope).await;
    Ok(tip.with_context(|| format!("looking for an index in {table}"))?.is_some())
}

/// Whether it has documents. Their ids begin with a context's name, and the keys of an index with `$`.
async fn has_documents(client: &Client, name: &str) -> Result<bool> {
    let table = Table::new(client.clone(), name, &Clock::system());
    let scan = || table.scan(|scan| scan.consistent_read(true).limit(1));
    let page = Retry::default().run(scan).await;
    let page = page.with_context(|| format!("looking for documents in {name}"))?;
    let key = page.items().first().and_then(|item| item.get(P)?.as_s().ok());
    Ok(key.is_some_and(|key| !key.starts_with('$')))
}

async fn has_index(client: &Client, table: &str) -> Result<bool> {
    let end = Index::new(client.clone(), table, []).end().await;
    Ok(end.with_context(|| format!("looking for an index in {table}"))? > Checkpoint::START)
}
