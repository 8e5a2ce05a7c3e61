//! Items in the SDK's form.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

/// One item in the SDK's form: attribute names and values.
pub type Item = HashMap<String, AttributeValue>;
