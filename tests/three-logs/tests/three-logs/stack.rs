//! A DynamoDB in this process with a table for each log, and one of keys.

use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use ringfence_aggregate_log::{AggregateLog, AggregateTable};
use ringfence_aws::Clock;
use ringfence_aws::wire::Wire;
use ringfence_core::{Catalog, Context, LogKind};
use ringfence_dcb_log::DcbLog;
use ringfence_document_log::{Cache, Category, Document, DocumentLog, DynamoStore};
use ringfence_local::embedded::Embedded;
use ringfence_log::InTable;
use ringfence_subjects::{KeyTable, KeyVault, Wrap};
use ringfence_three_logs::account::Account;
use ringfence_three_logs::{aggregate, dcb, document};
use tempfile::TempDir;

use crate::personal::addresses::Addresses;

pub(crate) struct Stack {
    _dynamo: Embedded,
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    /// Of the key that wraps keys.
    folder: TempDir,
}

impl Stack {
    pub(crate) async fn start() -> Self {
        let dynamo = Embedded::start().await.expect("an embedded DynamoDB");
        let catalogs = [dcb::Accounts::catalog(), Addresses::catalog()];
        let catalog = Catalog::compose(catalogs.map(|of| of.expect("free of contradictions")));
        let catalog = catalog.expect("free of contradictions");
        let tables = [
            ("events", ringfence_dcb_log::table_layout(&catalog)),
            ("aggregates", ringfence_aggregate_log::table_layout()),
            ("documents", ringfence_document_log::table_layout()),
            ("keys", ringfence_subjects::table_layout()),
        ];
        for (name, layout) in tables {
            dynamo.create_table(&layout.properties(), name).expect("the table");
        }
        let client = Wire::default().client(dynamo.endpoint());
        let (clock, folder) = (Clock::fixed(ringfence_core::kit::BEGIN_MS), tempfile::tempdir());
        let folder = folder.expect("a folder");
        std::fs::write(folder.path().join("key"), [1; 32]).expect("a key");
        Self { _dynamo: dynamo, client, clock, folder }
    }

    pub(crate) fn keys(&self) -> KeyTable {
        KeyTable::new(self.client.clone(), "keys", self.clock.clone())
    }

    pub(crate) fn vault(&self) -> Arc<KeyVault> {
        let wrap = Wrap::file(&self.folder.path().join("key")).expect("a key");
        Arc::new(KeyVault::new("stack", self.keys(), wrap, self.clock.clone()))
    }

    /// The table of a log, with a vault that knows no key yet.
    pub(crate) fn table(&self, log: LogKind) -> InTable {
        let name = match log {
            LogKind::Dcb => "events",
            LogKind::Aggregates => "aggregates",
            LogKind::Documents => "documents",
        };
        let table = InTable::new(self.client.clone(), name, self.clock.clone());
        InTable { vault: Some(self.vault()), ..table }
    }

    pub(crate) fn dcb(&self) -> DcbLog {
        let catalog = dcb::Accounts::catalog().expect("free of contradictions");
        DcbLog::new(self.client.clone(), "events", catalog, self.clock.clone())
    }

    pub(crate) fn aggregates(&self) -> AggregateLog {
        let table = AggregateTable::new(self.client.clone(), "aggregates", self.clock.clone());
        let catalog = aggregate::Accounts::catalog().expect("free of contradictions");
        AggregateLog::new(table, catalog, self.clock.clone())
    }

    pub(crate) fn documents(&self, cache: Cache<Account>) -> Category<Account, DynamoStore> {
        let store = DynamoStore::new(self.client.clone(), "documents");
        let log = DocumentLog::new(store, self.clock.clone());
        let category = Category::new::<document::Accounts>(log, Account::ACCESS, cache);
        category.expect("each event names an account")
    }
}
