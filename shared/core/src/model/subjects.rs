//! Whose the personal values of an event or a command are.

use serde_json::{Map, Value};

use super::personal::{Form, OF, PLAIN, has, values};

/// The fields that name the subjects of an event or a command. Names are those of the JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subjects {
    /// The field marked `#[subject]`.
    pub of_all: Option<&'static str>,
    /// The fields marked `#[personal(of = "…")]`, each with the field that has its subject.
    pub of_fields: &'static [(&'static str, &'static str)],
}

impl Subjects {
    /// The subjects of a type without personal data.
    pub const NONE: Self = Self { of_all: None, of_fields: &[] };

    /// Gives each personal value of a payload its subject, if it has none yet.
    ///
    /// # Errors
    /// A value has no subject, or the payload has a value that only a vault makes.
    pub fn name(&self, payload: &mut Value) -> Result<(), SubjectError> {
        let Value::Object(fields) = payload else { return Ok(()) };
        let subject = |fields: &Map<String, Value>, name: &str| {
            let of = self.of_fields.iter().find(|(field, _)| *field == name);
            let of = of.map(|(_, of)| *of).or(self.of_all)?;
            fields.get(of).cloned()
        };
        let of: Vec<_> = fields.keys().map(|name| subject(fields, name)).collect();
        for ((name, value), of) in fields.iter_mut().zip(of) {
            if has(value, Form::Sealed) {
                return Err(SubjectError::Sealed(name.clone()));
            }
            for form in [Form::Marked, Form::Forgotten] {
                for value in values(value, form) {
                    let (value, of) = (value.as_object_mut().expect("a form is an object"), &of);
                    value.remove(PLAIN);
                    if !value.contains_key(OF) {
                        let of = of.clone().ok_or_else(|| SubjectError::Missing(name.clone()))?;
                        value.insert(OF.to_owned(), of);
                    }
                    match value[OF].as_str().map(str::len) {
                        Some(1..=SUBJECT_BYTES_MAX) => {}
                        Some(bytes) => return Err(SubjectError::Length(name.clone(), bytes)),
                        None => return Err(SubjectError::NotText(name.clone())),
                    }
                }
            }
        }
        Ok(())
    }
}

/// The most bytes of a subject's id.
pub const SUBJECT_BYTES_MAX: usize = 1_024;

/// Why personal values of a payload can't be sealed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubjectError {
    /// Nobody knows whose they are.
    #[error(
        "field `{0}` has personal data, and no field says of whom: mark the field of the subject's id with `#[subject]`, or \
         this one with `#[personal(of = \"…\")]`"
    )]
    Missing(String),
    /// The id of the subject is not text in JSON.
    #[error("field `{0}` has personal data, and the id of their subject must be text in JSON")]
    NotText(String),
    /// The id of the subject is empty or too long for a key of a table.
    #[error(
        "field `{0}` has personal data, and the id of their subject has {1} bytes; it must have 1 to {SUBJECT_BYTES_MAX}"
    )]
    Length(String, usize),
    /// The payload has a sealed value, which could be another subject's.
    #[error("field `{0}` has the key `$sealed`, which only sealed values have: use another key")]
    Sealed(String),
}
