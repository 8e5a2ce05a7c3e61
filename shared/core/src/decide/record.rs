//! The record of a command that may have personal data.

use serde_json::Value;

use crate::{
    Command, CommandRecord, Name, SubjectError, canonical_json,
    model::command::sha256,
    personal::{Form, subject, values},
};

/// The record of a command under `key`. If the command has personal data, its hash is made under the key of the subject
/// of the first value: from another hash anybody could guess the values, also after the subject is forgotten.
/// `fingerprint` makes it from the subject and the command's text.
///
/// # Errors
/// A value has no subject, or `fingerprint` fails.
pub async fn record_of<C: Command, E: From<SubjectError>>(
    slice: impl Into<Name>,
    key: &str,
    command: &C,
    fingerprint: impl AsyncFnOnce(&str, &str) -> Result<String, E>,
) -> Result<CommandRecord, E> {
    let mut json = serde_json::to_value(command).expect("commands are maps with text keys");
    command.subjects().name(&mut json)?;
    let of = |value: &mut Value| subject(value).map(str::to_owned);
    let of = values(&mut json, Form::Marked).into_iter().next().and_then(of);
    let text = canonical_json(&json);
    let sha256 = match of {
        None => sha256(&text),
        Some(subject) => fingerprint(&subject, &text).await?,
    };
    Ok(CommandRecord { slice: slice.into(), key: key.to_owned(), sha256 })
}
