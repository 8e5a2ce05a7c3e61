//! A table of keys, and vaults on it, each as in a process of its own.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use ringfence_aws::wire::Wire;
use ringfence_aws::{Clock, Item, Usage};
use ringfence_core::{StoreError, Vault, VaultError, chain};
use ringfence_local::engine::Engine;
use ringfence_subjects::{KeyTable, KeyVault, Wrap, table_layout};
use serde_json::{Value, json};
use tempfile::TempDir;

/// 2024-06-23T00:00:00Z.
pub(crate) const NOW_MS: u64 = 1_719_100_800_000;

pub(crate) struct World {
    pub(crate) wire: Wire,
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) table: KeyTable,
    folder: TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let engine = Engine::memory().unwrap();
        engine.create_table(&table_layout().properties(), "keys").unwrap();
        let wire = Wire::default();
        let client = wire
            .client_of(Arc::new(move |operation: &str, body: &[u8]| engine.call(operation, body)));
        let clock = Clock::fixed(NOW_MS);
        let table = KeyTable::new(client.clone(), "keys", clock.clone());
        let world = Self { wire, client, clock, table, folder: tempfile::tempdir().unwrap() };
        fs::write(world.key_file(), [1; 32]).unwrap();
        world
    }

    pub(crate) fn vault(&self) -> KeyVault {
        self.vault_of("prod", Wrap::file(&self.key_file()).unwrap())
    }

    pub(crate) fn vault_of(&self, stack: &str, wrap: Wrap) -> KeyVault {
        KeyVault::new(stack, self.table.clone(), wrap, self.clock.clone())
    }

    pub(crate) fn key_file(&self) -> PathBuf {
        self.folder.path().join("key")
    }

    pub(crate) fn wait(&self, ms: u64) {
        self.clock.set(self.clock.now_ms() + ms);
    }

    pub(crate) fn usage(&self) -> Usage {
        self.table.meter().snapshot()
    }

    /// Requests and units since `before`: of reads, then of writes.
    pub(crate) fn spent(&self, before: &Usage) -> (u32, f64, u32, f64) {
        let used = self.usage().since(before);
        (used.reads, used.tables.read, used.writes, used.tables.write)
    }

    pub(crate) async fn item(&self, p: &str) -> Option<Item> {
        let get = self.client.get_item().table_name("keys");
        let key = aws_sdk_dynamodb::types::AttributeValue::S(p.to_owned());
        get.key("p", key).consistent_read(true).send().await.unwrap().item
    }

    /// Puts an item as a restore does.
    pub(crate) async fn restore(&self, item: Item) {
        let put = self.client.put_item().table_name("keys").set_item(Some(item));
        put.send().await.unwrap();
    }
}

/// A marked value.
pub(crate) fn marked(subject: &str, value: impl Into<Value>) -> Value {
    json!({ "$personal": value.into(), "of": subject })
}

pub(crate) fn forgotten(subject: &str) -> Value {
    json!({ "$forgotten": true, "of": subject })
}

pub(crate) async fn sealed(vault: &KeyVault, mut payload: Value) -> Result<Value, VaultError> {
    vault.seal(vec![&mut payload]).await?;
    Ok(payload)
}

pub(crate) async fn opened(vault: &KeyVault, payload: &Value) -> Result<Value, VaultError> {
    let mut payload = payload.clone();
    vault.open(vec![&mut payload]).await?;
    Ok(payload)
}

/// The message for the operator.
pub(crate) fn message<T: std::fmt::Debug>(result: Result<T, VaultError>) -> String {
    match result {
        Err(VaultError::Store(
            error @ (StoreError::Failed { .. } | StoreError::Unavailable { .. }),
        )) => chain(&error),
        other => panic!("{other:?}"),
    }
}
