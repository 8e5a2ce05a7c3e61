//! A place in the JSON of a type, the steps that lead there, and what a type can ask for.

use serde_json::{Map, Value};

/// What a type asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Whatever is there.
    Any,
    Unit,
    Truth,
    Whole {
        min: i64,
        max: u64,
    },
    Number,
    Character,
    Text,
    List,
    /// A list of this many values.
    Tuple(usize),
    Map,
    /// An object with these fields.
    Object(&'static str, &'static [&'static str]),
    /// One of these variants.
    OneOf(&'static str, Vec<String>),
}

/// The types of integers, as JSON is read: a whole number has 64 bits.
const INTEGERS: [(&str, i64, u64); 12] = [
    ("i8", i8::MIN as i64, i8::MAX as u64),
    ("i16", i16::MIN as i64, i16::MAX as u64),
    ("i32", i32::MIN as i64, i32::MAX as u64),
    ("i64", i64::MIN, i64::MAX as u64),
    ("i128", i64::MIN, u64::MAX),
    ("isize", i64::MIN, i64::MAX as u64),
    ("u8", 0, u8::MAX as u64),
    ("u16", 0, u16::MAX as u64),
    ("u32", 0, u32::MAX as u64),
    ("u64", 0, u64::MAX),
    ("u128", 0, u64::MAX),
    ("usize", 0, u64::MAX),
];

/// What a type of integers of this name asks for; [`Asked::Any`] if there is none.
pub(super) fn integer(name: &str) -> Asked {
    let found = INTEGERS.iter().find(|(it, ..)| *it == name);
    found.map_or(Asked::Any, |(_, min, max)| Asked::Whole { min: *min, max: *max })
}

/// A step from a value to one inside it.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// To the member of this name, or to what a variant of this name holds.
    Member(String),
    /// To the element after these.
    Element(Vec<Value>),
}

impl Step {
    /// The value that has another one at this step.
    pub(super) fn around(&self, inside: Value) -> Value {
        match self {
            Self::Member(name) => Map::from_iter([(name.clone(), inside)]).into(),
            Self::Element(before) => before.iter().cloned().chain([inside]).collect(),
        }
    }
}

/// A place in the JSON of a type.
pub(super) trait Place {
    /// What the type asks for there; `None` if nothing reads it.
    fn asks(&self) -> Option<Asked>;

    /// Whether the type takes a value there; if not, why.
    ///
    /// # Errors
    /// The words of serde.
    fn takes(&self, json: &Value) -> Result<(), String>;

    /// The place one step inside.
    fn inside(&self, step: Step) -> Box<dyn Place + '_>;
}
