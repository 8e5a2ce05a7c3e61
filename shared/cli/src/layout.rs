//! What kind of table a table is. A check of the wrong table would call all of it damaged, or find nothing to
//! check and call it in order.

use std::collections::HashMap;

use anyhow::{Context, Result, bail, ensure};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{KeyType, TableDescription};
use ringfence::{Consistency, Envelope};
use ringfence_document_log::{DocumentLog, DynamoStore, StreamName};
use ringfence_dynamo::{Clock, Retry};
use ringfence_feed::{Checkpoint, Index};

/// The index of first events, whose key tells the two layouts of Castore apart.
const INITIAL_EVENTS: &str = "initialEvents";

/// The kinds of tables, which their keys tell apart.
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
}

impl Layout {
    fn describe(self) -> &'static str {
        match self {
            Self::Events => "the table of a DCB log; see `ringfence verify`",
            Self::Reventless => "a table of Reventless' DCB log; see `ringfence import`",
            Self::Aggregates => "the table of an aggregate log; see `ringfence aggregates verify`",
            Self::AggregatesOfOneStore => {
                "a table of Castore's older layout, which has one store a table; see `ringfence import`"
            }
            Self::Documents => "the table of a document log; see `ringfence documents verify`",
            Self::Index => "an index of all events; see `ringfence index verify`",
            Self::PropulsionIndex => "an index of Propulsion; see `ringfence import`",
            Self::Views => "a table of views",
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
            "view (S), id (S)" => Some(Self::Views),
            _ => None,
        }
    }

    /// Fails, and says what the table is, if it is not of this layout.
    pub(crate) async fn check(self, client: &Client, table: &str) -> Result<()> {
        Self::of(client, table).await?.is(self, table)
    }

    /// Fails, and says what the table is, if it is not for an index. A new one is empty, and has the keys of a document
    /// table.
    pub(crate) async fn check_index(client: &Client, table: &str) -> Result<()> {
        match Self::of(client, table).await? {
            Self::Documents => Ok(()),
            found => found.is(Self::Index, table),
        }
    }

    /// Fails, and says what the table is, if this is not the layout that is wanted.
    pub(crate) fn is(self, wanted: Self, table: &str) -> Result<()> {
        ensure!(self == wanted, "{table} is {}", self.describe());
        Ok(())
    }

    /// The layout of a table.
    pub(crate) async fn of(client: &Client, table: &str) -> Result<Self> {
        let describe =
            || async { client.describe_table().table_name(table).send().await.map_err(Into::into) };
        let described = Retry::default().run(describe).await;
        let described = described.with_context(|| format!("describing table {table}"))?;
        let described = described.table.context("the answer describes no table")?;
        let keys = keys(&described, None);
        let found = Self::of_keys(&keys, &self::keys(&described, Some(INITIAL_EVENTS)));
        // Both indexes have the keys of a document table.
        match found {
            Some(Self::Documents) if is_of_propulsion(client, table).await? => {
                Ok(Self::PropulsionIndex)
            }
            Some(Self::Documents) if has_index(client, table).await? => Ok(Self::Index),
            Some(found) => Ok(found),
            None => bail!("{table} has the keys {keys}, which no log has"),
        }
    }
}

/// Propulsion's index has a document for each epoch.
async fn is_of_propulsion(client: &Client, table: &str) -> Result<bool> {
    let log = DocumentLog::new(DynamoStore::new(client.clone(), table), Clock::system());
    let (epoch, envelope) = (StreamName::new("$AppendsEpoch", "0_0")?, Envelope::default());
    let tip = log.tip(&epoch, Consistency::Strong, &envelope).await;
    Ok(tip.with_context(|| format!("looking for an index in {table}"))?.is_some())
}

async fn has_index(client: &Client, table: &str) -> Result<bool> {
    let end = Index::new(client.clone(), table).end().await;
    Ok(end.with_context(|| format!("looking for an index in {table}"))? > Checkpoint::START)
}

/// The keys of a table or of an index, with their types.
fn keys(table: &TableDescription, index: Option<&str>) -> String {
    let definitions = table.attribute_definitions().iter();
    let types: HashMap<_, _> = definitions
        .map(|definition| (definition.attribute_name(), definition.attribute_type().as_str()))
        .collect();
    let indexes = table.global_secondary_indexes();
    let mut schema = match index {
        None => table.key_schema().to_vec(),
        Some(name) => indexes
            .iter()
            .find(|index| index.index_name() == Some(name))
            .map_or_else(Vec::new, |index| index.key_schema().to_vec()),
    };
    schema.sort_by_key(|key| *key.key_type() != KeyType::Hash);
    let keys = schema.iter().map(|key| {
        let name = key.attribute_name();
        format!("{name} ({})", types.get(name).copied().unwrap_or("?"))
    });
    keys.collect::<Vec<_>>().join(", ")
}
