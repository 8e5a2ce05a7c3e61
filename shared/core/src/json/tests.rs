use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::log::storable;

/// The limit of a command.
const LEVELS: usize = storable::LEVELS_MAX;

#[track_caller]
fn check(text: &str, expected: Value) {
    assert_eq!(read(text, LEVELS), Ok(expected), "{text}");
}

#[track_caller]
fn refuse(text: &str, expected: &str) {
    let error = read(text, LEVELS).expect_err(text).to_string();
    assert!(error.starts_with(expected), "{text}: {error}");
}

#[test]
fn json_is_read_as_it_is() {
    check(
        "\r\n {\"a\" : [ 1\t,{\"b\":null}, \"\\u00e9\\n\\\\\", true , false],\"\": { },\"c\":[ ] } ",
        json!({ "a": [1, { "b": null }, "é\n\\", true, false], "": {}, "c": [] }),
    );
    check(r#"[{"a": 1}, {"a": 2}]"#, json!([{ "a": 1 }, { "a": 2 }]));
    check(" 7 ", json!(7));
    check(r#""a, \"b\"]""#, json!("a, \"b\"]"));
}

#[test]
fn a_key_that_is_given_twice_is_named_at_any_depth() {
    refuse(r#"{"a": 1, "b": 2, "a": 1}"#, "a: is given twice");
    refuse(r#"{"a": [0, {"b": {"c": 1, "c": 2}}]}"#, "a[1].b.c: is given twice");
    refuse(r#"{"": 1, "": 2}"#, r#""": is given twice"#);
    refuse(r#"{"a": {"": [{"": 1, "": 2}]}}"#, r#"a.""[0]."": is given twice"#);
    // The same key in two notations.
    refuse(r#"{"a": 1, "\u0061": 2}"#, "a: is given twice");
}

#[test]
fn a_number_is_kept_or_refused() {
    for text in [
        "0",
        "-0",
        "-0.0",
        "0e999999999999999999999",
        "7",
        "18446744073709551615",
        "-9223372036854775808",
        "0.1",
        "0.10",
        "1.0",
        "1e2",
        "1E+2",
        "1.5e-7",
        "-1e22",
        "10000000000000000000000",
        "0.30000000000000004",
        "1.7976931348623157e308",
        "5e-324",
    ] {
        let number = read(text, LEVELS).expect(text);
        assert_eq!(number.as_f64(), text.parse().ok(), "{text}");
        assert_eq!(kept_number(&json!({ NUMBER: text })), None, "{text}");
    }
    // In JSON Schema these are integers, so a field of integers takes them.
    for (text, integer) in [("1250.0", 1250), ("1.25e3", 1250), ("-0.0", 0), ("-2E+2", -200)] {
        assert_eq!(read(text, LEVELS), Ok(json!(integer)), "{text}");
    }
    assert_eq!(read("18446744073709551615.0", LEVELS), Ok(json!(u64::MAX)));
    assert_eq!(read("1250.5", LEVELS), Ok(json!(1250.5)));
    for text in [
        "18446744073709551617",
        "-9223372036854775809",
        "12345678901234567890.5",
        "0.12345678901234567890",
        "1e400",
        "-1e400",
        "1e-400",
        "1e99999999999999999999",
        "3.141592653589793238",
        "9007199254740993.1",
        "1584097275961.1234",
    ] {
        let list = format!(r#"{{"a":[{text}]}}"#);
        refuse(&list, "a[0]: is a number that can't be kept");
        let stored = read_stored(&list).expect(text);
        assert_eq!(stored, json!({ "a": [{ NUMBER: text }] }));
        serde_json::from_value::<f64>(stored["a"][0].clone())
            .expect_err("a type takes no other number");
        assert_eq!(stored_text(&stored), list);
        // It is an object in a text as well, so a line of an export can be read again.
        check(&stored.to_string(), stored);
    }
    for other in ["", "-", "01", "1.", ".5", "+1", "1e", "1e+", "NaN", "inf", "1 ", "0x1"] {
        assert_eq!(kept_number(&json!({ NUMBER: other })), None, "{other}");
    }
    let other = json!({ NUMBER: "1e400", "b": 1 });
    assert_eq!(stored_text(&other), other.to_string());
}

#[test]
fn nesting_is_bounded() {
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels - 1), "]".repeat(levels - 1));
    assert!(read(&nested(LEVELS), LEVELS).is_ok());
    refuse(&nested(LEVELS + 1), "[0][0]");
    assert!(read_stored(&nested(LEVELS_MAX)).is_ok());
    let error = read_stored(&nested(100_000)).expect_err("too deep");
    assert_eq!(error.problem, "nests deeper than 127 levels");
}

#[test]
fn text_that_is_not_json_is_refused_with_the_place_of_the_error() {
    refuse("{", "is not JSON: EOF while parsing an object at line 1 column 1");
    refuse("{} x", "is not JSON: trailing characters at line 1 column 4");
    refuse("", "is not JSON: EOF while parsing a value");
    refuse(r#"{"a": "\ud800"}"#, "a: is not JSON: ");
    refuse("\u{feff}{}", "begins with a byte order mark; send UTF-8 without one");
}

/// A number in any notation.
fn number() -> impl Strategy<Value = String> {
    let exponent = prop_oneof![Just(String::new()), "[eE][+-]?[0-9]{1,3}"];
    ("-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,24})?", exponent).prop_map(|(it, exp)| it + &exp)
}

/// Any JSON, as a value whose numbers are texts after `#`.
fn document() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        ".{0,6}".prop_map(|text| format!("\"{text}")),
        "[\\\\\"/{}\\[\\],: \u{e9}]{0,6}"
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        text.prop_map(Value::from),
        number().prop_map(|text| json!(format!("#{text}"))),
    ];
    leaf.prop_recursive(4, 24, 4, |inside| {
        prop_oneof![
            prop::collection::vec(inside.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(".{0,3}", inside, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Writes such a document as text. Returns whether every number of it fits.
fn written(document: &Value, text: &mut String) -> bool {
    match document {
        Value::String(number) if number.starts_with('#') => {
            text.push_str(&number[1..]);
            whole(&number[1..]).or_else(|| fitting(&number[1..])).is_some()
        }
        Value::Array(list) => {
            text.push('[');
            let mut fit = true;
            for (n, value) in list.iter().enumerate() {
                text.push_str(if n > 0 { " , " } else { " " });
                fit &= written(value, text);
            }
            text.push(']');
            fit
        }
        Value::Object(fields) => {
            text.push('{');
            let mut fit = true;
            for (n, (name, value)) in fields.iter().enumerate() {
                text.push_str(if n > 0 { ",\n" } else { "" });
                text.push_str(&json!(name).to_string());
                text.push_str(" : ");
                fit &= written(value, text);
            }
            text.push('}');
            fit
        }
        other => {
            text.push_str(&other.to_string());
            true
        }
    }
}

/// Panics unless `read` has the values of `document`, each number with all of its digits.
fn same(document: &Value, read: &Value) -> Result<(), TestCaseError> {
    match (document, read) {
        (Value::String(number), read) if number.starts_with('#') => {
            let number = &number[1..];
            let text = kept_number(read).map_or_else(|| read.to_string(), str::to_owned);
            prop_assert_eq!(Digits::of(number), Digits::of(&text));
        }
        (Value::Array(list), Value::Array(read)) => {
            prop_assert_eq!(list.len(), read.len());
            list.iter().zip(read).try_for_each(|(value, read)| same(value, read))?;
        }
        (Value::Object(fields), Value::Object(read)) => {
            prop_assert_eq!(fields.len(), read.len());
            fields.iter().try_for_each(|(name, value)| same(value, &read[name]))?;
        }
        (document, read) => prop_assert_eq!(document, read),
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_document_is_read_as_it_is_or_refused_for_a_number(document in document()) {
        let mut text = String::new();
        let fit = written(&document, &mut text);
        match read(&text, LEVELS) {
            Ok(value) => {
                prop_assert!(fit, "{}", text);
                same(&document, &value)?;
            }
            Err(error) => prop_assert!(!fit && error.problem.contains("is a number"), "{} {}", text, error),
        }
        let stored = read_stored(&text).expect("it is JSON");
        same(&document, &stored)?;
        prop_assert_eq!(read_stored(&stored_text(&stored)), Ok(stored));
    }
}
