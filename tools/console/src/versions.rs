//! The versions of a type of events: the fields of each, and what its upcasts make of an older one.

use std::collections::BTreeSet;

use maud::{Markup, html};
use ringfence_cli::shown::cut;
use ringfence_core::{EventSchema, Subjects, visible};
use ringfence_schemas::{Lock, LockError, LockedType, LockedVersion, Shape};
use serde_json::Value;

use crate::events::one_line;

/// The most characters of an example.
const EXAMPLE_CHARS_MAX: usize = 80;
/// The most characters of a payload, before and after its upcasts.
const UPCAST_CHARS_MAX: usize = 400;
/// Fields of objects within objects are shown so deep.
const LEVELS_MAX: usize = 6;

/// The versions of a type.
pub(crate) struct Versions<'a> {
    /// As this build declares it, in the newest version alone.
    pub(crate) now: Option<&'a LockedType>,
    /// The lock; an empty one if it is not here.
    pub(crate) released: Result<Lock, LockError>,
}

impl Versions<'_> {
    /// The fields of the newest version, and then of each older one.
    pub(crate) fn markup(&self, schema: &EventSchema) -> Markup {
        let newest = schema.upcasts.version();
        let released = self.released.iter().filter_map(|lock| lock.events.get(&*schema.name));
        let older: Vec<_> = released.flat_map(|it| it.versions.range(..newest)).rev().collect();
        let mut next = self.now.and_then(|now| now.versions.get(&newest));
        html! {
            @if let Some(version) = next { h2 { "Fields" } (fields(version, &schema.subjects, None)) }
            @for (number, version) in &older {
                h2 { "Version " (number) }
                (fields(version, &schema.subjects, next.replace(version).map(|next| (*number + 1, next))))
                (upcast(schema, **number, version))
            }
            @match &self.released {
                Err(error) => { p role="alert" { (error) } }
                Ok(lock) if newest > 1 && !lock.events.contains_key(&*schema.name) => {
                    p.note {
                        "Older versions are not known, because "
                        @if *lock == Lock::default() { "their lock is not in " (Lock::FOLDER) "/, beside the samples." }
                        @else { "the lock in " (Lock::FOLDER) "/ does not have this type." }
                    }
                }
                Ok(_) => {}
            }
        }
    }
}

/// An example of an older version, and what the upcasts make of it.
fn upcast(schema: &EventSchema, number: u32, version: &LockedVersion) -> Markup {
    let Some(example) = version.samples.first() else { return html! {} };
    let made = schema.upcasts.apply(&schema.name, number, example.clone());
    html! {
        p {
            "An example of version " (number) ": " code { (cut(&one_line(example), UPCAST_CHARS_MAX)) } ". "
            @match made {
                Ok(made) => { "Readers get it as " code { (cut(&one_line(&made), UPCAST_CHARS_MAX)) } "." }
                Err(why) => { strong.bad { "It can't be read" } ": " (visible(&why.to_string())) "." }
            }
        }
    }
}

/// The fields of a payload, with examples from the cases of slices; and what the version after it, of this number, has
/// in their place.
fn fields(
    version: &LockedVersion,
    subjects: &Subjects,
    next: Option<(u32, &LockedVersion)>,
) -> Markup {
    let of = |version: &LockedVersion| {
        let mut rows = Vec::new();
        members(["", ""], &version.shape, LEVELS_MAX, subjects, &mut rows);
        rows
    };
    let (rows, later) = (of(version), next.map(|(number, next)| (number, of(next))));
    let names = |all: &[Field]| all.iter().map(|it| it.name.clone()).collect::<BTreeSet<_>>();
    let added = later.as_ref().map(|(number, later)| {
        let added = names(later).difference(&names(&rows)).cloned().collect::<Vec<_>>();
        (number, added.join(", "))
    });
    let change = |field: &Field| {
        let later = &later.as_ref()?.1;
        Some(match later.iter().find(|it| it.name == field.name) {
            Some(it) if it.takes == field.takes => "the same".to_owned(),
            Some(it) => it.takes.clone(),
            None => "not there".to_owned(),
        })
    };
    let example = |pointer: &str| {
        let value = version.samples.iter().find_map(|sample| sample.pointer(pointer));
        value.map(|value: &Value| cut(&one_line(value), EXAMPLE_CHARS_MAX))
    };
    html! {
        @if rows.is_empty() { p { "The payload is " (words(&version.shape)) "." } }
        @else {
            div.wide tabindex="0" role="region" aria-label="Fields" {
                table.figures {
                    thead {
                        tr {
                            @for column in ["Field", "Takes", "Example"] { th scope="col" { (column) } }
                            @if let Some((number, _)) = &later { th scope="col" { "In version " (number) } }
                        }
                    }
                    tbody {
                        @for field in &rows {
                            tr {
                                th scope="row" { code { (visible(&field.name)) } }
                                td { (field.takes) }
                                td { code { (example(&field.pointer).unwrap_or_default()) } }
                                @if let Some(change) = change(field) { td { (change) } }
                            }
                        }
                    }
                }
            }
        }
        @if let Some((number, added)) = added.filter(|(_, added)| !added.is_empty()) {
            p { "Version " (number) " also has " code { (visible(&added)) } "." }
        }
    }
}

struct Field {
    name: String,
    /// The JSON pointer, for examples. Of a list it leads to the first value.
    pointer: String,
    takes: String,
}

