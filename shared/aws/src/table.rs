//! A table, and the only code that sends requests to DynamoDB. Each request is one attempt, which [`Retry::run`]
//! repeats. It is counted before it is sent, and then its units are added. Its failure says what is known about its
//! effect.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::batch_get_item::BatchGetItemInput;
use aws_sdk_dynamodb::operation::batch_write_item::BatchWriteItemInput;
use aws_sdk_dynamodb::operation::delete_item::DeleteItemInput;
use aws_sdk_dynamodb::operation::get_item::GetItemInput;
use aws_sdk_dynamodb::operation::put_item::PutItemInput;
use aws_sdk_dynamodb::operation::query::builders::QueryInputBuilder;
use aws_sdk_dynamodb::operation::query::{QueryInput, QueryOutput};
use aws_sdk_dynamodb::operation::scan::builders::ScanInputBuilder;
use aws_sdk_dynamodb::operation::scan::{ScanInput, ScanOutput};
use aws_sdk_dynamodb::operation::transact_get_items::TransactGetItemsInput;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsInput;
use aws_sdk_dynamodb::operation::update_item::UpdateItemInput;
use aws_sdk_dynamodb::types::{
    Delete, DeleteRequest, Get, KeysAndAttributes, Put, ReturnConsumedCapacity, ReturnValue,
    TransactGetItem, TransactWriteItem, Update, WriteRequest,
};

use ringfence_core::Consistency;

use crate::meter::Kind;
use crate::retry::Tokens;
use crate::send::Sender;
use crate::{
    Clock, Failure, GaveUp, Item, Meter, Reason, Retry, item_bytes, read_units,
    transact_write_units, write_units,
};

/// The most keys of one BatchGetItem.
pub const BATCH_KEYS_MAX: usize = 100;
const UNPROCESSED: &str = "all of the batch is unprocessed";
const UNCONDITIONED: &str = "a write without a condition takes effect again if it is sent again; give it one, or call \
                             `overwrite`";

/// One table. Only the table has the client, so every request is counted. Clones share one meter, and the tokens for
/// retries.
#[derive(Clone, Debug)]
pub struct Table {
    sender: Sender,
    meter: Meter,
    tokens: Tokens,
}

/// Sends a request that reads or writes, and returns its answer. The future is large. In a box it is not a part of the
/// futures around it, which would be moved with it.
///
/// The answer to a refused request does not report its units. With a price, which follows from the failure, they are
/// counted all the same.
macro_rules! answer {
    ($table:expr, $kind:ident, $request:expr) => {
        answer!($table, $kind, $request, |_: &Failure| 0.0)
    };
    ($table:expr, $kind:ident, $request:expr, $refused:expr) => {{
        $table.meter.sent(Kind::$kind);
        let request = $request.return_consumed_capacity(ReturnConsumedCapacity::Indexes);
        let answer = Box::pin($table.sender.send(request.build())).await.map_err(|error| {
            let failure = Failure::from(error);
            $table.meter.refused(Kind::$kind, $refused(&failure));
            $table.tokens.take(failure)
        })?;
        $table.tokens.give();
        $table.meter.consumed(Kind::$kind, answer.consumed_capacity());
        answer
    }};
}

/// The units of a refused write of items with these sizes in bytes: as if it had been carried out. The size of an item
/// for an update or a check is known only if its condition failed. Otherwise it counts as small.
fn refused_writes(bytes: &[usize], failure: &Failure) -> f64 {
    let larger = |bytes: usize, found: Option<&Item>| bytes.max(found.map_or(0, item_bytes));
    match (failure, bytes) {
        (Failure::Condition(found), [bytes]) => write_units(larger(*bytes, found.as_ref())),
        (Failure::Cancelled(reasons), _) => {
            let units = bytes.iter().zip(reasons).map(|(bytes, reason)| match reason {
                Reason::Condition(found) => transact_write_units(larger(*bytes, found.as_ref())),
                _ => transact_write_units(*bytes),
            });
            units.sum()
        }
        _ => 0.0,
    }
}

/// The units of a refused read of several items, which count as small.
fn refused_gets(failure: &Failure) -> f64 {
    match failure {
        Failure::Cancelled(reasons) => {
            reasons.iter().map(|_| 2.0 * read_units(0, Consistency::Strong)).sum()
        }
        _ => 0.0,
    }
}

/// A write may be sent twice, and its first send may arrive late. Under a condition on the state that was read, that
/// changes nothing.
fn conditioned(condition: Option<&String>) -> Result<(), Failure> {
    condition.map(drop).ok_or_else(|| Failure::Permanent { source: UNCONDITIONED.into() })
}

