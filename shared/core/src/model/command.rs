//! What surrounds a command on its way to a decision.

use std::fmt::Display;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{LimitExceeded, Metadata, Name, Principal, PrincipalKind, Rejected, escape, limits};

/// What a decision may know besides the events: a decision that needs the time takes it from here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandContext {
    /// The time of the writer's clock, in milliseconds since 1970, or that of the newest event that the decision has
    /// read, if that is later. An event more than a minute ahead of the clock ([`AHEAD_MAX_MS`](crate::AHEAD_MAX_MS))
    /// does not count. It lies in the future of the decision, so take an age with `saturating_sub`.
    pub now_ms: u64,
    /// Names this command.
    pub command_id: String,
    /// Who gives it, if known. For a reaction that is the principal of the event that it reacts to.
    pub principal: Option<Principal>,
    /// Whether the stack gives it itself, as a reaction or at its time. Then the principal is who caused it.
    pub is_of_stack: bool,
}

impl CommandContext {
    /// Whether the caller is a person, and another one than `owner`. People are the subjects of tokens of the issuer with
    /// the alias `main`, and nobody with another token is one of them. Programs, callers who sign with IAM, and the stack
    /// itself act for everybody.
    #[must_use]
    pub fn is_other_person(&self, owner: &impl Display) -> bool {
        let caller = self.principal.as_ref().filter(|_| !self.is_of_stack);
        caller.is_some_and(|caller| caller.kind == PrincipalKind::Jwt && !caller.is_person(owner))
    }
}

/// A command's surroundings: who, when, why, and how often it may take effect.
#[derive(Clone, Debug, Default)]
pub struct Envelope {
    /// What the decision may know.
    pub context: CommandContext,
    /// The metadata of each event of the command.
    pub metadata: Metadata,
    /// With a key, the command takes effect once, however often it is sent.
    pub idempotency_key: Option<String>,
    /// When the event was recorded that caused the command, in milliseconds since 1970: the command's
    /// events are later.
    pub cause_ms: Option<u64>,
    /// When to give up, in milliseconds since 1970; `None` leaves it to the log's own bounds.
    pub deadline_ms: Option<u64>,
}

impl Envelope {
    /// The same for a command of this slice without a key: its events name the slice.
    #[must_use]
    pub fn written_by(&self, slice: &str) -> Self {
        let [_, mark, _] = CommandRecord::MARKS;
        self.clone().with(mark, slice.to_owned())
    }

    /// The same for a command whose events are its record: they carry its marks.
    #[must_use]
    pub fn marked(&self, record: &CommandRecord) -> Self {
        let [.., sha256] = CommandRecord::MARKS;
        self.of_command(record, sha256)
    }

    /// The same for a command whose record is an item: its events say what the item says, so that a copy of them has
    /// the item too.
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

    /// The same for the events that a rejection leaves.
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

/// How long a repeat of a caller's command is recognized at least, in seconds: longer than a queue keeps a message (14
/// days), so that a message taken from a dead-letter queue is.
pub const KEY_KEPT_SECONDS: u64 = 15 * 24 * 3_600;

/// Identifies a command that takes effect once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRecord {
    /// The slice; equal keys of different slices are different keys.
    pub slice: Name,
    /// The caller's idempotency key.
    pub key: String,
    /// SHA-256 of the command in canonical JSON, in hexadecimal. It tells a repeat from another command. Empty in a copy
    /// whose events do not have it, as those of older versions.
    pub sha256: String,
}

impl CommandRecord {
    /// The record of `command` under `key`.
    pub fn new(slice: impl Into<Name>, key: &str, command: &impl Serialize) -> Self {
        let sha256 = sha256(&canonical_json(command));
        Self { slice: slice.into(), key: key.to_owned(), sha256 }
    }

    /// The record of the command that wrote the event with this metadata, if it may be an item. Events of older versions
    /// do not say whether their command had a key, so they count too.
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
    /// It is longer than a key may be.
    pub fn id(&self) -> Result<String, LimitExceeded> {
        let id = format!("command#{}#{}", self.slice, escape(&self.key));
        limits::key("the idempotency key", &id)?;
        Ok(id)
    }

    /// Whether the key is that of a reaction or a due. A lane that is retried or a dead letter that is redriven repeats it
    /// after any time, so such a key is never forgotten.
    #[must_use]
    pub fn is_of_event(&self) -> bool {
        self.key.starts_with(REACTION)
    }

    /// The marks in the metadata of events that are the record of their command: the caller's key; the slice, for equal
    /// keys of different slices are different keys; the hash of the command. [`CommandRecord::wrote`] knows the events by
    /// them. Other events have the first two as well, and lack the hash.
    pub const MARKS: [&'static str; 3] = ["commandId", "slice", "commandSha256"];

    /// The mark of events whose record is an item: the hash of their command. It has another name than the mark of
    /// events that are the record. So no decision takes some of the events for all of them.
    pub const ITEM: &'static str = "itemSha256";

    /// The mark of events that a rejection left: why the command was rejected, as JSON.
    pub const REJECTION: &'static str = "refusal";

    /// Whether an event is the command's whose metadata has these texts.
    ///
    /// # Errors
    /// The event is another command's of the slice, under the same key.
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

    /// Checks that the item under this key is of this command, by the hash that it has. `first` is its first event.
    ///
    /// # Errors
    /// It is another command's, or does not say whose.
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

/// The key of the command about this thing to which the event with this id leads. Its length is the same
/// for all ids and things. It has a `/`, which keys of callers can't have.
#[must_use]
pub fn reaction_key(event_id: &str, about: &str) -> String {
    // As JSON, so that no other pair has the same text.
    let pair = canonical_json(&[event_id, about]);
    format!("{REACTION}{}", sha256(&pair))
}

/// What the keys of reactions begin with.
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
    /// The first event under the key, if the log can't say whether it is of the same command: an older version has written
    /// it, and it was copied.
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

/// JSON with sorted keys, without nulls and without white space: equal values have equal texts, and a
/// new field that is `None` changes nothing. Nulls in a list have a place and stay.
pub fn canonical_json(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).expect("commands are maps with text keys");
    sorted(value).to_string()
}

/// Sorts by hand: with serde_json's `preserve_order`, which any crate of a build can switch on,
/// maps keep the order of insertion.
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
    fn the_marks_of_a_command_tell_its_events_from_all_others() {
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
        // An event whose record is an item is no record, and a record needs no item.
        let [marked, itemized] = [Envelope::marked, Envelope::itemized]
            .map(|with| with(&Envelope::default(), &mine).metadata);
        assert_eq!(mine.wrote(|mark| itemized.text(mark)), Ok(false));
        assert_eq!(CommandRecord::of_item(&marked), None);
        assert_eq!(CommandRecord::of_item(&itemized), Some(mine.clone()));
        // Nobody can say whether an older event is of the same command.
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
    fn the_key_of_a_reaction_is_short_and_of_one_event_and_thing() {
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
