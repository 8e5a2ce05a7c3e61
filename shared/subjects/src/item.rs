//! The items of the table of keys. Only this module names their attributes.

use std::collections::HashMap;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, Put, ReturnValuesOnConditionCheckFailure};
use ringfence_aws::Item;

use crate::record::{Fence, Record, WrappedKey};
use crate::rotation::{StackKey, StackRecord};

/// The key attribute: `subject#<id>`, `branch` or `blind`.
pub(crate) const P: &str = "p";
const SUBJECT: &str = "subject#";
/// The number of the newest key of a subject.
const K: &str = "k";
/// The key of a subject under its number, wrapped by a branch key. The keys of the stack under their numbers, wrapped by
/// KMS or a file, each with its time.
const KEYS: &str = "keys";
const KEY: &str = "key";
const MADE_AT: &str = "madeAt";
const FORGOTTEN_AT: &str = "forgottenAt";
const PUT_AT: &str = "putAt";
const THROUGH: &str = "through";
const WHY: &str = "why";
const FINGERPRINTS: &str = "fingerprints";
const AGAIN: &str = "again";
/// All attributes of a subject but its key attribute.
const OF_SUBJECT: [&str; 9] =
    [K, KEYS, MADE_AT, FORGOTTEN_AT, PUT_AT, THROUGH, WHY, FINGERPRINTS, AGAIN];

/// An item that does not have its form.
#[derive(Debug, thiserror::Error)]
#[error(
    "the item {p}: the attribute `{attribute}` is missing or wrong; restore it from a backup of the table"
)]
pub(crate) struct WrongItem {
    p: String,
    attribute: &'static str,
}

/// The key of a subject's item.
pub(crate) fn subject_key(subject: &str) -> Item {
    key(format!("{SUBJECT}{subject}"))
}

/// The key of the item `p`.
pub(crate) fn key(p: impl Into<String>) -> Item {
    Item::from([(P.to_owned(), text(p))])
}

/// The item of a subject.
pub(crate) fn subject_item(subject: &str, record: &Record) -> Item {
    let mut item = subject_key(subject);
    let mut set = |name: &str, value| item.insert(name.to_owned(), value);
    if let Some(WrappedKey { number: k, wrapped, made_at_ms }) = &record.key {
        set(K, number(*k));
        set(KEYS, AttributeValue::M(HashMap::from([(k.to_string(), blob(wrapped))])));
        set(MADE_AT, number(*made_at_ms));
    }
    if let Some(Fence { forgotten_at_ms, put_at_ms, through, why, fingerprints, again }) =
        &record.fence
    {
        let fingerprints = fingerprints.iter().map(text).collect();
        set(FORGOTTEN_AT, number(*forgotten_at_ms));
        set(PUT_AT, number(*put_at_ms));
        set(THROUGH, number(*through));
        set(WHY, text(why));
        set(FINGERPRINTS, AttributeValue::L(fingerprints));
        if *again {
            set(AGAIN, AttributeValue::Bool(true));
        }
    }
    item
}

/// The subject of an item, and what the item says about it.
pub(crate) fn subject_of(item: &Item) -> Result<(String, Record), WrongItem> {
    let p = name_of(item);
    let wrong = |attribute| WrongItem { p: p.clone(), attribute };
    let subject = p.strip_prefix(SUBJECT).ok_or_else(|| wrong(P))?;
    let has = |name| item.contains_key(name);
    let key = has(K).then(|| key_of(item)).transpose().map_err(wrong)?;
    let fence = has(THROUGH).then(|| fence_of(item)).transpose().map_err(wrong)?;
    match (&key, &fence) {
        (None, None) => Err(wrong(K)),
        _ => Ok((subject.to_owned(), Record { key, fence })),
    }
}

