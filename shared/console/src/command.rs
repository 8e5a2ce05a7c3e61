//! The form of a command: inputs made of its fields, and the JSON of what was filled in.

use maud::{Markup, html};
use serde_json::{Map, Number, Value as Json};

use ringfence_cli::fields::{Field, Value};

/// The name of the one input of a command whose fields are not known.
const WHOLE: &str = "command";
/// What stands before the names of a command's inputs, so that no field is taken for a parameter of the page.
const FIELD: &str = "f.";

/// The inputs of a command, filled with the values of a form.
pub(crate) fn inputs(of: &Value, form: &[(String, String)]) -> Markup {
    match of {
        Value::Object(fields) => object(fields, FIELD, false, &Filled(form)),
        other => input(other, WHOLE, WHOLE, false, &Filled(form)),
    }
}

/// The form of a command's JSON.
pub(crate) fn form(of: &Value, json: &Json) -> Vec<(String, String)> {
    let mut form = Vec::new();
    match of {
        Value::Object(fields) => fill(fields, FIELD, json, &mut form),
        other => form.push((WHOLE.to_owned(), text(other, json))),
    }
    form
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

fn fill(fields: &[Field], path: &str, json: &Json, form: &mut Vec<(String, String)>) {
    for Field { name, value, .. } in fields {
        let here = format!("{path}{name}");
        match value {
            Value::Object(fields) => fill(fields, &format!("{here}."), &json[name], form),
            value => form.push((here, text(value, &json[name]))),
        }
    }
}

/// A value as its input has it.
fn text(of: &Value, json: &Json) -> String {
    match (of, json) {
        (_, Json::Null) => String::new(),
        (Value::List(of), _) if is_line(of) => lines(json),
        (Value::List(_) | Value::Json | Value::Object(_), _) => {
            serde_json::to_string_pretty(json).unwrap_or_default()
        }
        (_, Json::String(text)) => text.clone(),
        (_, other) => other.to_string(),
    }
}

fn object(fields: &[Field], path: &str, may_be_empty: bool, filled: &Filled<'_>) -> Markup {
    html! {
        @for Field { name, is_optional, value } in fields {
            @let here = format!("{path}{name}");
            @let may_be_empty = may_be_empty || *is_optional;
            @match value {
                Value::Object(fields) => {
                    fieldset { legend { (name) } (object(fields, &format!("{here}."), may_be_empty, filled)) }
                }
                value => { (input(value, &here, name, may_be_empty, filled)) }
            }
        }
    }
}

fn input(of: &Value, path: &str, name: &str, may_be_empty: bool, filled: &Filled<'_>) -> Markup {
    let text = filled.text(path);
    let label = if may_be_empty { format!("{name} (may be empty)") } else { name.to_owned() };
    html! {
        label {
            (label)
            @match of {
                Value::Truth => { input type="checkbox" name=(path) value="true" checked[text == "true"]; }
                Value::Choice(all) => {
                    select name=(path) {
                        @if may_be_empty { option value="" { "" } }
                        @for one in *all { option selected[*one == text] { (one) } }
                    }
                }
                Value::Whole | Value::Number => { input name=(path) value=(text) inputmode="decimal"; }
                Value::Text => { input name=(path) value=(text) size="40"; }
                Value::List(of) if is_line(of) => {
                    textarea name=(path) rows="3" cols="40" placeholder="one on each line" { (text) }
                }
                _ => { textarea name=(path) rows="6" cols="60" placeholder="JSON" { (text) } }
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

    fn is_empty_below(&self, path: &str) -> bool {
        let mut below = self.0.iter().filter(|(name, _)| name.starts_with(path));
        below.all(|(_, value)| value.trim().is_empty())
    }

    fn object(&self, fields: &[Field], path: &str) -> Result<Map<String, Json>, String> {
        let mut object = Map::new();
        for Field { name, is_optional, value } in fields {
            let here = format!("{path}{name}");
            let given = match value {
                Value::Object(fields) => {
                    let inside = format!("{here}.");
                    match *is_optional && self.is_empty_below(&inside) {
                        true => None,
                        false => Some(Json::Object(self.object(fields, &inside)?)),
                    }
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
            // Text that is not a number is sent as it is, and the slice says what it takes.
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
        let page = inputs(&order(), &super::form(&order(), &expected)).into_string();
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
        let again =
            inputs(&order(), &form(&[("f.orderId", "o-1"), ("f.lines", "[")])).into_string();
        for part in [r#"value="o-1""#, ">[</textarea>"] {
            assert!(again.contains(part), "{part}: {again}");
        }
    }

    #[test]
    fn an_optional_object_is_left_out_if_all_its_inputs_are_empty() {
        let field = |name, is_optional, value| Field { name, is_optional, value };
        let kinds = Value::Choice(&["file", "page"]);
        let parts = vec![field("uri", false, Value::Text), field("kind", false, kinds)];
        let of = Value::Object(vec![field("artifact", true, Value::Object(parts))]);
        let page = inputs(&of, &[]).into_string();
        assert!(page.contains(r#"<option value=""></option>"#), "{page}");
        let sent = |uri| json(&of, &form(&[("f.artifact.uri", uri), ("f.artifact.kind", "")]));
        assert_eq!(sent(""), Ok(json!({})));
        assert_eq!(sent("a"), Ok(json!({ "artifact": { "uri": "a" } })));
    }

    #[test]
    fn a_value_of_html_is_text() {
        let hostile = super::form(&Value::Json, &json!("</textarea><script>"));
        let page = inputs(&Value::Json, &hostile).into_string();
        assert!(!page.contains("<script>"), "{page}");
    }
}