impl Table {
    /// The table `name`. The client's interceptors apply to all requests. The client's time-out of an operation and its
    /// stalled-stream protection have no effect. Its retries must be off ([`crate::client_from_env`]), so every attempt
    /// is counted once. The answers correct `clock` if it is a machine's.
    #[must_use]
    pub fn new(client: Client, name: impl Into<String>, clock: &Clock) -> Self {
        let sender = Sender::new(client, name.into(), clock);
        Self { sender, meter: Meter::default(), tokens: Tokens::default() }
    }

    /// The same table, whose requests count on another meter.
    #[must_use]
    pub fn on(&self, meter: &Meter) -> Self {
        Self { meter: meter.clone(), ..self.clone() }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.sender.table()
    }

    /// The cost of the requests so far.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// One page of the items with one partition key, in their order.
    ///
    /// # Errors
    /// The request failed.
    pub async fn query(
        &self,
        with: impl FnOnce(QueryInputBuilder) -> QueryInputBuilder,
    ) -> Result<QueryOutput, Failure> {
        Ok(answer!(self, Read, with(QueryInput::builder().table_name(self.name()))))
    }

    /// One page of all items, in no order.
    ///
    /// # Errors
    /// The request failed.
    pub async fn scan(
        &self,
        with: impl FnOnce(ScanInputBuilder) -> ScanInputBuilder,
    ) -> Result<ScanOutput, Failure> {
        Ok(answer!(self, Read, with(ScanInput::builder().table_name(self.name()))))
    }

    /// One item, if it is there.
    ///
    /// # Errors
    /// The request failed.
    pub async fn get(&self, key: Item, strong: bool) -> Result<Option<Item>, Failure> {
        let get = GetItemInput::builder().table_name(self.name()).set_key(Some(key));
        Ok(answer!(self, Read, get.consistent_read(strong)).item)
    }

    /// Gets at most [`BATCH_KEYS_MAX`] items. Returns those that exist, in no order, and the keys that DynamoDB left
    /// unprocessed.
    ///
    /// # Errors
    /// The request failed.
    pub async fn get_batch(
        &self,
        keys: Vec<Item>,
        strong: bool,
    ) -> Result<(Vec<Item>, Vec<Item>), Failure> {
        let keys = KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(strong);
        let keys = keys.build().expect("keys are set");
        let batch = BatchGetItemInput::builder().request_items(self.name(), keys);
        let mut answer = answer!(self, Read, batch);
        let items = answer.responses.as_mut().and_then(|tables| tables.remove(self.name()));
        let left = answer.unprocessed_keys.and_then(|mut tables| tables.remove(self.name()));
        Ok((items.unwrap_or_default(), left.map(|keys| keys.keys).unwrap_or_default()))
    }

    /// Gets some of the items, and takes their keys out of `keys`. Returns those that exist.
    ///
    /// # Errors
    /// The requests failed, or every attempt left all keys unprocessed.
    pub async fn get_some(
        &self,
        retry: Retry,
        keys: &mut Vec<Item>,
        strong: bool,
    ) -> Result<Vec<Item>, GaveUp> {
        let mut rest = keys.split_off(keys.len().min(BATCH_KEYS_MAX));
        let mut attempts = retry.start();
        loop {
            let batch = || self.get_batch(keys.clone(), strong);
            let (items, left) = attempts.run(batch).await?;
            if left.len() < keys.len() {
                *keys = left;
                keys.append(&mut rest);
                return Ok(items);
            }
            // A batch also stops at a size limit, so only a batch without any progress counts as throttled.
            if !attempts.again().await {
                let failure = Failure::Throttled { source: UNPROCESSED.into() };
                return Err(GaveUp { failure, attempts: attempts.made(), unknown: None });
            }
        }
    }

    /// Gets any number of items. Returns those that exist, in no order.
    ///
    /// # Errors
    /// As [`Table::get_some`].
    pub async fn get_all(
        &self,
        retry: Retry,
        mut keys: Vec<Item>,
        strong: bool,
    ) -> Result<Vec<Item>, GaveUp> {
        let mut items = Vec::new();
        while !keys.is_empty() {
            items.extend(self.get_some(retry, &mut keys, strong).await?);
        }
        Ok(items)
    }

    /// Gets items as they were at one moment, in the order of the keys: at most as many as a transaction has actions,
    /// and at most 4 MB.
    ///
    /// # Errors
    /// The request failed.
    pub async fn get_together(&self, keys: &[Item]) -> Result<Vec<Option<Item>>, Failure> {
        let get = |key: &Item| {
            let get = Get::builder().table_name(self.name()).set_key(Some(key.clone())).build();
            TransactGetItem::builder().get(get.expect("table and key are set")).build()
        };
        let gets = TransactGetItemsInput::builder();
        let gets = gets.set_transact_items(Some(keys.iter().map(get).collect()));
        let found =
            answer!(self, Read, gets, refused_gets).responses.unwrap_or_default().into_iter();
        // A missing item is returned as nothing or as an item without attributes.
        Ok(found.map(|found| found.item.filter(|item| !item.is_empty())).collect())
    }

