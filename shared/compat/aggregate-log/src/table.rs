//! A table in one of Castore's layouts, with the settings of all requests to it.

use aws_sdk_dynamodb::Client;
use ringfence_aws::{Clock, Item, Meter, Retry};
use ringfence_core::StoreError;

use crate::AggregateError;
use crate::gaps::Gaps;
use crate::key::check_store;
use crate::layout::Stores;

/// Names the operation in errors of requests by key.
pub(crate) const READING_ITEMS: &str = "reading items";

/// Event stores in one DynamoDB table. Clones share one meter and the known gaps.
#[derive(Clone, Debug)]
pub struct AggregateTable {
    pub(crate) dynamo: ringfence_aws::Table,
    pub(crate) clock: Clock,
    pub(crate) retry: Retry,
    pub(crate) gaps: Gaps,
    pub(crate) stores: Stores,
}

impl AggregateTable {
    /// The stores in the table `name`. The client's own retries must be off
    /// ([`ringfence_aws::client_from_env`]), so that every attempt is counted once.
    #[must_use]
    pub fn new(client: Client, name: impl Into<String>, clock: Clock) -> Self {
        let dynamo = ringfence_aws::Table::new(client, name, &clock);
        Self { dynamo, clock, retry: Retry::default(), gaps: Gaps::new(), stores: Stores::Any }
    }

    /// The events of `store` in the table `name`, which has Castore's older layout: one store a table.
    ///
    /// # Errors
    /// [`AggregateError::Key`] if `store` can't name a store.
    pub fn legacy(
        client: Client,
        name: impl Into<String>,
        store: impl Into<String>,
        clock: Clock,
    ) -> Result<Self, AggregateError> {
        let store = store.into();
        check_store(&store)?;
        Ok(Self { stores: Stores::One(store), ..Self::new(client, name, clock) })
    }

    /// The same table, with the attempts and the deadline of `retry`.
    #[must_use]
    pub fn retrying(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    /// The cost of the requests so far.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        self.dynamo.meter()
    }

    /// The items at one moment, in the order of `keys`. Takes at most as many keys as a transaction has actions.
    pub(crate) async fn get_together(
        &self,
        keys: &[Item],
    ) -> Result<Vec<Option<Item>>, AggregateError> {
        let found = self.retry.run(|| self.dynamo.get_together(keys)).await;
        let found = found.map_err(|gave_up| gave_up.during(READING_ITEMS))?;
        if found.len() != keys.len() {
            let source = format!("{} answers to {} keys", found.len(), keys.len()).into();
            return Err(StoreError::Failed { operation: READING_ITEMS, source }.into());
        }
        Ok(found.into_iter().map(|item| item.map(|item| self.stores.read(item))).collect())
    }
}