/// Adds the members of a shape whose name and JSON pointer are these.
fn members(
    [name, pointer]: [&str; 2],
    shape: &Shape,
    levels: usize,
    subjects: &Subjects,
    rows: &mut Vec<Field>,
) {
    match shape {
        Shape::Object(all) if levels > 0 => {
            for (member, of) in all {
                let between = if name.is_empty() { "" } else { "." };
                let name = format!("{name}{between}{member}");
                let member = member.replace('~', "~0").replace('/', "~1");
                let pointer = format!("{pointer}/{member}");
                let optional = if of.is_optional { ", may be absent" } else { "" };
                let of_whom = match (&of.shape, subject(subjects, &name)) {
                    (Shape::Personal(_), Some(subject)) => format!(" of {subject}"),
                    _ => String::new(),
                };
                let takes = format!("{}{of_whom}{optional}", words(&of.shape));
                rows.push(Field { name: name.clone(), pointer: pointer.clone(), takes });
                members([&name, &pointer], &of.shape, levels - 1, subjects, rows);
            }
        }
        Shape::List { item, .. } => {
            members([&format!("{name}[]"), &format!("{pointer}/0")], item, levels, subjects, rows);
        }
        Shape::Nullable(shape) | Shape::Personal(shape) => {
            members([name, pointer], shape, levels, subjects, rows);
        }
        _ => {}
    }
}

/// The field with the person's id, for a personal value in this place.
fn subject(subjects: &Subjects, name: &str) -> Option<&'static str> {
    let field = name.split(['.', '[']).next().unwrap_or_default();
    let own = subjects.of_fields.iter().find(|(of, _)| *of == field);
    own.map(|(_, subject)| *subject).or(subjects.of_all)
}

/// A shape in words.
fn words(shape: &Shape) -> String {
    match shape {
        Shape::Any => "any JSON".to_owned(),
        Shape::Null => "null".to_owned(),
        Shape::Boolean => "boolean".to_owned(),
        Shape::Integer { min, max } => format!("integer, {min} to {max}"),
        Shape::Number { min, max } => format!("number{}", limits(*min, *max, "")),
        Shape::String { min, max, pattern, format } => {
            let format = format.as_ref().map(|format| format!(" ({format})")).unwrap_or_default();
            let min = Some(*min).filter(|min| *min > 0);
            let limits = limits(min, *max, " bytes");
            let pattern = pattern.as_ref().map(|it| format!(", matches {it}")).unwrap_or_default();
            format!("string{format}{limits}{pattern}")
        }
        Shape::Choice(names) => {
            format!("one of {}", names.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
        }
        Shape::List { item, min, max } => {
            let limits = limits(Some(*min).filter(|min| *min > 0), *max, " values");
            format!("list of {}{limits}", words(item))
        }
        Shape::Tuple(shapes) => {
            format!("list of {}", shapes.iter().map(words).collect::<Vec<_>>().join(" and "))
        }
        Shape::Map { value, .. } => format!("object, each value: {}", words(value)),
        Shape::Object(_) => "object".to_owned(),
        Shape::OneOf { members, .. } => {
            format!("one of {}", members.keys().map(String::as_str).collect::<Vec<_>>().join(", "))
        }
        Shape::AnyOf(shapes) => shapes.iter().map(words).collect::<Vec<_>>().join(" or "),
        Shape::Nullable(shape) => format!("{} or null", words(shape)),
        Shape::Personal(shape) => format!("{}, personal", words(shape)),
    }
}

fn limits<T: std::fmt::Display>(min: Option<T>, max: Option<T>, unit: &str) -> String {
    match (min, max) {
        (None, None) => String::new(),
        (Some(min), None) => format!(", from {min}{unit}"),
        (None, Some(max)) => format!(", up to {max}{unit}"),
        (Some(min), Some(max)) => format!(", {min} to {max}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ringfence_schemas::Member;
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_within_lists_and_objects_have_a_row_limits_and_an_example() {
        let member = |shape, is_optional| Member { is_optional, shape };
        let object = |members: Vec<(&str, Member)>| {
            let members = members.into_iter().map(|(name, it)| (name.to_owned(), it));
            Shape::Object(members.collect::<BTreeMap<_, _>>())
        };
        let name = Shape::String { min: 1, max: Some(9), pattern: None, format: None };
        let item = Box::new(object(vec![("a/b", member(Shape::Personal(Box::new(name)), true))]));
        let lines = Shape::List { item, min: 0, max: Some(3) };
        let shape = object(vec![("lines", member(Shape::Nullable(Box::new(lines)), false))]);
        let samples = vec![json!({ "lines": null }), json!({ "lines": [{ "a/b": "<x>" }] })];
        let version = LockedVersion { shape, samples, ..LockedVersion::default() };
        let subjects = Subjects { of_all: None, of_fields: &[("lines", "hostId")] };
        let page = fields(&version, &subjects, None);
        let page = page.into_string();
        for text in [
            "list of object, up to 3 values or null",
            "<code>lines[].a/b</code></th><td>string, 1 to 9 bytes, personal of hostId, may be absent</td>",
            "<td><code>&quot;&lt;x&gt;&quot;</code></td>",
        ] {
            assert!(page.contains(text), "{text}: {page}");
        }
    }
}
