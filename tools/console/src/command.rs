//! The form of a command: its inputs follow from the command's shape, and its values become JSON.

#[cfg(test)]
mod tests;

use maud::{Markup, html};
use ringfence_core::json;
use ringfence_core::storable::LEVELS_MAX;
use ringfence_schemas::Shape;
use serde_json::{Map, Value as Json};

/// The name of the one input of a command that has no members.
const WHOLE: &str = "command";
/// The prefix of the names of a command's inputs. It keeps members apart from parameters of the page.
const ROOT: &str = "f";
/// The name of the input that chooses between several kinds of objects, if the JSON has no member for it.
const WHICH: &str = "?";

/// The inputs of a command, filled with the values of a form.
pub(crate) fn inputs(of: &Shape, form: &[(String, String)]) -> Markup {
    let filled = Filled(form);
    match of {
        Shape::Object(_) | Shape::OneOf { .. } => inside(of, ROOT, false, &filled),
        other => input(other, WHOLE, WHOLE, false, &filled),
    }
}

/// The form of a command's JSON.
pub(crate) fn form(of: &Shape, json: &Json) -> Vec<(String, String)> {
    let mut form = Vec::new();
    fill(of, root(of), json, &mut form);
    form
}

/// The JSON of a filled form.
///
/// # Errors
/// A member that takes JSON has another text. The error names the member.
pub(crate) fn json(of: &Shape, form: &[(String, String)]) -> Result<Json, String> {
    Ok(Filled(form).value(of, root(of), false)?.unwrap_or_default())
}

/// Whether the form contains a command.
pub(crate) fn has_command(form: &[(String, String)]) -> bool {
    form.iter().any(|(name, _)| name == WHOLE || is_below(name, ROOT))
}

fn root(of: &Shape) -> &'static str {
    if matches!(of, Shape::Object(_) | Shape::OneOf { .. }) { ROOT } else { WHOLE }
}

fn is_below(name: &str, path: &str) -> bool {
    name.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'))
}

/// The input that chooses between several kinds of objects.
fn which(path: &str, tag: Option<&str>) -> String {
    format!("{path}.{}", tag.unwrap_or(WHICH))
}

fn fill(of: &Shape, path: &str, json: &Json, form: &mut Vec<(String, String)>) {
    match of {
        Shape::Nullable(of) | Shape::Personal(of) => fill(of, path, json, form),
        Shape::Object(members) => {
            for (name, member) in members {
                fill(&member.shape, &format!("{path}.{name}"), &json[name], form);
            }
        }
        Shape::OneOf { tag, members } => {
            let of_one = json.as_object().and_then(|object| object.iter().next());
            let (name, rest) = match (tag, of_one) {
                (Some(tag), _) => (json[tag].as_str(), json),
                (None, Some((name, rest))) => (Some(&**name), rest),
                (None, None) => (json.as_str(), &Json::Null),
            };
            let Some((name, shape)) = name.and_then(|name| members.get_key_value(name)) else {
                return;
            };
            form.push((which(path, tag.as_deref()), name.clone()));
            fill(shape, &format!("{path}.{name}"), rest, form);
        }
        Shape::Null => {}
        of => form.push((path.to_owned(), text(of, json))),
    }
}

/// A value as text for its input.
fn text(of: &Shape, json: &Json) -> String {
    match (of, json) {
        (_, Json::Null) => String::new(),
        (Shape::List { item, .. }, Json::Array(list)) if is_line(item) => {
            lines(list.iter().map(plain))
        }
        (Shape::Map { value, .. }, Json::Object(map))
            if is_line(value) && map.keys().all(|it| is_key(it)) =>
        {
            lines(map.iter().map(|(key, value)| format!("{key} = {}", plain(value))))
        }
        (
            Shape::List { .. } | Shape::Tuple(_) | Shape::Map { .. } | Shape::AnyOf(_) | Shape::Any,
            _,
        ) => serde_json::to_string_pretty(json).unwrap_or_default(),
        _ => plain(json),
    }
}

fn plain(json: &Json) -> String {
    json.as_str().map_or_else(|| json.to_string(), str::to_owned)
}

fn lines(all: impl Iterator<Item = String>) -> String {
    all.collect::<Vec<_>>().join("\n")
}

