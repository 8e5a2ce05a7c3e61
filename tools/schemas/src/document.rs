//! Parts that the documents of the API share.

use serde_json::{Value, json};

/// A reference to a component of the document.
pub(crate) fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

/// An object with these members, all required except the optional ones. It may have more.
pub(crate) fn object(properties: &Value, optional: &[&str]) -> Value {
    let names = properties.as_object().into_iter().flatten().map(|(name, _)| name);
    let required: Vec<_> = names.filter(|name| !optional.contains(&name.as_str())).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

/// A schema for receivers. A newer version of the stack may send more members than this one.
pub(crate) fn open(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(words) => {
            words.retain(|word, value| {
                word != "additionalProperties" || *value != Value::Bool(false)
            });
            words.values_mut().for_each(|inner| *inner = open(inner.take()));
        }
        Value::Array(all) => all.iter_mut().for_each(|inner| *inner = open(inner.take())),
        _ => {}
    }
    schema
}
