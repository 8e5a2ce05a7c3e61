//! The form of a command: inputs made of its fields, and the JSON of what was filled in.

use maud::{Markup, html};
use serde_json::{Map, Number, Value as Json};

use crate::fields::{Field, Value};

/// The name of the one input of a command whose fields are not known.
const WHOLE: &str = "command";
/// What stands before the names of a command's inputs, so that no field is taken for a parameter of the page.
const FIELD: &str = "f.";

/// The inputs of a command, filled with the values of `json`.
pub(crate) fn inputs(of: &Value, json: &Json) -> Markup {
    match of {
        Value::Object(fields) => object(fields, FIELD, json),
        other => input(other, WHOLE, WHOLE, false, json),
    }
}

/// The JSON of a form that was filled in.
///
/// # Errors
/// A field that takes JSON has something else; the field is named.
pub(crate) fn json(of: &Value, form: &[(String, String)]) -> Result<Json, String> {
    let filled = Filled(form);
    match of {
        Value::Object(fields) => filled.object(fields, FIELD).map(Json::Object),
        other => Ok(filled.value(other, WHOLE)?.unwrap_or_default()),
    }
}

/// Whether the form has a command.
pub(crate) fn has_command(form: &[(String, String)]) -> bool {
    form.iter().any(|(name, _)| name == WHOLE || name.starts_with(FIELD))
}

fn object(fields: &[Field], path: &str, json: &Json) -> Markup {
    html! {
        @for Field { name, is_optional, value } in fields {
            @let here = format!("{path}{name}");
            @match value {
                Value::Object(fields) => {
                    fieldset { legend { (name) } (object(fields, &format!("{here}."), &json[name])) }
                }
                value => { (input(value, &here, name, *is_optional, &json[name])) }
            }
        }
    }
}

fn input(of: &Value, path: &str, name: &str, is_optional: bool, json: &Json) -> Markup {
    let text = match json {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
    };
    let pretty = || match json {
        Json::Null => String::new(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    };
    let label = if is_optional { format!("{name} (may be empty)") } else { name.to_owned() };
    html! {
        label {
            (label)
            @match of {
                Value::Truth => { input type="checkbox" name=(path) value="true" checked[*json == Json::Bool(true)]; }
                Value::Choice(all) => {
                    select name=(path) {
                        @if is_optional { option value="" { "" } }
                        @for one in *all { option selected[*one == text] { (one) } }
                    }
                }
                Value::Whole | Value::Number => { input name=(path) value=(text) inputmode="decimal"; }
                Value::Text => { input name=(path) value=(text) size="40"; }
                Value::List(of) if is_line(of) => {
                    textarea name=(path) rows="3" cols="40" placeholder="one on each line" { (lines(json)) }
                }
                _ => { textarea name=(path) rows="6" cols="60" placeholder="JSON" { (pretty()) } }
            }
        }
    }
}

/// Whether the elements of a list are written one on each line.
fn is_line(of: &Value) -> bool {
    matches!(of, Value::Text | Value::Whole | Value::Number | Value::Choice(_))
}

fn lines(json: &Json) -> String {
    let text = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    json.as_array().into_iter().flatten().map(text).collect::<Vec<_>>().join("\n")
}

struct Filled<'a>(&'a [(String, String)]);

impl Filled<'_> {
    fn text(&self, path: &str) -> &str {
        self.0.iter().find(|(name, _)| name == path).map_or("", |(_, value)| value)
    }

    fn object(&self, fields: &[Field], path: &str) -> Result<Map<String, Json>, String> {
        let mut object = Map::new();
        for Field { name, is_optional, value } in fields {
            let here = format!("{path}{name}");
            let given = match value {
                Value::Object(fields) => {
                    let inside = self.object(fields, &format!("{here}."))?;
                    (!(inside.is_empty() && *is_optional)).then_some(Json::Object(inside))
                }
                value => self.value(value, &here)?,
            };
            let given = match given {
                Some(given) => Some(given),
                // An empty input is an empty text. What the slice says of it is the best answer.
                None if *is_optional || *value != Value::Text => None,
                None => Some("".into()),
            };
            object.extend(given.map(|given| ((*name).to_owned(), given)));
        }
        Ok(object)
    }

    /// The value of a field; `None` if the input is empty.
    fn value(&self, of: &Value, path: &str) -> Result<Option<Json>, String> {
        let text = self.text(path);
        let one = |of: &Value, text: &str| match of {
            // What is no number is sent as it is, and the slice says what it takes.
            Value::Whole | Value::Number => {
                text.trim().parse::<Number>().map_or_else(|_| text.into(), Json::Number)
            }
            _ => text.into(),
        };
        Ok(match of {
            Value::Truth => Some(Json::Bool(text == "true")),
            Value::List(of) if is_line(of) => {
                let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                Some(lines.map(|line| one(of, line)).collect())
            }
            _ if text.trim().is_empty() => None,
            Value::List(_) | Value::Json | Value::Object(_) => {
                let field = path.strip_prefix(FIELD).unwrap_or(path);
                let json = serde_json::from_str(text);
                Some(json.map_err(|error| format!("{field}: is not JSON: {error}"))?)
            }
            of => Some(one(of, text)),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn order() -> Value {
        let field = |name, value| Field { name, is_optional: false, value };
        Value::Object(vec![
            field("orderId", Value::Text),
            field("price", Value::Object(vec![field("amount", Value::Whole)])),
            field("productIds", Value::List(Box::new(Value::Text))),
            Field { name: "note", is_optional: true, value: Value::Text },
            field("paid", Value::Truth),
            field("lines", Value::List(Box::new(Value::Json))),
        ])
    }

    fn form(fields: &[(&str, &str)]) -> Vec<(String, String)> {
        fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_form_that_was_filled_in_is_the_command_s_json() {
        let filled = form(&[
            ("f.orderId", "o-1"),
            ("f.price.amount", "4900"),
            ("f.productIds", "p-1\r\n p-2 \n\n"),
            ("f.note", ""),
            ("f.paid", "true"),
            ("f.lines", r#"[{"n":1}]"#),
        ]);
        let expected = json!({
            "orderId": "o-1", "price": { "amount": 4900 }, "productIds": ["p-1", "p-2"],
            "paid": true, "lines": [{ "n": 1 }],
        });
        assert_eq!(json(&order(), &filled), Ok(expected.clone()));
        let page = inputs(&order(), &expected).into_string();
        for part in [r#"name="f.price.amount" value="4900""#, ">p-1\np-2</textarea>", "checked"] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn what_is_no_number_is_sent_and_what_is_no_json_is_named() {
        let sent = json(&order(), &form(&[("f.price.amount", "many")])).unwrap();
        assert_eq!((&sent["price"]["amount"], &sent["orderId"]), (&json!("many"), &json!("")));
        let error = json(&order(), &form(&[("f.lines", "[")])).unwrap_err();
        assert!(error.starts_with("lines: is not JSON"), "{error}");
    }

    #[test]
    fn a_value_of_html_is_text() {
        let page = inputs(&Value::Json, &json!("</textarea><script>")).into_string();
        assert!(!page.contains("<script>"), "{page}");
    }
}
