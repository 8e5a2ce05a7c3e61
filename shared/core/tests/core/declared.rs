//! Value types accept exactly the JSON that they declare.

use proptest::prelude::*;
use regex_lite::Regex;
use ringfence_core::{Id, List, MailAddress, Text, id_type};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};

id_type!(OrderId, "names an order");

/// Whether a string or a list satisfies the schema of the type.
fn admits<T: JsonSchema>(value: &Value) -> bool {
    let settings = SchemaSettings::default().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let limit = |word: &str| schema.get(word).and_then(Value::as_u64);
    let within = |count: usize, least: &str, most: &str| {
        let count = count as u64;
        limit(least).is_none_or(|least| count >= least)
            && limit(most).is_none_or(|most| count <= most)
    };
    match value {
        Value::String(text) => {
            let pattern = schema.get("pattern").and_then(Value::as_str);
            within(text.chars().count(), "minLength", "maxLength")
                && pattern.is_none_or(|pattern| Regex::new(pattern).unwrap().is_match(text))
        }
        Value::Array(list) => within(list.len(), "minItems", "maxItems"),
        _ => panic!("{value} is neither"),
    }
}

fn takes<T: DeserializeOwned>(value: &Value) -> bool {
    from_value::<T>(value.clone()).is_ok()
}

proptest! {
    #[test]
    fn an_id_takes_what_it_declares(text in "[A-Za-z0-9._-]{0,70}|.{0,4}|[a#:/ \n]{1,3}") {
        let text = json!(text);
        prop_assert_eq!(takes::<Id>(&text), admits::<Id>(&text));
        prop_assert_eq!(takes::<OrderId>(&text), admits::<OrderId>(&text));
    }

    /// The schema counts characters, and the type counts bytes.
    #[test]
    fn a_text_takes_what_it_declares(text in "[a-z]{0,8}|.{0,8}") {
        let (is_ascii, text) = (text.is_ascii(), json!(text));
        let (takes, admits) = (takes::<Text<5>>(&text), admits::<Text<5>>(&text));
        prop_assert!(takes == admits || (admits && !is_ascii));
    }

    #[test]
    fn a_list_takes_what_it_declares(list in prop::collection::vec(any::<u8>(), 0..6)) {
        let list = json!(list);
        prop_assert_eq!(takes::<List<u8, 3>>(&list), admits::<List<u8, 3>>(&list));
    }

    /// Patterns can't describe all valid domains.
    #[test]
    fn an_address_that_is_taken_has_what_it_declares(
        text in "[a-c.+@\"]{1,8}|[a-z.]{1,70}@[a-cü.。-]{1,9}\\.(de|example)",
    ) {
        let text = json!(text);
        prop_assert!(admits::<MailAddress>(&text) || !takes::<MailAddress>(&text));
    }
}
