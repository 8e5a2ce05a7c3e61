//! The requests to DynamoDB.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    AttributeValue, ConsumedCapacity, Put, ReturnConsumedCapacity,
    ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use futures::future::BoxFuture;
use ringfence::Consistency;
use ringfence_dynamo::{Failure, Item, Kind, Meter};

use crate::batch::{TIP_KEY, event_list, key, number, type_list, unfold_list};
use crate::{
    Batch, Change, Direction, Expect, Head, Page, Query, Store, StreamName, Streams, Write,
};

/// What every request asks for: the price.
const CAPACITY: ReturnConsumedCapacity = ReturnConsumedCapacity::Indexes;
/// What every condition asks for: the Tip as it was found, so that a conflict needs no read.
const FOUND: ReturnValuesOnConditionCheckFailure = ReturnValuesOnConditionCheckFailure::AllOld;

/// Streams in one DynamoDB table: key `p` (S) and `i` (N).
#[derive(Clone, Debug)]
pub struct DynamoStore {
    client: Client,
    table: String,
    meter: Meter,
}

impl DynamoStore {
    /// The streams in `table`. The client's own retries must be off
    /// ([`ringfence_dynamo::client_from_env`]), so that every attempt is counted once.
    #[must_use]
    pub fn new(client: Client, table: impl Into<String>) -> Self {
        Self { client, table: table.into(), meter: Meter::default() }
    }

    /// What this store's requests cost so far.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    fn consumed(&self, kind: Kind, capacity: Option<&ConsumedCapacity>) {
        self.meter.consumed(kind, capacity);
    }

    async fn put(&self, item: Item) -> Result<(), Failure> {
        let put = self.client.put_item().table_name(&self.table).set_item(Some(item));
        let put = put.condition_expression("attribute_not_exists(i)");
        let put = put.return_values_on_condition_check_failure(FOUND);
        let answer = put.return_consumed_capacity(CAPACITY).send().await?;
        self.consumed(Kind::Write, answer.consumed_capacity());
        Ok(())
    }

    async fn update(&self, stream: &StreamName, update: Expressions) -> Result<(), Failure> {
        let Expressions { update, condition, values } = update;
        let answer = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(key(stream, TIP_KEY)))
            .update_expression(update)
            .condition_expression(condition)
            .set_expression_attribute_values(Some(values))
            .return_values_on_condition_check_failure(FOUND)
            .return_consumed_capacity(CAPACITY)
            .send()
            .await?;
        self.consumed(Kind::Write, answer.consumed_capacity());
        Ok(())
    }

    async fn calve(&self, write: &Write, calf: &Batch) -> Result<(), Failure> {
        let calf = Put::builder()
            .table_name(&self.table)
            .set_item(Some(calf.to_item()))
            .condition_expression("attribute_not_exists(i)")
            .build()
            .map_err(|error| Failure::Permanent { source: error.into() })?;
        let Expressions { update, condition, values } = expressions(write);
        let tip = Update::builder()
            .table_name(&self.table)
            .set_key(Some(key(&write.tip.stream, TIP_KEY)))
            .update_expression(update)
            .condition_expression(condition)
            .set_expression_attribute_values(Some(values))
            .return_values_on_condition_check_failure(FOUND)
            .build()
            .map_err(|error| Failure::Permanent { source: error.into() })?;
        let answer = self
            .client
            .transact_write_items()
            .transact_items(TransactWriteItem::builder().put(calf).build())
            .transact_items(TransactWriteItem::builder().update(tip).build())
            .set_client_request_token(write.tip.etag.clone())
            .return_consumed_capacity(CAPACITY)
            .send()
            .await?;
        self.meter.consumed(Kind::Write, answer.consumed_capacity());
        Ok(())
    }
}

struct Expressions {
    update: String,
    condition: &'static str,
    values: Item,
}

