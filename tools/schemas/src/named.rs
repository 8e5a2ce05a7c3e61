//! Generators of clients need more than a correct schema: a name for each type of object, one place for each, and the
//! type of each constant. Without a name they make one up, such as `PriceType0`.

use heck::ToPascalCase;
use serde_json::{Map, Value, json};

use crate::document::reference;

/// The schemas, and each object inside of them as a separate schema. Its name is the name of the schema around it and
/// of its member: `OrderCommandLinesItemPrice`.
pub(crate) fn named(schemas: Map<String, Value>) -> Map<String, Value> {
    let names: Vec<_> = schemas.keys().cloned().collect();
    let mut types = Types(schemas);
    for name in names {
        let mut schema = types.0[&name].take();
        types.take_out(&name, &mut schema);
        types.0[&name] = schema;
    }
    types.0
}

struct Types(Map<String, Value>);

impl Types {
    /// Takes the objects out of a schema with this name.
    fn take_out(&mut self, name: &str, schema: &mut Value) {
        let Some(words) = schema.as_object_mut() else { return };
        for (member, inner) in
            words.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
        {
            self.refer(format!("{name}{}", member.to_pascal_case()), inner);
        }
        for (word, of) in [("items", "Item"), ("additionalProperties", "Value")] {
            if let Some(inner) = words.get_mut(word) {
                self.refer(format!("{name}{of}"), inner);
            }
        }
        for (n, inner) in words
            .get_mut("prefixItems")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
            .enumerate()
        {
            self.refer(format!("{name}Item{}", n + 1), inner);
        }
        self.take_out_of_union(name, words);
    }

    /// Takes out the alternatives of a union. They are `anyOf`, because some clients of `oneOf` refuse an object that
    /// fits two.
    fn take_out_of_union(&mut self, name: &str, words: &mut Map<String, Value>) {
        let word = if words.contains_key("oneOf") { "oneOf" } else { "anyOf" };
        let Some(Value::Array(mut parts)) = words.remove(word) else { return };
        let differences = differences(&parts);
        for (part, of) in parts.iter_mut().zip(&differences) {
            self.refer(format!("{name}{}", of.name), part);
        }
        let tags: Option<Vec<_>> = differences.iter().map(|of| of.tag.as_ref()).collect();
        if let Some((member, _)) = tags.iter().flatten().next() {
            let target = |part: &Value| part["$ref"].clone();
            let mapping = tags
                .iter()
                .flatten()
                .zip(&parts)
                .map(|((_, value), part)| (value.clone(), target(part)));
            let mapping: Map<_, _> = mapping.collect();
            words.insert(
                "discriminator".to_owned(),
                json!({ "propertyName": member, "mapping": mapping }),
            );
        }
        words.insert("anyOf".to_owned(), parts.into());
    }

    /// Puts a reference in the place of an object or a union of objects.
    fn refer(&mut self, mut name: String, schema: &mut Value) {
        self.take_out(&name, schema);
        let is_object = schema["properties"].is_object();
        let objects = schema["anyOf"].as_array().into_iter().flatten();
        if !is_object && objects.filter(|part| part.get("$ref").is_some()).count() < 2 {
            return;
        }
        while self.0.contains_key(&name) {
            name.push('_');
        }
        self.0.insert(name.clone(), schema.take());
        *schema = reference("schemas", &name);
    }
}

/// How an alternative of a union differs from the others.
#[derive(Default)]
struct Difference {
    /// The end of its name; empty if it is the only object.
    name: String,
    /// The member with a constant that each alternative has, and its value.
    tag: Option<(String, String)>,
}

