//! The code of a careful person with only the SDK and `serde_dynamo`: the same requests to the byte, and nothing for
//! retries, limits, metering, lagging indexes or lost answers. It is also sent in Ringfence's way, which is the floor
//! of a command's cost.

use std::collections::HashMap;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, Put, ReturnConsumedCapacity,
    ReturnValuesOnConditionCheckFailure::AllOld, TransactWriteItem,
};
use catalog::add_product::AddProduct;
use catalog::change_product_name::ChangeProductName;
use futures::future::try_join_all;
use ordering::place_order::PlaceOrder;
use ringfence_aws::{Clock, Table};
use ringfence_core::Slice;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::store::EVENTS;

/// The copy of a fence that the order of the benchmark checks: its partition's hash chooses it.
const COPY: &str = "15";

/// The metadata of a traced command.
pub(crate) const METADATA: [(&str, &str); 4] = [
    ("causationId", "productId:product-0001/1"),
    ("commandId", "0190f3a1-0000-7000-8000-000000000003"),
    ("correlationId", "0190f3a1-0000-7000-8000-000000000001"),
    ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
];

/// A handwritten writer.
pub(crate) struct Bare {
    pub(crate) way: Way,
    pub(crate) clock: Clock,
}

/// The way of its requests.
pub(crate) enum Way {
    Sdk(Client),
    Floor(Table),
}

/// A tag of an event.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tag {
    pub(crate) key: String,
    pub(crate) value: String,
}

/// A stored event.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stored<D = Value> {
    pub(crate) id: String,
    pub(crate) position: u64,
    pub(crate) at: u64,
    pub(crate) append_id: String,
    pub(crate) event: String,
    pub(crate) context: String,
    pub(crate) tags: Vec<Tag>,
    pub(crate) data: D,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) causation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) command_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) correlation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) slice: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) traceparent: Option<String>,
}

/// The part that the decisions use.
#[derive(Deserialize)]
struct Read {
    position: u64,
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
        macro_rules! partition {
            ($query:expr) => {{
                let query = $query.key_condition_expression("#key = :key").consistent_read(false);
                let query = query.expression_attribute_names("#key", "id");
                query.expression_attribute_values(":key", text(id))
            }};
        }
        let page = match &self.way {
            Way::Sdk(client) => {
                let query = partition!(client.query().table_name(EVENTS));
                query.return_consumed_capacity(ReturnConsumedCapacity::Indexes).send().await?
            }
            Way::Floor(table) => table.query(|query| partition!(query)).await.expect("a page"),
        };
        Ok(page.items.unwrap_or_default())
    }

    /// Puts an event of a type, a context and a slice into this slot of its partition. Returns its id.
    async fn put(
        &self,
        position: u64,
        [event, context, slice]: [&str; 3],
        tags: Vec<Tag>,
        data: impl Serialize,
        checks: Vec<TransactWriteItem>,
    ) -> String {
        let append_id = self.clock.uuid().to_string();
        let id = format!("{}:{}", tags[0].key, tags[0].value);
        let [causation_id, command_id, correlation_id, traceparent] =
            METADATA.map(|(_, value)| Some(value.to_owned()));
        let (event, context) = (event.to_owned(), context.to_owned());
        let item = Stored {
            id: id.clone(),
            position,
            at: self.clock.now_ms(),
            append_id: append_id.clone(),
            event,
            context,
            tags,
            data,
            causation_id,
            command_id,
            correlation_id,
            slice: Some(slice.to_owned()),
            traceparent,
        };
        let item = serde_dynamo::to_item(item).expect("an event is a map");
        let condition = "attribute_not_exists(#id)";
        let put = Put::builder()
            .table_name(EVENTS)
            .set_item(Some(item))
            .condition_expression(condition)
            .expression_attribute_names("#id", "id")
            .return_values_on_condition_check_failure(AllOld)
            .build()
            .expect("table and item are set");
        match (&self.way, checks.is_empty()) {
            (Way::Floor(table), true) => table.put(put).await.expect("it is committed"),
            (Way::Sdk(client), true) => {
                let request = client
                    .put_item()
                    .table_name(put.table_name)
                    .set_item(Some(put.item))
                    .set_condition_expression(put.condition_expression)
                    .set_expression_attribute_names(put.expression_attribute_names)
                    .return_values_on_condition_check_failure(AllOld)
                    .return_consumed_capacity(ReturnConsumedCapacity::Indexes);
                request.send().await.expect("it is committed");
            }
            (way, false) => {
                let put = TransactWriteItem::builder().put(put).build();
                let actions = [put].into_iter().chain(checks).collect();
                match way {
                    Way::Floor(table) => {
                        table.transact(actions, append_id).await.expect("it is committed");
                    }
                    Way::Sdk(client) => {
                        let request = client
                            .transact_write_items()
                            .set_transact_items(Some(actions))
                            .client_request_token(append_id)
                            .return_consumed_capacity(ReturnConsumedCapacity::Indexes);
                        request.send().await.expect("it is committed");
                    }
                }
            }
        }
        format!("{id}/{position}")
    }
}

/// A handwritten `AddProduct`. Returns its id, or `None` if the product exists.
pub(crate) async fn add_product(bare: &Bare, command: &AddProduct) -> String {
    let product = command.product_id.to_string();
    let found = bare.query(format!("productId:{product}")).await.expect("a page");
    if !found.is_empty() {
        return String::new();
    }
    let tags = vec![tag("productId", product)];
    let of = ["ProductAdded", "catalog", AddProduct::NAME];
    bare.put(1, of, tags, command, Vec::new()).await
}

/// A handwritten `ChangeProductName`, which knows that the product has two events. Returns the id of the third.
pub(crate) async fn change_product_name(bare: &Bare, command: &ChangeProductName) -> String {
    let tags = vec![tag("productId", &command.product_id)];
    let of = ["ProductNameChanged", "catalog", ChangeProductName::NAME];
    bare.put(3, of, tags, command, Vec::new()).await
}

/// A handwritten `PlaceOrder`. Returns its id, or `None` if the order exists or a product does not.
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
        let slots = (1..).zip(&events).take_while(|(slot, read)| read.position == *slot);
        let synced = slots.filter(|(_, read)| {
            read.event == "CatalogProductSynced" && read.data.product_id == product.to_string()
        });
        let synced = synced.count();
        if synced == 0 {
            return String::new();
        }
        let check = ConditionCheck::builder()
            .table_name(EVENTS)
            .key("id", text(format!("fence#productId:{product}")))
            .key("position", AttributeValue::N(COPY.to_owned()))
            .condition_expression("#c0 = :n0 AND attribute_exists(#open)")
            .expression_attribute_names("#c0", "cnt#CatalogProductSynced")
            .expression_attribute_names("#open", "open")
            .expression_attribute_values(":n0", AttributeValue::N(synced.to_string()))
            .return_values_on_condition_check_failure(AllOld)
            .build()
            .expect("table, key and condition are set");
        checks.push(TransactWriteItem::builder().condition_check(check).build());
    }
    let products = command.product_ids.iter().map(|product| tag("productId", product));
    let tags = std::iter::once(tag("orderId", &command.order_id)).chain(products).collect();
    bare.put(1, ["OrderPlaced", "ordering", PlaceOrder::NAME], tags, command, checks).await
}
