//! What a careful person writes with the SDK and `serde_dynamo` alone: the same requests to the
//! byte, and nothing for retries, limits, metering, lagging indexes or lost answers.

use std::collections::HashMap;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, Put, ReturnConsumedCapacity,
    ReturnValuesOnConditionCheckFailure::AllOld, TransactWriteItem, Update,
};
use catalog::add_product::AddProduct;
use futures::future::try_join_all;
use ordering::place_order::PlaceOrder;
use ringfence_dynamo::{Clock, rfc3339};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::commands::METADATA;
use crate::store::EVENTS;

/// A writer by hand.
pub(crate) struct Bare {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
}

/// A tag of an event.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tag {
    pub(crate) key: String,
    pub(crate) value: String,
}

/// An event as it is stored.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stored<D = Value> {
    pub(crate) id: String,
    pub(crate) position: String,
    pub(crate) event: String,
    pub(crate) context: String,
    pub(crate) tags: Vec<Tag>,
    pub(crate) data: D,
    pub(crate) recorded_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) causation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) command_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) correlation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) traceparent: Option<String>,
}

/// What the decisions look at.
#[derive(Deserialize)]
struct Read {
    event: String,
    data: Synced,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Synced {
    product_id: String,
}

type Failed = aws_sdk_dynamodb::Error;
type Item = HashMap<String, AttributeValue>;

fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

fn tag(key: &str, value: impl ToString) -> Tag {
    Tag { key: key.to_owned(), value: value.to_string() }
}

impl Bare {
    async fn query(&self, id: String) -> Result<Vec<Item>, Failed> {
        let request = self.client.query().table_name(EVENTS);
        let request = request.key_condition_expression("#key = :key").consistent_read(false);
        let request = request.expression_attribute_names("#key", "id");
        let request = request.expression_attribute_values(":key", text(id));
        let request = request.return_consumed_capacity(ReturnConsumedCapacity::Indexes);
        Ok(request.send().await?.items.unwrap_or_default())
    }

    /// Puts an event of a type that its partition does not have yet, and returns its position.
    async fn put(
        &self,
        event: &str,
        context: &str,
        tags: Vec<Tag>,
        data: impl Serialize,
        checks: impl Iterator<Item = TransactWriteItem>,
    ) -> String {
        let now_ms = self.clock.now_ms();
        let position = format!("{now_ms:013}-{}", self.clock.uuid());
        let token = self.clock.uuid().to_string();
        let id = format!("{}:{}", tags[0].key, tags[0].value);
        let fence = format!("fence#{id}");
        let [causation_id, command_id, correlation_id, traceparent] =
            METADATA.map(|(_, value)| Some(value.to_owned()));
        let (event, context) = (event.to_owned(), context.to_owned());
        let count = format!("cnt#{event}");
        let newest = format!("pos#{event}");
        let recorded_at = rfc3339(now_ms);
        let item = Stored {
            id,
            position: position.clone(),
            event,
            context,
            tags,
            data,
            recorded_at,
            causation_id,
            command_id,
            correlation_id,
            traceparent,
        };
        let put = Put::builder()
            .table_name(EVENTS)
            .set_item(Some(serde_dynamo::to_item(item).expect("an event is a map")))
            .condition_expression("attribute_not_exists(#id)")
            .expression_attribute_names("#id", "id")
            .return_values_on_condition_check_failure(AllOld)
            .build()
            .expect("table and item are set");
        let update = Update::builder()
            .table_name(EVENTS)
            .key("id", text(fence))
            .key("position", text("FENCE"))
            .update_expression("SET #p0 = :p0, #head = :head ADD #c0 :k0")
            .condition_expression(
                "attribute_not_exists(#c0) AND (attribute_not_exists(#head) OR #head < :first)",
            )
            .expression_attribute_names("#c0", count)
            .expression_attribute_names("#p0", newest)
            .expression_attribute_names("#head", "head")
            .expression_attribute_values(":p0", text(&position))
            .expression_attribute_values(":head", text(&position))
            .expression_attribute_values(":first", text(&position))
            .expression_attribute_values(":k0", AttributeValue::N("1".to_owned()))
            .return_values_on_condition_check_failure(AllOld)
            .build()
            .expect("table, key and expression are set");
        let put = TransactWriteItem::builder().put(put).build();
        let update = TransactWriteItem::builder().update(update).build();
        let actions = [put, update].into_iter().chain(checks).collect();
        self.client
            .transact_write_items()
            .set_transact_items(Some(actions))
            .client_request_token(token)
            .return_consumed_capacity(ReturnConsumedCapacity::Indexes)
            .send()
            .await
            .expect("it is committed");
        position
    }
}

/// `AddProduct` by hand: the event's position, empty if the product exists.
pub(crate) async fn add_product(bare: &Bare, command: &AddProduct) -> String {
    let product = command.product_id.to_string();
    let found = bare.query(format!("productId:{product}")).await.expect("a page");
    if !found.is_empty() {
        return String::new();
    }
    let tags = vec![tag("productId", product)];
    bare.put("ProductAdded", "catalog", tags, command, std::iter::empty()).await
}

/// `PlaceOrder` by hand: the event's position, empty if the order exists or a product does not.
pub(crate) async fn place_order(bare: &Bare, command: &PlaceOrder) -> String {
    let order = format!("orderId:{}", command.order_id);
    let products = command.product_ids.iter().map(|product| format!("productId:{product}"));
    let queries = std::iter::once(order).chain(products).map(|id| bare.query(id));
    let mut pages = try_join_all(queries).await.expect("pages").into_iter();
    if pages.next().is_none_or(|order| !order.is_empty()) {
        return String::new();
    }
    let mut checks = Vec::new();
    for (product, items) in command.product_ids.iter().zip(pages) {
        let events: Vec<Read> = serde_dynamo::from_items(items).expect("events");
        let seen = events.iter().filter(|read| {
            read.event == "CatalogProductSynced" && read.data.product_id == product.to_string()
        });
        let seen = seen.count();
        if seen == 0 {
            return String::new();
        }
        let check = ConditionCheck::builder()
            .table_name(EVENTS)
            .key("id", text(format!("fence#productId:{product}")))
            .key("position", text("FENCE"))
            .condition_expression("#c0 = :n0")
            .expression_attribute_names("#c0", "cnt#CatalogProductSynced")
            .expression_attribute_values(":n0", AttributeValue::N(seen.to_string()))
            .return_values_on_condition_check_failure(AllOld)
            .build()
            .expect("table, key and condition are set");
        checks.push(TransactWriteItem::builder().condition_check(check).build());
    }
    let products = command.product_ids.iter().map(|product| tag("productId", product));
    let tags = std::iter::once(tag("orderId", &command.order_id)).chain(products).collect();
    bare.put("OrderPlaced", "ordering", tags, command, checks.into_iter()).await
}
