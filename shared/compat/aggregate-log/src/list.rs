//! Listing aggregates by the index of their first events, and the token that continues a list.

use std::num::NonZeroU32;

use aws_sdk_dynamodb::operation::query::builders::QueryInputBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::Item;
use serde::{Deserialize, Serialize};

use crate::item::{
    AGGREGATE_ID, INITIAL_EVENTS, IS_INITIAL_EVENT, TIMESTAMP, VERSION, name_of, text, text_of,
};
use crate::layout::Of;
use crate::{
    AggregateError, AggregateKey, AggregatePage, AggregateTable, ListOptions, ListedAggregate,
};

/// A page token, in the JSON of the original: either writer continues a list that the other began.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Token {
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<NonZeroU32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    initial_event_after: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    initial_event_before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reverse: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_evaluated_key: Option<Key>,
}

/// The key of an index item: its attributes in DynamoDB's JSON.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Key {
    pub(crate) aggregate_id: Attribute,
    version: Attribute,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_store_id: Option<Attribute>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_initial_event: Option<Attribute>,
    pub(crate) timestamp: Attribute,
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum Attribute {
    S(String),
    N(String),
}

impl Attribute {
    fn of(value: &AttributeValue) -> Option<Self> {
        match value {
            AttributeValue::S(text) => Some(Self::S(text.clone())),
            AttributeValue::N(number) => Some(Self::N(number.clone())),
            _ => None,
        }
    }

    fn into_value(self) -> AttributeValue {
        match self {
            Self::S(text) => AttributeValue::S(text),
            Self::N(number) => AttributeValue::N(number),
        }
    }
}

impl Key {
    pub(crate) fn of(item: &Item) -> Option<Self> {
        let attribute = |name| item.get(name).and_then(Attribute::of);
        Some(Self {
            aggregate_id: attribute(AGGREGATE_ID)?,
            version: attribute(VERSION)?,
            event_store_id: attribute(crate::item::EVENT_STORE_ID),
            is_initial_event: attribute(IS_INITIAL_EVENT),
            timestamp: attribute(TIMESTAMP)?,
        })
    }

    fn into_item(self) -> Item {
        let attributes = [
            (AGGREGATE_ID, Some(self.aggregate_id)),
            (VERSION, Some(self.version)),
            (crate::item::EVENT_STORE_ID, self.event_store_id),
            (IS_INITIAL_EVENT, self.is_initial_event),
            (TIMESTAMP, Some(self.timestamp)),
        ];
        let present = attributes.into_iter().filter_map(|(name, value)| Some((name, value?)));
        present.map(|(name, value)| (name.to_owned(), value.into_value())).collect()
    }
}

/// The options of a page, and the key at which the token's page ended.
pub(crate) fn applied(list: &ListOptions) -> Result<(ListOptions, Option<Key>), AggregateError> {
    let token = match &list.page_token {
        None => Token::default(),
        Some(token) => serde_json::from_str(token)
            .map_err(|error| AggregateError::undecodable("the page token", error))?,
    };
    let after = list.initial_event_after.clone().or(token.initial_event_after);
    let before = list.initial_event_before.clone().or(token.initial_event_before);
    let applied = ListOptions {
        limit: list.limit.or(token.limit),
        page_token: None,
        initial_event_after: after,
        initial_event_before: before,
        reverse: list.reverse.or(token.reverse),
    };
    Ok((applied, token.last_evaluated_key))
}

/// The token that continues a list after `key`.
pub(crate) fn token(list: ListOptions, key: Key) -> String {
    let token = Token {
        limit: list.limit,
        initial_event_after: list.initial_event_after,
        initial_event_before: list.initial_event_before,
        reverse: list.reverse,
        last_evaluated_key: Some(key),
    };
    serde_json::to_string(&token).expect("a token is a map with text keys")
}

pub(crate) async fn page(
    table: &AggregateTable,
    of: Of,
    list: &ListOptions,
) -> Result<AggregatePage, AggregateError> {
    let (list, start) = applied(list)?;
    let bounds = (&list.initial_event_after, &list.initial_event_before);
    if let (Some(after), Some(before)) = bounds
        && after > before
    {
        return Ok(AggregatePage { aggregates: Vec::new(), next_page_token: None });
    }
    let start = start.map(Key::into_item);
    let query = || table.dynamo.query(|query| of_page(query, &of, &list, start.clone()));
    let page = table.retry.run(query).await;
    let page = page.map_err(|gave_up| gave_up.during("listing aggregates"))?;
    let aggregates = page.items.unwrap_or_default().iter().map(listed).collect::<Result<_, _>>()?;
    let key = page.last_evaluated_key.as_ref().and_then(Key::of);
    Ok(AggregatePage { aggregates, next_page_token: key.map(|key| token(list, key)) })
}

/// A legacy table has bare ids.
pub(crate) fn listed(item: &Item) -> Result<ListedAggregate, AggregateError> {
    let undecodable = |error| AggregateError::undecodable(name_of(item), error);
    let partition = text_of(item, AGGREGATE_ID).map_err(undecodable)?;
    let id = match item.contains_key(IS_INITIAL_EVENT) {
        true => partition.to_owned(),
        false => {
            let key = AggregateKey::of_partition(partition).map_err(Into::into);
            key.map_err(undecodable)?.id().to_owned()
        }
    };
    let timestamp = text_of(item, TIMESTAMP).map_err(undecodable)?.to_owned();
    Ok(ListedAggregate { id, initial_event_timestamp: timestamp })
}

fn of_page(
    query: QueryInputBuilder,
    of: &Of,
    list: &ListOptions,
    start: Option<Item>,
) -> QueryInputBuilder {
    let limit = list.limit.map(|limit| i32::try_from(limit.get()).unwrap_or(i32::MAX));
    let query = query
        .index_name(INITIAL_EVENTS)
        .scan_index_forward(!list.reverse.unwrap_or(false))
        .expression_attribute_names("#of", of.name)
        .expression_attribute_values(":of", of.value.clone())
        .set_limit(limit)
        .set_exclusive_start_key(start);
    let bounds = [
        (":after", &list.initial_event_after, "#timestamp >= :after"),
        (":before", &list.initial_event_before, "#timestamp <= :before"),
    ];
    let bounds: Vec<_> = bounds
        .into_iter()
        .filter_map(|(name, bound, test)| Some((name, bound.as_ref()?, test)))
        .collect();
    let query = match bounds.as_slice() {
        [] => query.key_condition_expression("#of = :of"),
        // DynamoDB allows one test of the sort key, so two bounds become one BETWEEN.
        [_, _] => {
            query.key_condition_expression("#of = :of AND #timestamp BETWEEN :after AND :before")
        }
        [(_, _, test), ..] => query.key_condition_expression(format!("#of = :of AND {test}")),
    };
    let query = match bounds.is_empty() {
        true => query,
        false => query.expression_attribute_names("#timestamp", TIMESTAMP),
    };
    bounds
        .into_iter()
        .fold(query, |query, (name, bound, _)| query.expression_attribute_values(name, text(bound)))
}