fn key_of(item: &Item) -> Result<WrappedKey, &'static str> {
    let number: u64 = parsed(item, K)?;
    let wrapped = item.get(KEYS).and_then(|keys| keys.as_m().ok()?.get(&number.to_string()));
    let wrapped = wrapped.and_then(|key| key.as_b().ok()).ok_or(KEYS)?.as_ref().to_vec();
    Ok(WrappedKey { number, wrapped, made_at_ms: parsed(item, MADE_AT)? })
}

fn fence_of(item: &Item) -> Result<Fence, &'static str> {
    let text = |value: &AttributeValue| value.as_s().ok().cloned();
    let fingerprints = item.get(FINGERPRINTS).and_then(|list| list.as_l().ok());
    let fingerprints = fingerprints.and_then(|list| list.iter().map(text).collect());
    Ok(Fence {
        forgotten_at_ms: parsed(item, FORGOTTEN_AT)?,
        put_at_ms: parsed(item, PUT_AT)?,
        through: parsed(item, THROUGH)?,
        why: item.get(WHY).and_then(text).ok_or(WHY)?,
        fingerprints: fingerprints.ok_or(FINGERPRINTS)?,
        again: item.contains_key(AGAIN),
    })
}

/// The item of the keys of the stack for a purpose.
pub(crate) fn stack_item(p: &str, StackRecord(keys): &StackRecord) -> Item {
    let key_item = |StackKey { wrapped, made_at_ms }: &StackKey| {
        let made_at = (MADE_AT.to_owned(), number(made_at_ms));
        AttributeValue::M(HashMap::from([(KEY.to_owned(), blob(wrapped)), made_at]))
    };
    let keys = keys.iter().map(|(number, key)| (number.to_string(), key_item(key)));
    let mut item = key(p);
    item.insert(KEYS.to_owned(), AttributeValue::M(keys.collect()));
    item
}

/// The keys of the stack in an item.
pub(crate) fn stack_record_of(item: &Item) -> Result<StackRecord, WrongItem> {
    let key_of = |(number, key): (&String, &AttributeValue)| {
        let key = key.as_m().ok()?;
        let wrapped = key.get(KEY)?.as_b().ok()?.as_ref().to_vec();
        let made_at_ms = parsed(key, MADE_AT).ok()?;
        Some((number.parse().ok()?, StackKey { wrapped, made_at_ms }))
    };
    let keys = item.get(KEYS).and_then(|keys| keys.as_m().ok());
    let keys = keys.and_then(|keys| keys.iter().map(key_of).collect()).map(StackRecord);
    keys.ok_or_else(|| WrongItem { p: name_of(item), attribute: KEYS })
}

fn name_of(item: &Item) -> String {
    item.get(P).and_then(|p| p.as_s().ok()).cloned().unwrap_or_default()
}

/// Puts an item, if the one in its place still is as it was read. Otherwise the failure has the other one.
pub(crate) fn put(table: &str, item: Item, read: Option<&Item>) -> Put {
    let mut put = Put::builder()
        .table_name(table)
        .set_item(Some(item))
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
    let Some(read) = read else {
        let put = put.condition_expression(format!("attribute_not_exists({P})"));
        return put.build().expect("table and item are set");
    };
    let mut conditions = Vec::new();
    for (n, name) in OF_SUBJECT.into_iter().enumerate() {
        put = put.expression_attribute_names(format!("#{n}"), name);
        conditions.push(match read.get(name) {
            Some(value) => {
                put = put.expression_attribute_values(format!(":{n}"), value.clone());
                format!("#{n} = :{n}")
            }
            None => format!("attribute_not_exists(#{n})"),
        });
    }
    let put = put.condition_expression(conditions.join(" AND "));
    put.build().expect("table and item are set")
}

fn text(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

fn number(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

fn blob(bytes: &[u8]) -> AttributeValue {
    AttributeValue::B(Blob::new(bytes))
}

fn parsed<N: std::str::FromStr>(item: &Item, name: &'static str) -> Result<N, &'static str> {
    item.get(name).and_then(|value| value.as_n().ok()?.parse().ok()).ok_or(name)
}