    /// Puts one item without a transaction, at half the price.
    ///
    /// # Errors
    /// The request failed, has no condition, or the condition does not hold.
    pub async fn put(&self, put: Put) -> Result<(), Failure> {
        conditioned(put.condition_expression.as_ref())?;
        self.overwrite(put).await
    }

    /// Puts one item without a condition. A send that arrives late overwrites a newer item, so the caller must say why
    /// that does no harm.
    ///
    /// # Errors
    /// The request failed.
    pub async fn overwrite(&self, put: Put) -> Result<(), Failure> {
        let bytes = [item_bytes(&put.item)];
        let request = PutItemInput::builder()
            .table_name(put.table_name)
            .set_item(Some(put.item))
            .set_condition_expression(put.condition_expression)
            .set_expression_attribute_names(put.expression_attribute_names)
            .set_expression_attribute_values(put.expression_attribute_values)
            .set_return_values_on_condition_check_failure(
                put.return_values_on_condition_check_failure,
            );
        answer!(self, Write, request, |failure: &_| refused_writes(&bytes, failure));
        Ok(())
    }

    /// Updates one item without a transaction, at half the price. Returns the attributes that it asks for.
    ///
    /// # Errors
    /// The request failed, has no condition, or the condition does not hold.
    pub async fn update(
        &self,
        update: Update,
        answer: Option<ReturnValue>,
    ) -> Result<Option<Item>, Failure> {
        conditioned(update.condition_expression.as_ref())?;
        let request = UpdateItemInput::builder()
            .table_name(update.table_name)
            .set_key(Some(update.key))
            .update_expression(update.update_expression)
            .set_condition_expression(update.condition_expression)
            .set_expression_attribute_names(update.expression_attribute_names)
            .set_expression_attribute_values(update.expression_attribute_values)
            .set_return_values_on_condition_check_failure(
                update.return_values_on_condition_check_failure,
            )
            .set_return_values(answer);
        Ok(answer!(self, Write, request, |failure: &_| refused_writes(&[0], failure)).attributes)
    }

    /// Deletes one item without a transaction.
    ///
    /// # Errors
    /// The request failed, has no condition, or the condition does not hold.
    pub async fn delete(&self, delete: Delete) -> Result<(), Failure> {
        conditioned(delete.condition_expression.as_ref())?;
        let request = DeleteItemInput::builder()
            .table_name(delete.table_name)
            .set_key(Some(delete.key))
            .set_condition_expression(delete.condition_expression)
            .set_expression_attribute_names(delete.expression_attribute_names)
            .set_expression_attribute_values(delete.expression_attribute_values);
        answer!(self, Write, request, |failure: &_| refused_writes(&[0], failure));
        Ok(())
    }

    /// Deletes an item that is never put again, if it exists.
    ///
    /// # Errors
    /// The request failed.
    pub async fn delete_for_good(&self, key: Item) -> Result<(), Failure> {
        let delete = DeleteItemInput::builder().table_name(self.name()).set_key(Some(key));
        answer!(self, Write, delete);
        Ok(())
    }

    /// Deletes some of at most 25 items that are never put again. Returns how many.
    ///
    /// # Errors
    /// The request failed, or left all items unprocessed.
    pub async fn delete_some(&self, keys: &[Item]) -> Result<usize, Failure> {
        let delete = |key: &Item| {
            let delete = DeleteRequest::builder().set_key(Some(key.clone())).build();
            WriteRequest::builder().delete_request(delete.expect("a key is set")).build()
        };
        let deletes = keys.iter().map(delete).collect();
        let batch = BatchWriteItemInput::builder().request_items(self.name(), deletes);
        let left = answer!(self, Write, batch).unprocessed_items;
        let left =
            left.and_then(|mut tables| tables.remove(self.name())).map_or(0, |left| left.len());
        match keys.len() - left {
            0 => Err(Failure::Throttled { source: UNPROCESSED.into() }),
            deleted => Ok(deleted),
        }
    }

    /// Carries out all of the actions or none. For ten minutes, sends with the same token count as one.
    ///
    /// # Errors
    /// The request failed, or was cancelled.
    pub async fn transact(
        &self,
        actions: Vec<TransactWriteItem>,
        token: impl Into<String>,
    ) -> Result<(), Failure> {
        let put_bytes =
            |action: &TransactWriteItem| action.put.as_ref().map_or(0, |put| item_bytes(&put.item));
        let bytes: Vec<usize> = actions.iter().map(put_bytes).collect();
        let transaction = TransactWriteItemsInput::builder().set_transact_items(Some(actions));
        let transaction = transaction.client_request_token(token);
        answer!(self, Write, transaction, |failure: &_| refused_writes(&bytes, failure));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
