//! The keys of the stack: branch keys, which wrap the keys of subjects, and blind keys, which make tags.

use std::sync::Arc;

use ringfence_aws::Clock;
use ringfence_core::StoreError;

use crate::cache::Cache;
use crate::crypto::SecretKey;
use crate::rotation::{KEPT_MS, Purpose, Rotation, StackKey, StackRecord, rotation};
use crate::wrap::wrong_key;
use crate::{KeyTable, Wrap};

const KEYS_MAX: usize = 100;

/// The keys of the stack. A key is made when it is needed first.
pub(crate) struct StackKeys {
    stack: String,
    pub(crate) wrap: Arc<Wrap>,
    clock: Clock,
    /// By their purposes.
    records: Cache<StackRecord>,
    /// By their names.
    keys: Cache<SecretKey>,
}

type Numbered = (u32, Arc<SecretKey>);

#[derive(Debug, thiserror::Error)]
#[error(
    "the stack has {0} {1} keys, which is the most; every key is needed for what is stored, so none can be removed"
)]
struct TooMany(usize, &'static str);

impl StackKeys {
    pub(crate) fn new(stack: String, wrap: Arc<Wrap>, clock: Clock) -> Self {
        let records = Cache::new(KEYS_MAX, KEPT_MS, clock.clone());
        let keys = Cache::new(KEYS_MAX, KEPT_MS, clock.clone());
        Self { stack, wrap, clock, records, keys }
    }

    /// The blind keys. The first one is for the tags of new events.
    pub(crate) async fn blind(&self, table: &KeyTable) -> Result<Vec<Numbered>, StoreError> {
        let record = self.record(table, Purpose::Blind).await?;
        let used = record.used(Purpose::Blind, self.clock.now_ms());
        let others = record.0.keys().copied().filter(|number| *number != used);
        let mut keys = Vec::with_capacity(record.0.len());
        for number in std::iter::once(used).chain(others) {
            keys.push((number, self.key(&record, Purpose::Blind, number).await?));
        }
        Ok(keys)
    }

    /// The branch key of this number, which has wrapped something.
    pub(crate) async fn branch(
        &self,
        table: &KeyTable,
        number: u32,
    ) -> Result<Arc<SecretKey>, StoreError> {
        if let Some(key) = self.keys.get(&name(Purpose::Branch, number)) {
            return Ok(key);
        }
        let kept = self.records.get(Purpose::Branch.name());
        let record = match kept.filter(|record| record.0.contains_key(&number)) {
            Some(record) => record,
            None => self.read(table, Purpose::Branch).await?,
        };
        self.key(&record, Purpose::Branch, number).await
    }

    /// The newest branch key.
    pub(crate) async fn newest_branch(&self, table: &KeyTable) -> Result<Numbered, StoreError> {
        let record = self.record(table, Purpose::Branch).await?;
        let number = record.used(Purpose::Branch, self.clock.now_ms());
        Ok((number, self.key(&record, Purpose::Branch, number).await?))
    }

    /// Makes a new key, unless the stack has none yet, or one that is so new that functions may not know it.
    pub(crate) async fn rotate(
        &self,
        table: &KeyTable,
        purpose: Purpose,
    ) -> Result<Option<Rotation>, StoreError> {
        let found = self.read(table, purpose).await?;
        let waits = found.waits(purpose, self.clock.now_ms());
        if found.0.is_empty() || waits.is_some() {
            return Ok(waits);
        }
        if found.0.len() >= purpose.keys_max() {
            let source = TooMany(found.0.len(), purpose.name()).into();
            return Err(StoreError::Failed { operation: "rotating a key", source });
        }
        // A wrong key of KMS, or a wrong name of the stack, opens no key that is there. Functions would fail at a key
        // that is wrapped by it.
        self.key(&found, purpose, found.newest()).await?;
        let there = self.add(table, purpose, &found).await?;
        let newest = there.0.last_key_value();
        Ok(newest.map(|(number, key)| rotation(purpose, *number, key, true)))
    }

    /// The keys for a purpose, with a first one.
    async fn record(
        &self,
        table: &KeyTable,
        purpose: Purpose,
    ) -> Result<Arc<StackRecord>, StoreError> {
        if let Some(record) = self.records.get(purpose.name()) {
            return Ok(record);
        }
        let found = self.read(table, purpose).await?;
        match found.0.is_empty() {
            true => self.add(table, purpose, &found).await,
            false => Ok(found),
        }
    }

    async fn read(
        &self,
        table: &KeyTable,
        purpose: Purpose,
    ) -> Result<Arc<StackRecord>, StoreError> {
        let asked_ms = self.clock.now_ms();
        let found = Arc::new(table.stack_record(purpose.name()).await?);
        if !found.0.is_empty() {
            self.records.put(purpose.name(), asked_ms, found.clone());
        }
        Ok(found)
    }

    /// Adds a key. If another writer adds one first, that one counts.
    async fn add(
        &self,
        table: &KeyTable,
        purpose: Purpose,
        found: &StackRecord,
    ) -> Result<Arc<StackRecord>, StoreError> {
        let (number, key) = (found.newest() + 1, SecretKey::random());
        let wrapped = self.wrap.wrap(&self.stack, &name(purpose, number), &key).await?;
        let asked_ms = self.clock.now_ms();
        let added = found.with(StackKey { wrapped, made_at_ms: asked_ms });
        let there = table.put_stack_record(purpose.name(), found, added.clone()).await?;
        if there == added {
            self.keys.put(&name(purpose, number), asked_ms, Arc::new(key));
        }
        let there = Arc::new(there);
        self.records.put(purpose.name(), asked_ms, there.clone());
        Ok(there)
    }

    async fn key(
        &self,
        record: &StackRecord,
        purpose: Purpose,
        number: u32,
    ) -> Result<Arc<SecretKey>, StoreError> {
        let name = name(purpose, number);
        if let Some(key) = self.keys.get(&name) {
            return Ok(key);
        }
        let asked_ms = self.clock.now_ms();
        let wrapped = record.0.get(&number).ok_or_else(|| wrong_key(&name))?;
        let key = Arc::new(self.wrap.unwrap(&self.stack, &name, &wrapped.wrapped).await?);
        self.keys.put(&name, asked_ms, key.clone());
        Ok(key)
    }
}

fn name(purpose: Purpose, number: u32) -> String {
    format!("{}#{number}", purpose.name())
}
