//! The context in which a command is decided.

use std::fmt::Display;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{LimitExceeded, Metadata, Name, Principal, PrincipalKind, Rejected, escape, limits};

/// Facts for a decision besides the events. A decision that needs the time takes it from here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandContext {
    /// The time of the writer's clock, in milliseconds since 1970. If the newest event that the decision has read is
    /// later, it is the time of that event. An event more than a minute ahead of the clock
    /// ([`AHEAD_MAX_MS`](crate::AHEAD_MAX_MS)) does not count. Such an event lies in the future of the decision, so
    /// compute an age with `saturating_sub`.
    pub now_ms: u64,
    /// The id of this command.
    pub command_id: String,
    /// Who gives the command, if known. For a reaction it is the principal of the event that caused the reaction.
    pub principal: Option<Principal>,
    /// Whether the stack itself gives the command, as a reaction or at its time. Then the principal is the person or
    /// program that caused it.
    pub is_of_stack: bool,
}

impl CommandContext {
    /// Whether the caller is a person other than `owner`. People are the subjects of tokens of the issuer with the
    /// alias `main`; the subjects of other tokens are not people. Programs, callers who sign with IAM, and the stack
    /// itself act for everybody.
    #[must_use]
    pub fn is_other_person(&self, owner: &impl Display) -> bool {
        let caller = self.principal.as_ref().filter(|_| !self.is_of_stack);
        caller.is_some_and(|caller| caller.kind == PrincipalKind::Jwt && !caller.is_person(owner))
    }
}

/// The context of a command: who gave it, when, why, and how often it may take effect.
#[derive(Clone, Debug, Default)]
pub struct Envelope {
    /// Facts for the decision.
    pub context: CommandContext,
    /// The metadata of each event of the command.
    pub metadata: Metadata,
    /// With a key, the command takes effect once, however often it is sent.
    pub idempotency_key: Option<String>,
    /// The time of the event that caused the command, in milliseconds since 1970. The command's events are later.
    pub cause_ms: Option<u64>,
    /// When to give up, in milliseconds since 1970 by the machine's clock. With `None`, the log's own limits decide.
    pub deadline_ms: Option<u64>,
}

impl Envelope {
    /// The envelope for a command of this slice without a key. Its events name the slice.
    #[must_use]
    pub fn written_by(&self, slice: &str) -> Self {
        let [_, mark, _] = CommandRecord::MARKS;
        self.clone().with(mark, slice.to_owned())
    }

    /// The envelope for a command whose events are its record. They carry its marks.
    #[must_use]
    pub fn marked(&self, record: &CommandRecord) -> Self {
        let [.., sha256] = CommandRecord::MARKS;
        self.of_command(record, sha256)
    }

    /// The envelope for a command whose record is an item. Its events repeat the item's contents, so that a copy of
    /// them can restore the item.
    #[must_use]
    pub fn itemized(&self, record: &CommandRecord) -> Self {
        self.of_command(record, CommandRecord::ITEM)
    }

    fn of_command(&self, record: &CommandRecord, hash: &str) -> Self {
        let [key, slice, _] = CommandRecord::MARKS;
        let CommandRecord { slice: of, key: value, sha256 } = record;
        let with_key = self.clone().with(key, value.clone());
        with_key.with(slice, of.to_string()).with(hash, sha256.clone())
    }

    /// The envelope for the events that a rejection leaves.
    #[must_use]
    pub fn rejected(&self, rejected: &Rejected) -> Self {
        let rejected = serde_json::to_string(rejected).expect("texts are keys of its maps");
        self.clone().with(CommandRecord::REJECTION, rejected)
    }

    fn with(mut self, mark: &str, text: String) -> Self {
        self.metadata.insert(mark, text).expect("the log reserves none of the marks");
        self
    }
}

/// How long a repeat of a caller's command is recognized at least, in seconds. A queue keeps a message for 14 days,
/// so a message taken from a dead-letter queue is still recognized.
pub const KEY_KEPT_SECONDS: u64 = 15 * 24 * 3_600;

