//! The record of a command that may have personal data.

use std::collections::BTreeSet;

use futures::future::BoxFuture;
use serde_json::Value;

use crate::{
    Command, CommandRecord, Name, SubjectError, canonical_json,
    model::command::sha256,
    personal::{Form, subject, values},
};

/// The record of a command under `key`. If the command has personal data, its hash is made under the keys of all their
/// subjects, one after the other: from another hash anybody could guess the values, also after a subject is forgotten.
/// `fingerprint` makes it from a subject and a text: the command's, then the hash so far.
///
/// # Errors
/// A value has no subject, or `fingerprint` fails.
pub async fn record_of<'f, C: Command, E: From<SubjectError>>(
    slice: impl Into<Name>,
    key: &str,
    command: &C,
    fingerprint: impl Fn(String, String) -> BoxFuture<'f, Result<String, E>>,
) -> Result<CommandRecord, E> {
    let mut json = serde_json::to_value(command).expect("commands are maps with text keys");
    command.subjects().name(&mut json)?;
    let of = |value: &mut Value| subject(value).map(str::to_owned);
    let subjects: BTreeSet<_> =
        values(&mut json, Form::Marked).into_iter().filter_map(of).collect();
    let mut hash = canonical_json(&json);
    if subjects.is_empty() {
        hash = sha256(&hash);
    }
    for subject in subjects {
        hash = fingerprint(subject, hash).await?;
    }
    Ok(CommandRecord { slice: slice.into(), key: key.to_owned(), sha256: hash })
}
