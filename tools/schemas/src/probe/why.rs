//! What errors say of a type.
//!
//! serde's enums with a tag, and structs with a flattened member, first read everything that is there, and then read
//! from that. So their questions are not seen. The errors say the same in the words of serde, which stay as they are:
//! callers of APIs know them.

use serde_json::{Map, Value, json};

use super::place::{Asked, Place, Step, integer};

/// The member that is missing.
pub(super) fn missing(why: &str) -> Option<&str> {
    let rest = bare(why).strip_prefix("missing field `")?;
    rest.split_once('`').map(|(name, _)| name)
}

/// The member that is given twice.
pub(super) fn duplicate(why: &str) -> Option<&str> {
    let rest = bare(why).strip_prefix("duplicate field `")?;
    rest.split_once('`').map(|(name, _)| name)
}

/// The members that there can be, if there is one that can't.
pub(super) fn fields(why: &str) -> Option<Vec<String>> {
    bare(why).starts_with("unknown field ").then(|| expected(why))
}

/// The variants that there are, if there is not the one that was asked for.
pub(super) fn variants(why: &str) -> Option<Vec<String>> {
    bare(why).starts_with("unknown variant ").then(|| expected(why))
}

fn expected(why: &str) -> Vec<String> {
    let names = why.rsplit_once(", expected ").map_or("", |(_, names)| names);
    names.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The error without the path of a field before it.
fn bare(why: &str) -> &str {
    let of_path = |c: char| c.is_ascii_alphanumeric() || "_.[]".contains(c);
    match why.split_once(": ") {
        Some((path, rest)) if path.chars().all(of_path) => rest,
        _ => why,
    }
}

/// A place inside one whose questions are not seen.
pub(super) struct Buffered<'p> {
    outer: &'p dyn Place,
    /// The members beside it that are known, if it is a member of an object.
    beside: Option<Map<String, Value>>,
    step: Step,
}

impl<'p> Buffered<'p> {
    /// The member of this name, with those beside it that are known.
    pub(super) fn member(outer: &'p dyn Place, beside: Map<String, Value>, name: &str) -> Self {
        Self { outer, beside: Some(beside), step: Step::Member(name.to_owned()) }
    }

    /// Whether the type takes the value with these members beside it.
    fn takes_beside(&self, json: &Value, beside: Map<String, Value>) -> Result<(), String> {
        let mut whole = self.step.around(json.clone());
        if let Some(object) = whole.as_object_mut() {
            object.extend(beside);
        }
        self.outer.takes(&whole)
    }

    /// Whether the error is about what comes after the value, so that the value itself was taken.
    fn is_of_others(&self, why: &str, json: &Value) -> bool {
        match (&self.beside, missing(why)) {
            // If it is missing beside the value, and not in it, there is another error once it is there.
            (Some(beside), Some(name)) if !beside.contains_key(name) => {
                let mut beside = beside.clone();
                beside.insert(name.to_owned(), Value::Null);
                let then = self.takes_beside(json, beside).err().unwrap_or_default();
                then != why && fields(&then).is_none()
            }
            // The list ends after the value.
            _ => {
                matches!(self.step, Step::Element(_))
                    && !json.is_array()
                    && bare(why).starts_with("invalid length ")
            }
        }
    }
}

impl Place for Buffered<'_> {
    fn asks(&self) -> Option<Asked> {
        let Err(why) = self.takes(&json!(true)) else {
            let is_any = self.takes(&json!([])).is_ok();
            return Some(if is_any { Asked::Any } else { Asked::Truth });
        };
        let wanted = why.rsplit_once(", expected ").map_or("", |(_, wanted)| wanted);
        let name = wanted.strip_prefix("a nonzero ").unwrap_or(wanted);
        Some(match wanted {
            "f32" | "f64" => Asked::Number,
            "a character" => Asked::Character,
            "a string" | "a borrowed string" | "string" => Asked::Text,
            "unit" => Asked::Unit,
            "a map" => Asked::Map,
            "string or map" => {
                let why = self.takes(&json!("?")).err().unwrap_or_default();
                Asked::OneOf("", variants(&why).unwrap_or_default())
            }
            _ if wanted.starts_with("a sequence") => Asked::List,
            _ if wanted.starts_with("a tuple of size ") || wanted.starts_with("an array of ") => {
                let length = wanted.split(' ').find_map(|word| word.parse().ok());
                Asked::Tuple(length.unwrap_or_default())
            }
            _ => integer(name),
        })
    }

    fn takes(&self, json: &Value) -> Result<(), String> {
        let taken = self.takes_beside(json, self.beside.clone().unwrap_or_default());
        taken.or_else(|why| if self.is_of_others(&why, json) { Ok(()) } else { Err(why) })
    }

    fn inside(&self, step: Step) -> Box<dyn Place + '_> {
        Box::new(Buffered { outer: self, beside: None, step })
    }
}
