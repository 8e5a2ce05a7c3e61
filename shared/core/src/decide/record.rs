//! The record of a command that may have personal data.

use std::collections::BTreeSet;

use futures::future::BoxFuture;
use serde_json::Value;

use crate::{
    Command, CommandContext, CommandRecord, LogError, Name, SubjectError, VaultError,
    canonical_json,
    model::command::sha256,
    personal::{Form, forget, subject, values},
};

/// The record of a command under `key`. If the command has personal data, its hash is made under the keys of all their
/// subjects, one after the other: from another hash anybody could guess the values, also after a subject is forgotten.
/// `fingerprint` makes it from a subject and a text: the command's, then the hash so far. It makes none for a subject
/// whose values the command may lose because they are forgotten.
///
/// # Errors
/// A value has no subject, or `fingerprint` fails.
pub async fn record_of<'f, C: Command, E: From<SubjectError>>(
    slice: impl Into<Name>,
    key: &str,
    command: &C,
    fingerprint: impl Fn(String, String) -> BoxFuture<'f, Result<Option<String>, E>>,
) -> Result<CommandRecord, E> {
    let mut json = serde_json::to_value(command).expect("commands are maps with text keys");
    command.subjects().name(&mut json)?;
    let sha256 = 'whole: loop {
        let subjects = subjects(&mut json);
        let mut hash = canonical_json(&json);
        if subjects.is_empty() {
            break sha256(&hash);
        }
        for subject in subjects {
            match fingerprint(subject.clone(), hash).await? {
                Some(made) => hash = made,
                None => {
                    forget(&mut json, &subject);
                    continue 'whole;
                }
            }
        }
        break hash;
    };
    Ok(CommandRecord { slice: slice.into(), key: key.to_owned(), sha256 })
}

/// Whether a command is refused because a subject is forgotten: its caller has sent values of the subject. A command of
/// the stack is not: its event has happened, and others wait for it. It loses the values.
#[must_use]
pub fn refuses(command: &impl Command, context: &CommandContext, subject: &str) -> bool {
    let mut json = serde_json::to_value(command).expect("commands are maps with text keys");
    !context.is_of_stack
        && command.subjects().name(&mut json).is_ok()
        && subjects(&mut json).contains(subject)
}

/// The subjects of a command's values.
fn subjects(command: &mut Value) -> BTreeSet<String> {
    let of = |value: &mut Value| subject(value).map(str::to_owned);
    values(command, Form::Marked).into_iter().filter_map(of).collect()
}

/// A fingerprint; none if the subject is forgotten and the command loses its values.
pub(crate) fn spared(
    fingerprint: Result<String, LogError>,
    refuses: bool,
) -> Result<Option<String>, LogError> {
    match fingerprint {
        Err(LogError::Vault(VaultError::Forgotten(_))) if !refuses => Ok(None),
        made => Ok(Some(made?)),
    }
}
