//! JSON that a person may have written. An error names the field and its valid values, and no type of the program.

use anyhow::{Error, Result, anyhow};
use ringfence_core::json::{JsonError, LEVELS_MAX, read};
use ringfence_lambda::slice::plain;
use serde::de::DeserializeOwned;

/// Parses JSON. `whole` names it for a person.
///
/// # Errors
/// The text is not JSON or repeats a key. Or a field is missing, is unknown, or has an invalid value.
pub(crate) fn from_json<T: DeserializeOwned>(whole: &str, text: &str) -> Result<T> {
    let json = read(text, LEVELS_MAX).map_err(|error| unreadable(whole, &error))?;
    serde_path_to_error::deserialize(json).map_err(|error| {
        let path = error.path().to_string();
        // This is the path of the whole document.
        let path = if path == "." { "" } else { &path };
        let (field, message) = plain(whole, path, &error.inner().to_string());
        anyhow!("{field}: {message}")
    })
}

/// Why a text can't be read. `whole` names it for a person.
fn unreadable(whole: &str, error: &JsonError) -> Error {
    match &error.path {
        path if path.is_empty() => anyhow!("{whole} {}", error.problem),
        _ => anyhow!("{error}"),
    }
}
