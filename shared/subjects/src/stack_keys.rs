//! The keys of the stack: branch keys, which wrap the keys of subjects, and the key of blind tags.

use std::sync::Arc;

use ringfence_aws::Clock;
use ringfence_core::StoreError;

use crate::cache::Cache;
use crate::crypto::SecretKey;
use crate::wrap::wrong_key;
use crate::{KeyTable, Wrap};

/// A key of the stack is kept for this long, in milliseconds. So a warm function asks KMS for it once in ten minutes,
/// and stops soon after the key of KMS is disabled.
const KEPT_MS: u64 = 600_000;
const KEYS_MAX: usize = 100;
const BRANCH: &str = "branch";
const BLIND: &str = "blind";
/// The number of the key of blind tags. Another one is a migration: events and queries would have the tags of both.
const BLIND_NUMBER: u32 = 1;

/// The keys of the stack. A key is made when it is needed first.
pub(crate) struct StackKeys {
    stack: String,
    table: KeyTable,
    pub(crate) wrap: Arc<Wrap>,
    clock: Clock,
    /// By their names. Under `branch` is the newest one.
    kept: Cache<Numbered>,
}

type Numbered = (u32, SecretKey);

impl StackKeys {
    pub(crate) fn new(stack: String, table: KeyTable, wrap: Arc<Wrap>, clock: Clock) -> Self {
        let kept = Cache::new(KEYS_MAX, KEPT_MS, clock.clone());
        Self { stack, table, wrap, clock, kept }
    }

    /// The key of blind tags.
    pub(crate) async fn blind(&self) -> Result<Arc<Numbered>, StoreError> {
        self.find_or_make(BLIND, BLIND_NUMBER).await
    }

    /// The branch key of this number, which has wrapped something.
    pub(crate) async fn branch(&self, number: u32) -> Result<Arc<Numbered>, StoreError> {
        let found = self.find(BRANCH, number).await?;
        found.ok_or_else(|| wrong_key(&name(BRANCH, number)))
    }

    /// The newest branch key.
    pub(crate) async fn newest_branch(&self) -> Result<Arc<Numbered>, StoreError> {
        if let Some(newest) = self.kept.get(BRANCH) {
            return Ok(newest);
        }
        let asked_ms = self.clock.now_ms();
        let mut newest = self.find_or_make(BRANCH, 1).await?;
        while let Some(next) = self.find(BRANCH, newest.0 + 1).await? {
            newest = next;
        }
        self.kept.put(BRANCH, asked_ms, newest.clone());
        Ok(newest)
    }

    /// Makes a new branch key. It wraps the keys that are made from then on; functions know it ten minutes later.
    pub(crate) async fn rotate(&self) -> Result<(), StoreError> {
        let newest = self.newest_branch().await?;
        self.find_or_make(BRANCH, newest.0 + 1).await.map(drop)
    }

    async fn find(&self, purpose: &str, number: u32) -> Result<Option<Arc<Numbered>>, StoreError> {
        let name = name(purpose, number);
        if let Some(key) = self.kept.get(&name) {
            return Ok(Some(key));
        }
        match self.table.stack_key(&name).await? {
            Some(wrapped) => self.unwrapped(number, &name, &wrapped).await.map(Some),
            None => Ok(None),
        }
    }

    /// If another writer makes the key first, that one counts.
    async fn find_or_make(&self, purpose: &str, number: u32) -> Result<Arc<Numbered>, StoreError> {
        if let Some(key) = self.find(purpose, number).await? {
            return Ok(key);
        }
        let (name, key) = (name(purpose, number), SecretKey::random());
        let wrapped = self.wrap.wrap(&self.stack, &name, &key).await?;
        let there = self.table.put_stack_key(&name, wrapped.clone()).await?;
        match there == wrapped {
            true => Ok(self.keep(number, &name, key)),
            false => self.unwrapped(number, &name, &there).await,
        }
    }

    async fn unwrapped(
        &self,
        number: u32,
        name: &str,
        wrapped: &[u8],
    ) -> Result<Arc<Numbered>, StoreError> {
        let key = self.wrap.unwrap(&self.stack, name, wrapped).await?;
        Ok(self.keep(number, name, key))
    }

    fn keep(&self, number: u32, name: &str, key: SecretKey) -> Arc<Numbered> {
        let key = Arc::new((number, key));
        self.kept.put(name, self.clock.now_ms(), key.clone());
        key
    }
}

fn name(purpose: &str, number: u32) -> String {
    format!("{purpose}#{number}")
}