fn differences(parts: &[Value]) -> Vec<Difference> {
    let is_object = |part: &Value| part["properties"].is_object();
    let has = |part: &Value, member: &str| part["properties"].get(member).is_some();
    let constant = |part: &Value, member: &str| {
        part["properties"][member]["const"].as_str().map(str::to_owned)
    };
    if parts.iter().filter(|part| is_object(part)).count() < 2 {
        return parts.iter().map(|_| Difference::default()).collect();
    }
    let members = |part: &Value| {
        part["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone())
            .collect::<Vec<_>>()
    };
    let tag = members(&parts[0])
        .into_iter()
        .find(|name| parts.iter().all(|part| constant(part, name).is_some()));
    let of = |part: &Value| {
        if let Some(tag) = &tag
            && let Some(value) = constant(part, tag)
        {
            return Difference { name: value.to_pascal_case(), tag: Some((tag.clone(), value)) };
        }
        let is_own = |name: &&String| parts.iter().filter(|part| has(part, name)).count() == 1;
        let all = members(part);
        let name = all.iter().find(is_own).cloned().unwrap_or_else(|| all.join("-"));
        Difference { name: name.to_pascal_case(), tag: None }
    };
    parts.iter().map(of).collect()
}

/// Adds the type of each constant, and the width of each integer: without one, some clients take 32 bits.
pub(crate) fn add_types(value: &mut Value) {
    match value {
        Value::Array(parts) => parts.iter_mut().for_each(add_types),
        Value::Object(words) => {
            words.values_mut().for_each(add_types);
            let constant = words.get("const").or_else(|| words.get("enum")?.get(0));
            let of = match constant {
                Some(Value::String(_)) => Some("string"),
                Some(Value::Number(number)) => {
                    Some(if number.is_f64() { "number" } else { "integer" })
                }
                Some(Value::Bool(_)) => Some("boolean"),
                _ => None,
            };
            if let Some(of) = of {
                words.insert("type".to_owned(), of.into());
            } else if words.get("type").is_some_and(|of| of == "integer") {
                let fits = |word: &str, least: i64, most: i64| {
                    let bound = words.get(word).and_then(Value::as_i64);
                    bound.is_some_and(|bound| (least..=most).contains(&bound))
                };
                let is_narrow = ["minimum", "maximum"]
                    .iter()
                    .all(|word| fits(word, i32::MIN.into(), i32::MAX.into()));
                words.insert("format".to_owned(), if is_narrow { "int32" } else { "int64" }.into());
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_inside_of_others_get_names_and_constants_their_types() {
        let price = json!({ "type": "object", "properties": { "amount": { "type": "integer", "minimum": 0 } } });
        let kind =
            |name: &str| json!({ "type": "object", "properties": { "type": { "const": name } } });
        let of_any = |parts: &[&str]| {
            let parts: Vec<_> = parts.iter().map(|name| reference("schemas", name)).collect();
            json!({ "anyOf": parts })
        };
        let order = json!({ "type": "object", "properties": {
            "lines": { "type": "array", "items": { "type": "object", "properties": {
                "price": { "anyOf": [price, { "type": "null" }] },
            } } },
            "paid-by": { "oneOf": [kind("card"), kind("bill")] },
            "first": { "type": "integer", "minimum": 0, "maximum": 9 },
        } });
        let mut schemas = Value::Object(named([("Order".to_owned(), order)].into_iter().collect()));
        add_types(&mut schemas);
        let names: Vec<_> = schemas.as_object().expect("schemas").keys().collect();
        let expected = [
            "Order",
            "OrderLinesItem",
            "OrderLinesItemPrice",
            "OrderPaidBy",
            "OrderPaidByBill",
            "OrderPaidByCard",
        ];
        assert_eq!(names, expected);
        let of_order = &schemas["Order"]["properties"];
        assert_eq!(of_order["lines"]["items"], reference("schemas", "OrderLinesItem"));
        assert_eq!(of_order["first"]["format"], "int32");
        let mut price = of_any(&["OrderLinesItemPrice"]);
        price["anyOf"].as_array_mut().expect("parts").push(json!({ "type": "null" }));
        assert_eq!(schemas["OrderLinesItem"]["properties"]["price"], price);
        assert_eq!(schemas["OrderLinesItemPrice"]["properties"]["amount"]["format"], "int64");
        let mut paid_by = of_any(&["OrderPaidByCard", "OrderPaidByBill"]);
        paid_by["discriminator"] = json!({ "propertyName": "type", "mapping": {
            "card": "#/components/schemas/OrderPaidByCard", "bill": "#/components/schemas/OrderPaidByBill",
        } });
        assert_eq!(schemas["OrderPaidBy"], paid_by);
        let of_card = &schemas["OrderPaidByCard"]["properties"]["type"];
        assert_eq!(*of_card, json!({ "type": "string", "const": "card" }));
    }
}
