//! The API for callers: the document of OpenAPI, and a page of it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use maud::{Markup, html};
use serde_json::Value;

use crate::frame::{self, Problem};
use crate::site::Site;

/// The path of the document.
pub(crate) const DOCUMENT: &str = "/api/openapi.json";

/// The document.
pub(crate) async fn document(State(site): State<Arc<Site>>) -> Result<Json<Value>, Problem> {
    Ok(Json(site.lists.contract()?.openapi()))
}

/// The page.
pub(crate) async fn page(State(site): State<Arc<Site>>) -> Result<Markup, Problem> {
    let api = Api(site.lists.contract()?.openapi());
    let contexts =
        api.0["tags"].as_array().into_iter().flatten().filter_map(|tag| tag["name"].as_str());
    let main = html! {
        p {
            a href=(DOCUMENT) { "openapi.json" }
            " says the same to programs, as OpenAPI 3.1. " code { "ringfence api --openapi" } " prints it."
        }
        @for context in contexts {
            h2 { (context) }
            @for (path, method, operation) in api.operations(context) { (api.operation(path, method, operation)) }
        }
    };
    Ok(frame::page(&site, "/api", "API", None, &main))
}

/// A document of OpenAPI, as this stack writes it.
struct Api(Value);

impl Api {
    /// The operations of a context, each with its path and its method.
    fn operations(&self, context: &str) -> impl Iterator<Item = (&str, &str, &Value)> {
        let paths = self.0["paths"].as_object().into_iter().flatten();
        let all = paths.flat_map(|(path, item)| {
            let methods = item.as_object().into_iter().flatten();
            methods.map(move |(method, operation)| (&**path, &**method, operation))
        });
        all.filter(move |(_, _, operation)| operation["tags"][0] == context)
    }