/// Whether a key can be written before `=` in a line. A text that begins with `{` is JSON.
fn is_key(key: &str) -> bool {
    key.trim() == key && !key.contains(['=', '\n', '\r']) && !key.starts_with('{')
}

/// Whether values are written line by line.
fn is_line(of: &Shape) -> bool {
    matches!(
        of,
        Shape::String { .. } | Shape::Integer { .. } | Shape::Number { .. } | Shape::Choice(_)
    )
}

/// The inputs inside a shape with members.
fn inside(of: &Shape, path: &str, may_be_empty: bool, filled: &Filled<'_>) -> Markup {
    match of {
        Shape::Object(members) => html! {
            @for (name, member) in members {
                (part(&member.shape, &format!("{path}.{name}"), name, may_be_empty || member.is_optional, filled))
            }
        },
        Shape::OneOf { tag, members } => {
            let names = Shape::Choice(members.keys().cloned().collect());
            let tag = tag.as_deref();
            html! {
                (input(&names, &which(path, tag), tag.unwrap_or("which"), may_be_empty, filled))
                @for (name, shape) in members.iter().filter(|(_, shape)| !is_empty(shape)) {
                    (part(shape, &format!("{path}.{name}"), name, false, filled))
                }
            }
        }
        _ => html! {},
    }
}

fn is_empty(of: &Shape) -> bool {
    matches!(of, Shape::Null) || matches!(of, Shape::Object(members) if members.is_empty())
}

fn part(of: &Shape, path: &str, name: &str, may_be_empty: bool, filled: &Filled<'_>) -> Markup {
    match of {
        Shape::Nullable(of) => part(of, path, name, true, filled),
        Shape::Personal(of) => part(of, path, name, may_be_empty, filled),
        Shape::Object(_) | Shape::OneOf { .. } => html! {
            fieldset { legend { (name) } (inside(of, path, may_be_empty, filled)) }
        },
        Shape::Null => html! {},
        of => input(of, path, name, may_be_empty, filled),
    }
}

fn input(of: &Shape, path: &str, name: &str, may_be_empty: bool, filled: &Filled<'_>) -> Markup {
    let text = filled.text(path);
    let label = if may_be_empty { format!("{name} (may be empty)") } else { name.to_owned() };
    let hint = hint(of);
    html! {
        label {
            (label)
            @match of {
                Shape::Boolean => { input type="checkbox" name=(path) value="true" checked[text == "true"]; }
                Shape::Choice(all) => {
                    select name=(path) {
                        @if may_be_empty { option value="" { "" } }
                        @for one in all { option selected[one == text] { (one) } }
                    }
                }
                Shape::Integer { .. } | Shape::Number { .. } => {
                    input name=(path) value=(text) inputmode="decimal" placeholder=(hint);
                }
                Shape::String { .. } => { input name=(path) value=(text) size="40" placeholder=(hint); }
                Shape::List { item, .. } if is_line(item) => {
                    textarea name=(path) rows="3" cols="40" placeholder=(hint) { (text) }
                }
                Shape::Map { value, .. } if is_line(value) => {
                    textarea name=(path) rows="3" cols="40" placeholder=(hint) { (text) }
                }
                _ => { textarea name=(path) rows="6" cols="60" placeholder=(hint) { (text) } }
            }
        }
    }
}

/// The valid values of an input, in words.
fn hint(of: &Shape) -> String {
    let count = |min: u64, max: Option<u64>| match (min, max) {
        (0, None) => String::new(),
        (min, None) => format!("at least {min}"),
        (0, Some(max)) => format!("at most {max}"),
        (min, Some(max)) if min == max => format!("{min}"),
        (min, Some(max)) => format!("{min} to {max}"),
    };
    let after = |how: &str, count: String| match count.is_empty() {
        true => how.to_owned(),
        false => format!("{how}, {count}"),
    };
    match of {
        Shape::Integer { min, max } => format!("{min} to {max}"),
        Shape::String { min: 0, max: None, .. } => String::new(),
        Shape::String { min, max, .. } => format!("{} bytes", count(*min, *max)),
        Shape::List { item, min, max } if is_line(item) => {
            after("one on each line", count(*min, *max))
        }
        Shape::List { min, max, .. } => after("JSON: a list", count(*min, *max)),
        Shape::Map { value, .. } if is_line(value) => "name = value, one on each line".to_owned(),
        Shape::Map { .. } => "JSON: an object".to_owned(),
        Shape::Tuple(_) => "JSON: a list".to_owned(),
        Shape::Any | Shape::AnyOf(_) => "JSON".to_owned(),
        _ => String::new(),
    }
}

