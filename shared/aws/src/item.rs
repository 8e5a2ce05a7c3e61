//! Items as the SDK has them.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

/// One item as the SDK has it: attribute names and values.
pub type Item = HashMap<String, AttributeValue>;
