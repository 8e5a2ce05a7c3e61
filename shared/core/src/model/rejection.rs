//! Reasons of a rejection: from the slice, and as the answer has them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::personal::{Form, values};

/// The reason why a decision rejects a command, for a person (`Display`) and for a program: serialised with
/// `#[serde(tag = "code")]`. Its fields become members of the problem document, so they can't have the names of the
/// document's own members. The kit's cases check that. Personal values in it are null in the answer.
pub trait Rejection: std::error::Error + Serialize + Send {}

impl<R: std::error::Error + Serialize + Send> Rejection for R {}

/// The rejection type of a slice that rejects nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
pub enum Never {}

/// The reason of a rejection, as the answer has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rejected {
    /// For a person.
    pub message: String,
    /// For a program: an object with `code`.
    pub rejection: Value,
}

impl Rejected {
    /// Converts a rejection for the answer. Its personal values are null, because it is stored and answered in clear.
    pub fn of(rejection: &impl Rejection) -> Self {
        let message = rejection.to_string();
        let mut rejection = serde_json::to_value(rejection).unwrap_or_default();
        for form in [Form::Marked, Form::Forgotten] {
            values(&mut rejection, form).into_iter().for_each(|value| *value = Value::Null);
        }
        Self { message, rejection }
    }
}
