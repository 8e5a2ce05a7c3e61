//! JSON that a person may have written. An error names the field and what it takes, and no type of the program.

use anyhow::{Error, Result, anyhow};
use ringfence_lambda::plain;
use serde::de::DeserializeOwned;
use serde_json::Deserializer;

/// Reads a text of JSON. `whole` names it for a person.
///
/// # Errors
/// It is not JSON. Or a field is missing, is not known, or has a value that it does not take.
pub(crate) fn from_json<T: DeserializeOwned>(whole: &str, text: &str) -> Result<T> {
    let mut json = Deserializer::from_str(text);
    let read = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        // The path of the whole.
        let path = if path == "." { "" } else { &path };
        wrong(whole, path, error.inner())
    })?;
    json.end().map_err(|error| wrong(whole, "", &error))?;
    Ok(read)
}

fn wrong(whole: &str, path: &str, error: &serde_json::Error) -> Error {
    if !error.is_data() {
        return anyhow!("{whole} is not JSON: {error}");
    }
    let text = error.to_string();
    // A place in a text is of no use beside the path.
    let message = text.rsplit_once(" at line ").map_or(&*text, |(message, _)| message);
    let (field, message) = plain(whole, path, message);
    anyhow!("{field}: {message}")
}
