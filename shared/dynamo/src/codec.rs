//! JSON to attribute values and back. What DynamoDB would refuse, or store as something else, is
//! refused ([`storable`]), with the path of the field, before any request.

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence::storable;
use serde_json::Value;

pub use ringfence::storable::{CodecError, LEVELS_MAX, Problem};

/// The attribute that holds `value`; `root` begins the path in an error.
///
/// # Errors
/// A number, a depth or the name of a field that DynamoDB refuses.
pub fn to_attribute(root: &str, value: &Value) -> Result<AttributeValue, CodecError> {
    storable::check(root, value)?;
    serde_dynamo::to_attribute_value(value).map_err(|error| conversion(root, &error))
}

/// The JSON that `attribute` holds; `root` begins the path in an error.
///
/// # Errors
/// An attribute without a JSON form, such as binary.
pub fn from_attribute(root: &str, attribute: AttributeValue) -> Result<Value, CodecError> {
    serde_dynamo::from_attribute_value(attribute).map_err(|error| conversion(root, &error))
}

fn conversion(root: &str, error: &serde_dynamo::Error) -> CodecError {
    CodecError { path: root.to_owned(), problem: Problem::Conversion(error.to_string()) }
}

#[cfg(test)]
mod tests {
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
    fn what_can_not_be_stored_is_refused_with_the_path_of_the_field() {
        let error = to_attribute("data", &json!({ "items": [{ "price": 1e126 }] }));
        let error = error.expect_err("it is too large");
        assert_eq!((&*error.path, error.problem), ("data.items[0].price", Problem::Range(126)));
    }
}
