//! JSON to attribute values and back. A value that DynamoDB would refuse, or change, is refused before any request
//! ([`storable`]), with the path of the field.

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_core::{
    json::{Digits, kept_number, stored_number},
    storable,
};
use serde_json::Value;

pub use ringfence_core::storable::{CodecError, LEVELS_MAX, ValueProblem};

/// The attribute that holds `value`; `root` begins the path in an error.
///
/// # Errors
/// A number, a depth or the name of a field that DynamoDB refuses.
pub fn to_attribute(root: &str, value: &Value) -> Result<AttributeValue, CodecError> {
    storable::check(root, value)?;
    Ok(attribute(value))
}

fn attribute(value: &Value) -> AttributeValue {
    let pair = |(name, value): (&String, &Value)| (name.clone(), attribute(value));
    if let Some(number) = kept_number(value) {
        return AttributeValue::N(Digits::of(number).plain());
    }
    match value {
        Value::Null => AttributeValue::Null(true),
        Value::Bool(truth) => AttributeValue::Bool(*truth),
        Value::Number(number) => AttributeValue::N(match number.is_f64() {
            // Of two numbers that are equally near, `f64` itself would show the other one.
            true => Digits::of(&number.to_string()).plain(),
            false => number.to_string(),
        }),
        Value::String(text) => AttributeValue::S(text.clone()),
        Value::Array(values) => AttributeValue::L(values.iter().map(attribute).collect()),
        Value::Object(fields) => AttributeValue::M(fields.iter().map(pair).collect()),
    }
}

/// The JSON that `attribute` holds; `root` begins the path in an error.
///
/// # Errors
/// An attribute without a JSON form, such as binary.
pub fn from_attribute(root: &str, attribute: AttributeValue) -> Result<Value, CodecError> {
    json(attribute).map_err(|problem| CodecError { path: root.to_owned(), problem })
}

fn json(attribute: AttributeValue) -> Result<Value, ValueProblem> {
    Ok(match attribute {
        AttributeValue::Null(_) => Value::Null,
        AttributeValue::Bool(truth) => Value::Bool(truth),
        AttributeValue::N(text) => number(&text)?,
        AttributeValue::S(text) => Value::String(text),
        AttributeValue::L(values) => values.into_iter().map(json).collect::<Result<_, _>>()?,
        AttributeValue::M(fields) => {
            let pair = |(name, value)| Ok((name, json(value)?));
            Value::Object(fields.into_iter().map(pair).collect::<Result<_, _>>()?)
        }
        AttributeValue::Ss(texts) => texts.into(),
        AttributeValue::Ns(texts) => {
            texts.iter().map(|text| number(text)).collect::<Result<_, _>>()?
        }
        _ => return Err(ValueProblem::Conversion("binary has no JSON form".to_owned())),
    })
}

fn number(text: &str) -> Result<Value, ValueProblem> {
    let not_one = || ValueProblem::Conversion(format!("{text:?} is not a number"));
    stored_number(text).ok_or_else(not_one)
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::primitives::Blob;
    use serde_json::json;

    use super::*;
    use crate::attribute_bytes;

    #[test]
    fn json_comes_back_as_it_went_and_takes_as_many_bytes_as_it_should() {
        let value = json!({
            "text": "4-byte 🎈, NUL \u{0}", "empty": "", "null": null, "yes": true,
            "numbers": [0, -1, 1250, 0.5, u64::MAX, i64::MIN, 1e100, 1.5e-9], "map": {}, "list": [],
        });
        let attribute = to_attribute("data", &value).expect("it fits");
        assert_eq!(attribute_bytes(&attribute), storable::bytes(&value));
        assert_eq!(from_attribute("data", attribute), Ok(value));
    }

    #[test]
    fn a_number_of_38_digits_is_read_and_written_with_all_of_them() {
        for number in [
            "1584097275961.1234",
            "-99999999999999999999999999999999999999",
            "0.00000000000000000012345678901234567890123456789012345678",
            "18446744073709551616",
        ] {
            let stored = AttributeValue::N(number.to_owned());
            let list = AttributeValue::L(vec![stored]);
            let json = from_attribute("data", list.clone()).expect("a number");
            assert_eq!(json, json!([{ "$number": number }]));
            assert_eq!(attribute_bytes(&list), storable::bytes(&json));
            assert_eq!(to_attribute("data", &json), Ok(list));
        }
        // Any number of digits, with the point at any position.
        let all = "73951284617395128461739512846173951281";
        for (digits, point) in (1..=38).flat_map(|digits| (1..=digits).map(move |n| (digits, n))) {
            let (whole, fraction) = all[..digits].split_at(point);
            let number =
                if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") };
            let stored = AttributeValue::N(number);
            let json = from_attribute("data", stored.clone()).expect("a number");
            assert_eq!(to_attribute("data", &json), Ok(stored));
        }
        // DynamoDB writes out the zeros of a number that a program writes as 1e22.
        let plain = AttributeValue::N("10000000000000000000000".to_owned());
        assert_eq!(from_attribute("data", plain.clone()), Ok(json!(1e22)));
        assert_eq!(to_attribute("data", &json!(1e22)), Ok(plain));
        for (number, problem) in [
            ("0.123456789012345678901234567890123456789", ValueProblem::Digits(39)),
            ("1.00000000000000000001e126", ValueProblem::Range(126)),
            ("1e99999999999999999999", ValueProblem::Range(i64::MAX)),
            ("1e-99999999999999999999", ValueProblem::Range(i64::MIN)),
        ] {
            let error = to_attribute("data", &json!({ "$number": number })).expect_err(number);
            assert_eq!((&*error.path, error.problem), ("data", problem));
        }
    }

    #[test]
    fn a_value_that_can_not_be_stored_is_refused_with_its_path() {
        let error = to_attribute("data", &json!({ "items": [{ "price": 1e126 }] }));
        let error = error.expect_err("it is too large");
        assert_eq!(
            (&*error.path, error.problem),
            ("data.items[0].price", ValueProblem::Range(126))
        );
    }

    #[test]
    fn sets_are_read_as_lists_and_binary_is_refused() {
        let numbers = AttributeValue::Ns(vec!["1".to_owned(), "2.5".to_owned()]);
        assert_eq!(from_attribute("data", numbers), Ok(json!([1, 2.5])));
        let binary = AttributeValue::L(vec![AttributeValue::B(Blob::new([1]))]);
        let error = from_attribute("data", binary).expect_err("JSON has no bytes");
        assert_eq!(
            error.to_string(),
            "data: the value cannot be converted: binary has no JSON form"
        );
    }
}
