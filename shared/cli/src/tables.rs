//! Where the events, the index and the views are.

use anyhow::Result;
use aws_sdk_dynamodb::Client;
use clap::Args;
use ringfence_dcb_log::DcbLog;
use ringfence_dynamo::{Clock, client_at};
use ringfence_feed::Index;

use crate::layout::Layout;

/// Which DynamoDB.
#[derive(Args)]
pub(crate) struct Dynamo {
    /// Another DynamoDB than that of AWS or of AWS_ENDPOINT_URL_DYNAMODB.
    #[arg(long, value_name = "URL")]
    endpoint_url: Option<String>,
}

impl Dynamo {
    pub(crate) async fn client(&self) -> Client {
        client_at(self.endpoint_url.as_deref()).await
    }
}

/// The table of the events.
#[derive(Args)]
pub(crate) struct EventTable {
    /// The table of the events.
    #[arg(long, env = "EVENT_TABLE")]
    table: String,
}

impl EventTable {
    /// Fails if the table is of another log.
    pub(crate) async fn check(&self, client: &Client) -> Result<()> {
        Layout::Events.check(client, &self.table).await
    }

    pub(crate) fn log(&self, client: Client) -> Result<DcbLog> {
        log(client, &self.table)
    }
}

pub(crate) fn log(client: Client, table: &str) -> Result<DcbLog> {
    Ok(DcbLog::new(client, table, ringfence_stack::catalog()?, Clock::system()))
}

/// The table of the index.
#[derive(Args)]
pub(crate) struct IndexTable {
    /// The table of the index.
    #[arg(long, env = "INDEX_TABLE")]
    pub(crate) index_table: String,
}

impl IndexTable {
    pub(crate) fn index(&self, client: Client) -> Index {
        Index::new(client, &self.index_table)
    }
}

/// The table of the views and of the readers' checkpoints.
#[derive(Args)]
pub(crate) struct ViewTable {
    /// The table of the views, which has the readers' checkpoints.
    #[arg(long, env = "VIEW_TABLE")]
    pub(crate) view_table: String,
}