/// Identifies a command that takes effect once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRecord {
    /// The slice. Equal keys of different slices are different keys.
    pub slice: Name,
    /// The caller's idempotency key.
    pub key: String,
    /// SHA-256 of the command in canonical JSON, in hexadecimal. It distinguishes a repeat from another command. It
    /// is empty in copies of events that lack it, such as events of older versions.
    pub sha256: String,
}

impl CommandRecord {
    /// The record of `command` under `key`.
    pub fn new(slice: impl Into<Name>, key: &str, command: &impl Serialize) -> Self {
        let sha256 = sha256(&canonical_json(command));
        Self { slice: slice.into(), key: key.to_owned(), sha256 }
    }

    /// The record of the command that wrote the event with this metadata, if the record may be an item. Events of
    /// older versions do not show whether their command had a key, so they count too.
    #[must_use]
    pub fn of_item(metadata: &Metadata) -> Option<Self> {
        let [key, slice, sha256] = Self::MARKS.map(|mark| metadata.text(mark));
        let (key, slice) = (key?.to_owned(), slice?.to_owned().into());
        let of_item = metadata.text(Self::ITEM).unwrap_or_default().to_owned();
        sha256.is_none().then_some(Self { slice, key, sha256: of_item })
    }

    /// The id of its item in the DCB log, unique among commands.
    ///
    /// # Errors
    /// The id is longer than a key may be.
    pub fn id(&self) -> Result<String, LimitExceeded> {
        let id = format!("command#{}#{}", self.slice, escape(&self.key));
        limits::key("the idempotency key", &id)?;
        Ok(id)
    }

    /// Whether the key belongs to a reaction or a due. A retried lane or a redriven dead letter can repeat such a key
    /// after any time, so it is never forgotten.
    #[must_use]
    pub fn is_of_event(&self) -> bool {
        self.key.starts_with(REACTION)
    }

    /// The marks in the metadata of events that are the record of their command: the caller's key, the slice (equal
    /// keys of different slices are different keys), and the hash of the command. [`CommandRecord::wrote`] recognizes
    /// the events by them. Other events have the first two marks as well, but not the hash.
    pub const MARKS: [&'static str; 3] = ["commandId", "slice", "commandSha256"];

    /// The mark of events whose record is an item: the hash of their command. Its name differs from the mark of
    /// events that are the record. So a decision can't take some of the events for the whole record.
    pub const ITEM: &'static str = "itemSha256";

    /// The mark of events that a rejection left: the rejection as JSON.
    pub const REJECTION: &'static str = "refusal";

    /// Whether this command wrote the event whose metadata `text` returns.
    ///
    /// # Errors
    /// Another command of the slice wrote the event under the same key.
    pub fn wrote<'m>(&self, text: impl Fn(&str) -> Option<&'m str>) -> Result<bool, KeyReused> {
        let [Some(key), Some(slice), Some(sha256)] = Self::MARKS.map(text) else {
            return Ok(false);
        };
        if key != self.key || slice != &*self.slice {
            return Ok(false);
        }
        match sha256 == self.sha256 {
            true => Ok(true),
            false => Err(KeyReused { key: self.key.clone(), event: None }),
        }
    }

    /// Checks by the hash that the item under this key belongs to this command. `first` is the item's first event.
    ///
    /// # Errors
    /// The item belongs to another command, or has no hash.
    pub fn check(
        &self,
        sha256: &str,
        first: impl FnOnce() -> Option<String>,
    ) -> Result<(), KeyReused> {
        match sha256 == self.sha256 {
            true => Ok(()),
            false => {
                let event = sha256.is_empty().then(first).flatten();
                Err(KeyReused { key: self.key.clone(), event })
            }
        }
    }
}

/// The key of the command that the event with this id causes about this thing. All such keys have the same length.
/// They have a `/`, which keys of callers can't have.
#[must_use]
pub fn reaction_key(event_id: &str, about: &str) -> String {
    // JSON gives every pair a different text.
    let pair = canonical_json(&[event_id, about]);
    format!("{REACTION}{}", sha256(&pair))
}

/// Prefix of the keys of reactions.
pub(crate) const REACTION: &str = "reaction/";

pub(crate) fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The idempotency key was used for another command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("idempotency key {key:?} {}", of(event.as_deref()))]
pub struct KeyReused {
    /// The key.
    pub key: String,
    /// The first event under the key, if the log can't tell whether it belongs to the same command. This happens if
    /// an older version has written the event and it was copied.
    pub event: Option<String>,
}