/// Only what is new travels: an append sends its events, not the Tip's.
fn expressions(write: &Write) -> Expressions {
    let Write { tip, change, expect, .. } = write;
    let mut values = Item::new();
    let mut set = |name: &str, value: AttributeValue| {
        values.insert(name.to_owned(), value);
    };
    set(":a", number(tip.appended));
    set(":b", number(tip.calved_bytes));
    set(":u", unfold_list(&tip.unfolds));
    let mut update = "SET a = :a, b = :b, u = :u".to_owned();
    if let Some(etag) = &tip.etag {
        set(":etag", AttributeValue::S(etag.clone()));
        update.push_str(", etag = :etag");
    }
    let new = match change {
        Change::Keep => None,
        Change::Extend(added) => {
            update.push_str(", n = :n, e = list_append(e, :e), c = list_append(c, :c)");
            Some(&tip.events[tip.events.len() - added..])
        }
        Change::Put | Change::Replace => {
            update.push_str(", n = :n, e = :e, c = :c");
            Some(&tip.events[..])
        }
    };
    if let Some(new) = new {
        set(":n", number(tip.version));
        set(":e", event_list(new));
        set(":c", type_list(new));
    }
    let condition = match expect {
        Expect::Absent => "attribute_not_exists(i)",
        Expect::Version { version, held } => {
            set(":version", number(*version));
            set(":held", number(*held));
            match held {
                // Equinox.DynamoStore leaves an empty list out.
                0 => "n = :version AND (attribute_not_exists(e) OR size(e) = :held)",
                _ => "n = :version AND size(e) = :held",
            }
        }
        Expect::Etag(etag) => {
            set(":expected", AttributeValue::S(etag.clone()));
            "etag = :expected"
        }
    };
    Expressions { update, condition, values }
}

/// The items of an answer; one that is no batch is beyond what sending again can mend.
fn batch(item: Item) -> Result<Batch, Failure> {
    Batch::of_item(item).map_err(|error| Failure::Permanent { source: error.into() })
}

impl Store for DynamoStore {
    fn tip<'a>(
        &'a self,
        stream: &'a StreamName,
        consistency: Consistency,
    ) -> BoxFuture<'a, Result<Option<Batch>, Failure>> {
        Box::pin(async move {
            self.meter.sent(Kind::Read);
            let answer = self
                .client
                .get_item()
                .table_name(&self.table)
                .set_key(Some(key(stream, TIP_KEY)))
                .consistent_read(consistency == Consistency::Strong)
                .return_consumed_capacity(CAPACITY)
                .send()
                .await?;
            self.consumed(Kind::Read, answer.consumed_capacity());
            answer.item.map(batch).transpose()
        })
    }

    fn query<'a>(&'a self, query: Query<'a>) -> BoxFuture<'a, Result<Page, Failure>> {
        Box::pin(async move {
            self.meter.sent(Kind::Read);
            let mut condition = "p = :p".to_owned();
            let stream = AttributeValue::S(query.stream.to_string());
            let mut values = Item::from([(":p".to_owned(), stream)]);
            if let Some(beyond) = query.beyond {
                condition.push_str(match query.direction {
                    Direction::Forward => " AND i > :beyond",
                    Direction::Backward => " AND i < :beyond",
                });
                values.insert(":beyond".to_owned(), AttributeValue::N(beyond.to_string()));
            }
            let answer = self
                .client
                .query()
                .table_name(&self.table)
                .key_condition_expression(condition)
                .set_expression_attribute_values(Some(values))
                .scan_index_forward(query.direction == Direction::Forward)
                .set_limit(query.items_max)
                .consistent_read(query.consistency == Consistency::Strong)
                .return_consumed_capacity(CAPACITY)
                .send()
                .await?;
            self.consumed(Kind::Read, answer.consumed_capacity());
            let more = answer.last_evaluated_key.is_some();
            let batches = answer.items.unwrap_or_default().into_iter().map(batch);
            Ok(Page { batches: batches.collect::<Result<_, _>>()?, more })
        })
    }

    fn write<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            self.meter.sent(Kind::Write);
            match (&write.calf, write.change) {
                (Some(calf), _) => self.calve(write, calf).await,
                (None, Change::Put) => self.put(write.tip.to_item()).await,
                (None, _) => self.update(&write.tip.stream, expressions(write)).await,
            }
        })
    }

    fn delete<'a>(
        &'a self,
        stream: &'a StreamName,
        calf: i64,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            self.meter.sent(Kind::Write);
            let delete = self.client.delete_item().table_name(&self.table);
            let delete = delete.set_key(Some(key(stream, calf))).return_consumed_capacity(CAPACITY);
            let answer = delete.send().await?;
            self.consumed(Kind::Write, answer.consumed_capacity());
            Ok(())
        })
    }

    fn streams(&self, after: Option<Item>) -> BoxFuture<'_, Result<Streams, Failure>> {
        Box::pin(async move {
            self.meter.sent(Kind::Read);
            let answer = self
                .client
                .scan()
                .table_name(&self.table)
                .projection_expression("p, n, c")
                .consistent_read(true)
                .set_exclusive_start_key(after)
                .return_consumed_capacity(CAPACITY)
                .send()
                .await?;
            self.consumed(Kind::Read, answer.consumed_capacity());
            let heads = answer.items.unwrap_or_default().into_iter().map(Head::of_item);
            Ok(Streams { heads: heads.collect(), next: answer.last_evaluated_key })
        })
    }
}
