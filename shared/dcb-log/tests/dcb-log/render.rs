//! A transaction as a person reads it: one line for each of its parts, names and values put in
//! place of their aliases, random UUIDs made equal.

use std::collections::BTreeMap;
use std::fmt::Write;

use ringfence::canonical_json;
use ringfence_dynamo::wire::Exchange;
use serde_json::Value;

const FITS: &str = "a String takes every text";

/// The transaction of a request, checked for what all have in common.
pub(crate) fn transaction(exchange: &Exchange) -> String {
    let request = &exchange.request;
    assert_eq!(exchange.operation, "TransactWriteItems");
    assert_eq!(request["ReturnConsumedCapacity"], "INDEXES");
    let token = request["ClientRequestToken"].as_str().expect("a token");
    assert_eq!(token.len(), 36);
    let mut text = String::new();
    for action in request["TransactItems"].as_array().expect("actions") {
        let (kind, action) = action.as_object().and_then(|a| a.iter().next()).expect("an action");
        assert_eq!(action["TableName"], "events");
        assert_eq!(action["ReturnValuesOnConditionCheckFailure"], "ALL_OLD");
        let key = if kind == "Put" { &action["Item"] } else { &action["Key"] };
        writeln!(text, "{kind} {} {}", plain(&key["id"]), plain(&key["position"])).expect(FITS);
        writeln!(text, "  if {}", expression(action, "ConditionExpression")).expect(FITS);
        if kind == "Update" {
            writeln!(text, "  {}", expression(action, "UpdateExpression")).expect(FITS);
        }
        // Sorted here: whether maps keep an order depends on what else is built.
        let attributes: BTreeMap<_, _> = action["Item"].as_object().into_iter().flatten().collect();
        for (name, value) in attributes {
            if name != "id" && name != "position" {
                writeln!(text, "  {name}: {}", canonical_json(&plain(value))).expect(FITS);
            }
        }
    }
    without_uuids(&text)
}

/// The expression with its aliases replaced; a name that is no alias is an error.
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
        "N" => serde_json::from_str(value.as_str().expect("digits")).expect("a number"),
        "L" => value.as_array().expect("a list").iter().map(plain).collect(),
        "M" => {
            let map = value.as_object().expect("a map");
            map.iter().map(|(name, value)| (name.clone(), plain(value))).collect()
        }
        _ => value.clone(),
    }
}

/// Version 4 UUIDs behind a position's time become `<uuid>`.
fn without_uuids(text: &str) -> String {
    let mut parts = text.split("1719100800000-");
    let mut without = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        without.push_str("1719100800000-<uuid>");
        without.push_str(&part[36..]);
    }
    without
}