fn of(event: Option<&str>) -> String {
    match event {
        None => "belongs to another command; use a new key".to_owned(),
        Some(event) => format!(
            "has the event {event}, which does not say of which command; look whether it is of this one, and use a new key if \
             it is not"
        ),
    }
}

/// JSON with sorted keys, and without nulls and white space. Equal values have equal texts, and a new field that is
/// `None` changes nothing. Nulls in a list stay, because they have a place.
pub fn canonical_json(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).expect("commands are maps with text keys");
    sorted(value).to_string()
}

/// Sorts explicitly: maps keep the order of insertion with serde_json's `preserve_order`, and any crate of a build
/// can turn that on.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> =
                map.into_iter().filter(|(_, value)| !value.is_null()).collect();
            entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
            entries.into_iter().map(|(key, value)| (key, sorted(value))).collect()
        }
        Value::Array(values) => values.into_iter().map(sorted).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_marks_of_a_command_identify_its_events() {
        let record =
            |slice: &'static str, key, n: u32| CommandRecord::new(slice, key, &json!({ "n": n }));
        let mine = record("rename", "k", 1);
        let check = |other: CommandRecord, expected| {
            let metadata = Envelope::default().marked(&other).metadata;
            assert_eq!(mine.wrote(|mark| metadata.text(mark)), expected, "{other:?}");
        };
        check(mine.clone(), Ok(true));
        check(record("rename", "l", 1), Ok(false));
        check(record("register", "k", 1), Ok(false));
        check(record("rename", "k", 2), Err(KeyReused { key: "k".to_owned(), event: None }));
        // A command without a key may have an id that is a key of another command.
        let unmarked = Envelope::default().with("commandId", "k".to_owned()).written_by("rename");
        assert_eq!(mine.wrote(|mark| unmarked.metadata.text(mark)), Ok(false));
        // An event whose record is an item is not a record itself, and events that are the record need no item.
        let [marked, itemized] = [Envelope::marked, Envelope::itemized]
            .map(|with| with(&Envelope::default(), &mine).metadata);
        assert_eq!(mine.wrote(|mark| itemized.text(mark)), Ok(false));
        assert_eq!(CommandRecord::of_item(&marked), None);
        assert_eq!(CommandRecord::of_item(&itemized), Some(mine.clone()));
        // An older event does not show whether it belongs to the same command.
        let older = CommandRecord::of_item(&unmarked.metadata).expect("it may have had a key");
        let check = |sha256: &str| mine.check(sha256, || Some("a:b/3".to_owned()));
        assert_eq!(check(&mine.sha256), Ok(()));
        let reused = |sha256: &str| check(sha256).expect_err("another's").to_string();
        assert_eq!(
            reused("a hash"),
            "idempotency key \"k\" belongs to another command; use a new key"
        );
        assert_eq!(
            reused(&older.sha256),
            "idempotency key \"k\" has the event a:b/3, which does not say of which command; look whether it is of this \
             one, and use a new key if it is not"
        );
    }

    #[test]
    fn the_key_of_a_reaction_is_short_and_unique_to_event_and_thing() {
        let key = reaction_key("e/1", "productId:lamp");
        assert_eq!(key, reaction_key("e/1", "productId:lamp"));
        assert_ne!(key, reaction_key("e/2", "productId:lamp"));
        assert_ne!(key, reaction_key("e/1", "productId:desk"));
        assert_ne!(reaction_key("e", "1a"), reaction_key("e1", "a"));
        let long = reaction_key(&"p".repeat(2_048), &"t".repeat(2_048));
        assert_eq!((key.len(), long.len()), (73, 73));
    }

    #[test]
    fn canonical_json_leaves_out_members_that_are_null() {
        let check = |value: Value, expected: &str| assert_eq!(canonical_json(&value), expected);
        check(json!({ "b": { "d": null, "c": 1 }, "a": null }), r#"{"b":{"c":1}}"#);
        check(json!({ "b": [{ "a": null }, null, 1] }), r#"{"b":[{},null,1]}"#);
    }
}
