//! Requests and answers of DynamoDB, in JSON.

use ringfence_core::storable::{CONTAINER_BYTES, ELEMENT_BYTES, number_bytes};
use serde_json::{Map, Value, json};

const WHY: &str = "Throughput exceeds the current capacity of your table or index.";

/// The table of a request, of an action or of a report.
pub(super) fn table(of: &Value) -> &str {
    of["TableName"].as_str().unwrap_or_default()
}

/// The action in a part of a transaction or of a batch.
pub(super) fn action(part: &Value) -> &Value {
    part.as_object().and_then(|part| part.values().next()).unwrap_or(&Value::Null)
}

/// The item that is put, or the key.
pub(super) fn item(of: &Value) -> Value {
    of.get("Item").unwrap_or(&of["Key"]).clone()
}

/// The value of an attribute that the condition of a query asks for.
pub(super) fn asked<'q>(query: &'q Value, attribute: &str) -> Option<&'q Value> {
    let condition = query["KeyConditionExpression"].as_str()?.replace('=', " = ");
    let condition: Vec<&str> =
        condition.split([' ', '(', ')']).filter(|word| !word.is_empty()).collect();
    let names = &query["ExpressionAttributeNames"];
    let value = condition.windows(3).find_map(|words| {
        let is_it = words[0] == attribute || names[words[0]].as_str() == Some(attribute);
        (is_it && words[1] == "=").then_some(words[2])
    })?;
    query["ExpressionAttributeValues"].get(value)
}

/// Takes the refused items out of a batch. Returns them in the form of unprocessed ones.
pub(super) fn leave_out(batch: &mut Value, refusals: &[Option<Value>]) -> Map<String, Value> {
    let mut refusals = refusals.iter();
    let mut left = Map::new();
    let Some(tables) = batch["RequestItems"].as_object_mut() else { return left };
    for (table, of_table) in tables.iter_mut() {
        let mut rest = of_table.clone();
        let [of_table, out] = [of_table, &mut rest].map(|of| match of.get("Keys").is_some() {
            true => &mut of["Keys"],
            false => of,
        });
        let (Some(items), Some(out)) = (of_table.as_array_mut(), out.as_array_mut()) else {
            continue;
        };
        *out = items.extract_if(.., |_| refusals.next().is_some_and(Option::is_some)).collect();
        if !out.is_empty() {
            left.insert(table.clone(), rest);
        }
    }
    tables.retain(|_, of_table| {
        let items = of_table.get("Keys").unwrap_or(of_table);
        items.as_array().is_none_or(|items| !items.is_empty())
    });
    left
}

/// The answer to a request with refused items.
pub(super) fn refused(operation: &str, refusals: &[Option<Value>]) -> (u16, Vec<u8>) {
    let reason = |refusal: &Option<Value>| match refusal {
        None => json!({ "Code": "None" }),
        Some(_) => json!({ "Code": "ThrottlingError", "Message": WHY }),
    };
    let (kind, name, reasons): (_, _, Vec<_>) = match operation.starts_with("Transact") {
        true => {
            let reasons = refusals.iter().map(reason).collect();
            ("TransactionCanceledException", "CancellationReasons", reasons)
        }
        false => {
            let reasons = refusals.iter().flatten().cloned().collect();
            ("ThrottlingException", "throttlingReasons", reasons)
        }
    };
    let kind = format!("com.amazonaws.dynamodb.v20120810#{kind}");
    let answer = json!({ "__type": kind, "message": WHY, name: reasons });
    (400, answer.to_string().into_bytes())
}

/// The size of an item in bytes.
pub(super) fn item_bytes(item: &Map<String, Value>) -> usize {
    item.iter().map(|(name, value)| name.len() + value_bytes(value)).sum()
}

fn value_bytes(value: &Value) -> usize {
    let Some((kind, of)) = value.as_object().and_then(|value| value.iter().next()) else {
        return 0;
    };
    match (kind.as_str(), of) {
        ("S", Value::String(text)) => text.len(),
        ("N", Value::String(number)) => number_bytes(number),
        ("B", Value::String(base64)) => base64.len() / 4 * 3,
        ("L", Value::Array(list)) => {
            CONTAINER_BYTES
                + list.iter().map(|value| ELEMENT_BYTES + value_bytes(value)).sum::<usize>()
        }
        ("M", Value::Object(map)) => CONTAINER_BYTES + map.len() * ELEMENT_BYTES + item_bytes(map),
        (_, Value::Array(set)) => set.iter().filter_map(Value::as_str).map(str::len).sum(),
        _ => 1,
    }
}
