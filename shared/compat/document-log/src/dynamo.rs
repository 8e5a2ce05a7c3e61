//! The requests to DynamoDB.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::query::builders::QueryInputBuilder;
use aws_sdk_dynamodb::operation::scan::builders::ScanInputBuilder;
use aws_sdk_dynamodb::types::builders::PutBuilder;
use aws_sdk_dynamodb::types::{
    AttributeValue, Put, ReturnValuesOnConditionCheckFailure, StreamViewType, TransactWriteItem,
    Update,
};
use futures::future::BoxFuture;
use ringfence_aws::{Clock, Failure, Item, Meter, Table, TableLayout, number_key, text_key};
use ringfence_core::Consistency;

use crate::attributes::{I, P};
use crate::batch::{TIP_KEY, event_list, key, number, type_list, unfold_list};
use crate::{
    Batch, Direction, Expect, Head, ItemPage, ItemQuery, Store, StreamName, Streams, TipChange,
    Write,
};

/// Every failed condition returns the Tip that was found, so that a conflict needs no read.
const FOUND: ReturnValuesOnConditionCheckFailure = ReturnValuesOnConditionCheckFailure::AllOld;

/// The table for the streams of any categories.
#[must_use]
pub fn table_layout() -> TableLayout {
    TableLayout {
        keys: vec![text_key(P), number_key(I)],
        indexes: Vec::new(),
        stream: Some(StreamViewType::NewImage),
        expires_at: None,
    }
}

/// Streams in one DynamoDB table: key `p` (S) and `i` (N).
#[derive(Clone, Debug)]
pub struct DynamoStore {
    table: Table,
}

impl DynamoStore {
    /// The streams in `table`. The client's own retries must be off
    /// ([`ringfence_aws::client_from_env`]), so that every attempt is counted once.
    #[must_use]
    pub fn new(client: Client, table: impl Into<String>) -> Self {
        Self { table: Table::new(client, table, &Clock::system()) }
    }

    /// The cost of this store's requests so far.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        self.table.meter()
    }

    fn put(&self, item: Item) -> PutBuilder {
        let put = Put::builder().table_name(self.table.name()).set_item(Some(item));
        put.condition_expression("attribute_not_exists(i)")
    }

    fn update(&self, write: &Write) -> Update {
        let Expressions { update, condition, values } = expressions(write);
        Update::builder()
            .table_name(self.table.name())
            .set_key(Some(key(&write.tip.stream, TIP_KEY)))
            .update_expression(update)
            .condition_expression(condition)
            .set_expression_attribute_values(Some(values))
            .return_values_on_condition_check_failure(FOUND)
            .build()
            .expect("table, key and expression are set")
    }
}

struct Expressions {
    update: String,
    condition: &'static str,
    values: Item,
}

/// An append sends only new events, not the events of the Tip.
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
        TipChange::Keep => None,
        TipChange::Extend(added) => {
            update.push_str(", n = :n, e = list_append(e, :e), c = list_append(c, :c)");
            Some(&tip.events[tip.events.len() - added..])
        }
        TipChange::Put | TipChange::Replace => {
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

/// The batch of an answer's item. Another request can't mend an item that is not a batch.
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
            let strong = consistency == Consistency::Strong;
            let tip = self.table.get(key(stream, TIP_KEY), strong).await?;
            tip.map(batch).transpose()
        })
    }

    fn query<'a>(&'a self, query: ItemQuery<'a>) -> BoxFuture<'a, Result<ItemPage, Failure>> {
        Box::pin(async move {
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
            let of_query = |request: QueryInputBuilder| {
                request
                    .key_condition_expression(condition)
                    .set_expression_attribute_values(Some(values))
                    .scan_index_forward(query.direction == Direction::Forward)
                    .set_limit(query.items_max)
                    .consistent_read(query.consistency == Consistency::Strong)
            };
            let answer = self.table.query(of_query).await?;
            let more = answer.last_evaluated_key.is_some();
            let batches = answer.items.unwrap_or_default().into_iter().map(batch);
            Ok(ItemPage { batches: batches.collect::<Result<_, _>>()?, more })
        })
    }

    fn write<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            match (&write.calf, write.change) {
                (Some(calf), _) => {
                    let calf = self.put(calf.to_item()).build().expect("table and item are set");
                    let calf = TransactWriteItem::builder().put(calf).build();
                    let tip = TransactWriteItem::builder().update(self.update(write)).build();
                    let token = write.tip.etag.as_deref().unwrap_or_default();
                    self.table.transact(vec![calf, tip], token).await
                }
                (None, TipChange::Put) => {
                    let tip = self.put(write.tip.to_item());
                    let tip = tip.return_values_on_condition_check_failure(FOUND).build();
                    self.table.put(tip.expect("table and item are set")).await
                }
                (None, _) => self.table.update(self.update(write), None).await.map(drop),
            }
        })
    }

    fn delete<'a>(
        &'a self,
        stream: &'a StreamName,
        calf: i64,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(self.table.delete_for_good(key(stream, calf)))
    }

    fn streams(&self, after: Option<Item>) -> BoxFuture<'_, Result<Streams, Failure>> {
        Box::pin(async move {
            let scan = |scan: ScanInputBuilder| {
                scan.projection_expression("p, n, c")
                    .consistent_read(true)
                    .set_exclusive_start_key(after)
            };
            let answer = self.table.scan(scan).await?;
            let heads = answer.items.unwrap_or_default().into_iter().map(Head::of_item);
            Ok(Streams { heads: heads.collect(), next: answer.last_evaluated_key })
        })
    }
}
