//! Renders an append for a person: one line for each part, with names and values in place of their aliases, and
//! without the random id of the append.

use std::collections::BTreeMap;
use std::fmt::Write;

use ringfence_aws::wire::Exchange;
use ringfence_core::canonical_json;
use serde_json::{Value, json};

const FITS: &str = "a String takes every text";

/// Renders the put or the transaction of a request, and checks the parts that all appends share. Each event has the
/// id of its append, which is also the token of a transaction.
pub(crate) fn append(exchange: &Exchange) -> String {
    let request = &exchange.request;
    assert_eq!(request["ReturnConsumedCapacity"], "INDEXES");
    let (actions, append_id) = match exchange.operation.as_str() {
        "PutItem" => {
            let id = request["Item"]["appendId"]["S"].clone();
            (vec![json!({ "Put": request })], id)
        }
        "TransactWriteItems" => {
            let actions = request["TransactItems"].as_array().expect("actions");
            (actions.clone(), request["ClientRequestToken"].clone())
        }
        other => panic!("{other} appends nothing"),
    };
    assert_eq!(append_id.as_str().map(str::len), Some(36));
    let mut text = String::new();
    for action in &actions {
        let (kind, action) = action.as_object().and_then(|a| a.iter().next()).expect("an action");
        assert_eq!(action["TableName"], "events");
        assert_eq!(action["ReturnValuesOnConditionCheckFailure"], "ALL_OLD");
        let key = if kind == "Put" { &action["Item"] } else { &action["Key"] };
        writeln!(text, "{kind} {} {}", plain(&key["id"]), plain(&key["position"])).expect(FITS);
        if !action["ConditionExpression"].is_null() {
            writeln!(text, "  if {}", expression(action, "ConditionExpression")).expect(FITS);
        }
        if kind == "Update" {
            writeln!(text, "  {}", expression(action, "UpdateExpression")).expect(FITS);
        }
        // Sorted here, because the order of maps depends on the features of other crates in the build.
        let attributes: BTreeMap<_, _> = action["Item"].as_object().into_iter().flatten().collect();
        for (name, value) in attributes {
            if name == "appendId" {
                assert_eq!(value["S"], append_id);
            } else if name != "id" && name != "position" {
                writeln!(text, "  {name}: {}", canonical_json(&plain(value))).expect(FITS);
            }
        }
    }
    text
}

/// The expression without aliases. A name that is not an alias is an error.
fn expression(action: &Value, which: &str) -> String {
    const WORDS: [&str; 8] = ["SET", "ADD", "AND", "OR", "attribute_not_exists", "=", "<", ""];
    let expression = action[which].as_str().expect("an expression");
    let mut replaced = String::new();
    for part in expression.split_inclusive([' ', '(', ')', ',']) {
        let word = part.trim_end_matches([' ', '(', ')', ',']);
        let with = match word.chars().next() {
            Some('#') => action["ExpressionAttributeNames"][word].as_str().expect(word).to_owned(),
            Some(':') => plain(&action["ExpressionAttributeValues"][word]).to_string(),
            _ => {
                assert!(WORDS.contains(&word), "{word} in {expression}");
                word.to_owned()
            }
        };
        replaced.push_str(&with);
        replaced.push_str(&part[word.len()..]);
    }
    replaced
}

/// The JSON of an attribute value.
pub(crate) fn plain(attribute: &Value) -> Value {
    let (kind, value) = attribute.as_object().and_then(|a| a.iter().next()).expect("an attribute");
    match kind.as_str() {
        // Keeps the digits as written: a JSON number has fewer digits than a position.
        "N" => match value.as_str().expect("digits").parse::<u64>() {
            Ok(number) => number.into(),
            Err(_) => value.clone(),
        },
        "L" => value.as_array().expect("a list").iter().map(plain).collect(),
        "M" => {
            let map = value.as_object().expect("a map");
            map.iter().map(|(name, value)| (name.clone(), plain(value))).collect()
        }
        _ => value.clone(),
    }
}