struct Filled<'a>(&'a [(String, String)]);

impl Filled<'_> {
    fn text(&self, path: &str) -> &str {
        self.0.iter().find(|(name, _)| name == path).map_or("", |(_, value)| value)
    }

    fn is_empty_below(&self, path: &str) -> bool {
        let mut below = self.0.iter().filter(|(name, _)| is_below(name, path));
        below.all(|(_, value)| value.trim().is_empty())
    }

    /// The value of a place; `None` if its inputs are empty.
    fn value(&self, of: &Shape, path: &str, may_be_empty: bool) -> Result<Option<Json>, String> {
        let text = self.text(path);
        Ok(match of {
            Shape::Nullable(of) => {
                let value = self.value(of, path, true)?;
                if may_be_empty { value } else { Some(value.unwrap_or_default()) }
            }
            Shape::Personal(of) => self.value(of, path, may_be_empty)?,
            Shape::Null => Some(Json::Null),
            Shape::Object(_) | Shape::OneOf { .. } if may_be_empty && self.is_empty_below(path) => {
                None
            }
            Shape::Object(members) => {
                let mut object = Map::new();
                for (name, member) in members {
                    let here = format!("{path}.{name}");
                    let value = self.value(&member.shape, &here, member.is_optional)?;
                    object.extend(value.map(|value| (name.clone(), value)));
                }
                Some(object.into())
            }
            Shape::OneOf { tag, members } => {
                let name = self.text(&which(path, tag.as_deref()));
                let Some(shape) = members.get(name) else { return Ok(None) };
                let rest = self.value(shape, &format!("{path}.{name}"), false)?.unwrap_or_default();
                Some(match (tag, rest) {
                    (Some(tag), Json::Object(mut object)) => {
                        object.insert(tag.clone(), name.into());
                        object.into()
                    }
                    (Some(tag), _) => Map::from_iter([(tag.clone(), name.into())]).into(),
                    (None, Json::Null) => name.into(),
                    (None, rest) => Map::from_iter([(name.to_owned(), rest)]).into(),
                })
            }
            Shape::Boolean => Some(Json::Bool(text == "true")),
            Shape::List { item, .. } if is_line(item) => {
                Some(self.lines(path).map(|line| one(item, line)).collect())
                    .filter(|list: &Json| !may_be_empty || *list != Json::Array(Vec::new()))
            }
            // An empty input is an empty string. The slice explains best what is wrong with it.
            Shape::String { .. } if text.trim().is_empty() => (!may_be_empty).then(|| "".into()),
            _ if text.trim().is_empty() => None,
            Shape::Map { value, .. } if is_line(value) && !text.trim_start().starts_with('{') => {
                let entry = |line: &str| {
                    let (key, one_value) = line.split_once('=').ok_or_else(|| {
                        format!("{}: `{line}` is not `name = value`", member(path))
                    })?;
                    Ok((key.trim().to_owned(), one(value, one_value.trim())))
                };
                let entries: Result<Map<_, _>, String> = self.lines(path).map(entry).collect();
                Some(entries?.into())
            }
            Shape::List { .. }
            | Shape::Tuple(_)
            | Shape::Map { .. }
            | Shape::AnyOf(_)
            | Shape::Any => {
                let json = json::read(text, LEVELS_MAX);
                Some(json.map_err(|error| format!("{}: {error}", member(path)))?)
            }
            of => Some(one(of, text)),
        })
    }

    fn lines(&self, path: &str) -> impl Iterator<Item = &str> {
        self.text(path).lines().map(str::trim).filter(|line| !line.is_empty())
    }
}

/// The name of the member at a path.
fn member(path: &str) -> &str {
    path.strip_prefix("f.").unwrap_or(path)
}

/// A value of one line. Text that is not a number, or would be rounded, is sent unchanged, and the slice explains what
/// it takes.
fn one(of: &Shape, text: &str) -> Json {
    match of {
        Shape::Integer { .. } | Shape::Number { .. } => {
            json::fitting(text.trim()).map_or_else(|| text.into(), Json::Number)
        }
        _ => text.into(),
    }
}
