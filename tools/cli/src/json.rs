//! JSON that a person may have written. An error names the field and what it takes, and no type of the program.

use anyhow::{Error, Result, anyhow};
use ringfence_core::json::{JsonError, LEVELS_MAX, read};
use ringfence_lambda::slice::plain;
use serde::de::DeserializeOwned;

/// Reads a text of JSON. `whole` names it for a person.
///
/// # Errors
/// It can't be read so that nothing is lost. Or a field is missing, is not known, or has a value that it does not take.
pub(crate) fn from_json<T: DeserializeOwned>(whole: &str, text: &str) -> Result<T> {
    let json = read(text, LEVELS_MAX).map_err(|error| unreadable(whole, &error))?;
    serde_path_to_error::deserialize(json).map_err(|error| {
        let path = error.path().to_string();
        // The path of the whole.
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