    /// The target of a reference, or the value itself.
    fn found<'a>(&'a self, value: &'a Value) -> &'a Value {
        let pointer = value["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
        pointer.and_then(|pointer| self.0.pointer(pointer)).unwrap_or(value)
    }

    fn operation(&self, path: &str, method: &str, operation: &Value) -> Markup {
        let parameters =
            operation["parameters"].as_array().into_iter().flatten().map(|it| self.found(it));
        let body = &operation["requestBody"]["content"]["application/json"]["schema"];
        let answers = operation["responses"].as_object().into_iter().flatten();
        html! {
            details {
                summary { code { (method.to_uppercase()) " " (path) } @if let Some(about) = operation["summary"].as_str() { " " (about) } }
                @if !body.is_null() { h3 { "Takes" } p { (self.takes(body)) } (self.inside(body)) }
                h3 { "Parameters" }
                ul {
                    @for it in parameters {
                        li { code { (text(&it["name"])) } " (" (text(&it["in"])) "): " (about(&it["description"])) }
                    }
                }
                h3 { "Answers" }
                dl {
                    @for (status, answer) in answers {
                        @let answer = self.found(answer);
                        dt { (status) }
                        dd {
                            (about(&answer["description"])) @for code in self.codes(answer) { " " code { (code) } }
                            @if status == "200" { (self.inside(&answer["content"]["application/json"]["schema"])) }
                        }
                    }
                }
            }
        }
    }

    /// The members of an object, each with its valid values.
    fn members(&self, schema: &Value) -> Markup {
        let required = schema["required"].as_array();
        let is_required =
            |name: &str| required.is_some_and(|names| names.iter().any(|it| it == name));
        html! {
            ul {
                @for (name, member) in schema["properties"].as_object().into_iter().flatten() {
                    li {
                        code { (name) } ": " (self.takes(member))
                        @if !is_required(name) { ", may be absent" }
                        (self.inside(member))
                    }
                }
            }
        }
    }

    /// The members of an object, and of objects in its alternatives, items or values.
    fn inside(&self, schema: &Value) -> Markup {
        let schema = self.found(schema);
        let parts = ["oneOf", "anyOf"].iter().filter_map(|word| schema[*word].as_array()).flatten();
        let parts = parts
            .chain(["items", "additionalProperties"].iter().filter_map(|word| schema.get(*word)));
        html! {
            @if schema["properties"].is_object() { (self.members(schema)) }
            @for part in parts { (self.inside(part)) }
        }
    }

    /// The valid values of a schema, in words.
    fn takes(&self, schema: &Value) -> String {
        let schema = self.found(schema);
        let number = |word: &str| schema.get(word).filter(|it| it.is_number());
        let bounds = |least: &str, most: &str, unit: &str| match (number(least), number(most)) {
            (None, None) => String::new(),
            (Some(min), None) => format!(" of at least {min}{unit}"),
            (None, Some(max)) => format!(" of at most {max}{unit}"),
            (Some(min), Some(max)) => format!(" of {min} to {max}{unit}"),
        };
        let each = |word: &str| schema[word].as_array().into_iter().flatten();
        let names = |word: &str| each(word).map(Value::to_string).collect::<Vec<_>>().join(", ");
        match schema["type"].as_str() {
            _ if schema["enum"].is_array() => format!("one of {}", names("enum")),
            _ if !schema["const"].is_null() => schema["const"].to_string(),
            Some("string") => format!("a string{}", bounds("minLength", "maxLength", " bytes")),
            Some("integer") => format!("an integer{}", bounds("minimum", "maximum", "")),
            Some("number") => "a number".to_owned(),
            Some("boolean") => "true or false".to_owned(),
            Some("array") => {
                format!(
                    "a list{}, each {}",
                    bounds("minItems", "maxItems", ""),
                    self.takes(&schema["items"])
                )
            }
            Some("object") if schema["properties"].is_object() => "an object".to_owned(),
            Some("object") => {
                format!(
                    "an object with any names, each with {}",
                    self.takes(&schema["additionalProperties"])
                )
            }
            Some("null") => "null".to_owned(),
            _ => {
                let parts = each("oneOf")
                    .chain(each("anyOf"))
                    .map(|part| self.takes(part))
                    .collect::<Vec<_>>();
                if parts.is_empty() { "any JSON".to_owned() } else { parts.join(", or ") }
            }
        }
    }

    /// The codes of an answer's problems. A problem without codes is named by the end of its type.
    fn codes<'a>(&'a self, answer: &'a Value) -> Vec<&'a str> {
        let schema = self.found(&answer["content"]["application/problem+json"]["schema"]);
        let all = schema["oneOf"].as_array().map_or(std::slice::from_ref(schema), Vec::as_slice);
        let of = |schema| {
            let properties = &self.found(schema)["properties"];
            let codes = ["code", "type"].iter().find_map(|name| properties.get(*name));
            codes.and_then(|codes| codes["enum"].as_array()).into_iter().flatten()
        };
        all.iter().flat_map(of).filter_map(last_name).collect()
    }
}

/// A code, or the end of a problem's type.
fn last_name(code: &Value) -> Option<&str> {
    code.as_str()?.rsplit(':').next()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A description. Text between backticks becomes code.
fn about(value: &Value) -> Markup {
    html! {
        @for (n, part) in text(value).split('`').enumerate() {
            @if n % 2 == 0 { (part) } @else { code { (part) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_operation_shows_each_kind_of_a_command_and_the_members_of_what_is_answered() {
        let text = json!({ "type": "string", "maxLength": 9 });
        let kind = |name: &str| json!({ "properties": { "type": { "const": name }, "note": text }, "type": "object" });
        let row = json!({ "properties": { "asOf": { "$ref": "#/whole" } }, "type": "object" });
        let api = Api(json!({ "whole": { "type": "integer", "minimum": 0 } }));
        let operation = json!({
            "requestBody": { "content": { "application/json": { "schema": { "oneOf": [kind("Open"), kind("Close")] } } } },
            "responses": { "200": {
                "description": "It writes `<Opened>`.",
                "content": { "application/json": { "schema": row } },
            } },
        });
        let page = api.operation("/doors/move", "post", &operation).into_string();
        for part in [
            "<code>type</code>: &quot;Open&quot;",
            "<code>type</code>: &quot;Close&quot;",
            "<code>note</code>: a string of at most 9 bytes",
            "It writes <code>&lt;Opened&gt;</code>.",
            "<code>asOf</code>: an integer of at least 0",
        ] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
    }
}
