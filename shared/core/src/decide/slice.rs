//! One use case, on any log: command, decision, reaction, cases.

use std::{borrow::Cow, fmt::Display, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    BoundaryId, Catalog, CatalogError, CommandContext, Consistency, Current, CurrentError, Event,
    Lane, LogName, Query, Reads, Rejection, SequencedEvent, State, Subjects, Tag, TagSchema,
    Upcasts, Writes,
    decide::case::Case,
    model::current::{Versioned, current},
    personal,
};

/// A command. Derive it: fields named `*_id` and `*_ids` are tags, JSON is camelCase, and an unknown field is refused.
/// A repeat under an idempotency key is recognized by its JSON, so equal commands must have equal JSON: use `Vec` or
/// `BTreeSet`, whose order is fixed, not `HashSet`.
pub trait Command: Serialize + DeserializeOwned + JsonSchema + Send + Sync {
    /// A description, for people: the first paragraph of its type's doc comment.
    const ABOUT: &'static str = "";
    /// The tags of each variant; a struct has one.
    const SHAPES: &'static [&'static [TagSchema]];

    /// The shape of this command.
    fn shape(&self) -> &'static [TagSchema];

    /// The tags of this command, in the order of its fields.
    fn tags(&self) -> Vec<Tag>;

    /// The subjects of its personal data.
    fn subjects(&self) -> Subjects {
        Subjects::NONE
    }
}

/// An event as the EventTopic delivers it: the `detail` of the bus's entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TopicEvent {
    /// Unique to the event, for deduplication.
    pub id: String,
    /// Type name.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The partition that stores it.
    pub partition: String,
    /// Its number in the partition.
    pub slot: u64,
    /// When it was recorded: RFC 3339, UTC.
    pub recorded_at: String,
    /// Its tags.
    pub tags: Vec<Tag>,
    /// The version of the payload; absent for version 1.
    #[serde(rename = "schema", default = "first", skip_serializing_if = "is_first")]
    pub version: u32,
    /// The payload, as stored.
    pub data: Value,
    /// Metadata by key.
    pub meta: crate::Metadata,
    /// The name of the replay that sends the event again; absent for a new event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<String>,
}

impl TopicEvent {
    /// A new event, as the EventTopic delivers it.
    #[must_use]
    pub fn new(event: SequencedEvent) -> Self {
        Self {
            id: event.id(),
            partition: event.partition.to_string(),
            slot: event.slot,
            recorded_at: event.recorded_at(),
            event_type: event.event_type,
            tags: event.tags,
            version: event.version,
            data: event.data,
            meta: event.metadata,
            replay: None,
        }
    }

    /// The id of the event's stream, which the payload of an event of a stream need not have.
    ///
    /// # Errors
    /// The event belongs to the DCB log, or the id is not valid for this type.
    pub fn stream_id<T: FromStr<Err: Display>>(&self) -> Result<T, serde_json::Error> {
        BoundaryId::stored(&*self.partition).id_of_stream()
    }
}

fn first() -> u32 {
    1
}

fn is_first(version: &u32) -> bool {
    *version == first()
}

impl Versioned for TopicEvent {
    fn id(&self) -> String {
        self.id.clone()
    }

    fn shape(&self) -> (&str, u32) {
        (&self.event_type, self.version)
    }

    fn payload(&mut self) -> (&mut u32, &mut Value) {
        (&mut self.version, &mut self.data)
    }
}

/// A context: the events, value types, slices and views that belong together, on one log. A type such as `struct
/// Ordering;` stands for it.
pub trait Context {
    /// Name in kebab case: the first part of its slices' HTTP paths, and the source of its events on the
    /// EventTopic.
    const NAME: &'static str;
    /// The log of its events. Nothing else names the log.
    type Log: LogName;

    /// Declares its events.
    ///
    /// # Errors
    /// The schemas contradict each other.
    fn catalog() -> Result<Catalog, CatalogError>;
}

/// The log of a slice's context.
pub type LogOf<S> = <<S as Slice>::Context as Context>::Log;

/// The events that a slice's state is folded from.
pub type ReadsOf<S> = <<S as Slice>::State as State>::Reads;

/// The type of an event that a slice reacts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cause {
    /// The context that publishes it.
    pub context: &'static str,
    /// Its type.
    pub event_type: &'static str,
    /// The upcasts of the type.
    pub upcasts: Upcasts,
}

impl Cause {
    /// The type `E`, which the context of this name publishes.
    #[must_use]
    pub const fn of<E: Event>(context: &'static str) -> Self {
        Self { context, event_type: E::NAME, upcasts: E::UPCASTS }
    }

    /// A type by its names, if the crate of its context is not at hand. Version 1 is known. If there are more, the
    /// slice has its own upcasts: `Cause { upcasts: Upcasts(&[…]), ..Cause::named(…) }`.
    #[must_use]
    pub const fn named(context: &'static str, event_type: &'static str) -> Self {
        Self { context, event_type, upcasts: Upcasts::NONE }
    }

    /// The event in the newest version of its type.
    ///
    /// # Errors
    /// The event has a newer version, or an upcast fails.
    pub fn current<'e>(
        &self,
        event: &'e TopicEvent,
    ) -> Result<Current<'e, TopicEvent>, CurrentError> {
        current(Cow::Borrowed(event), self.upcasts)
    }
}

/// Who gives the commands of a slice over HTTP, on its path or by the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callers {
    /// Callers with one of the [scopes](Slice::SCOPES). People change only their own things, because `decide` compares
    /// the owner with the caller ([`CommandContext::is_other_person`]). The checks of a stack name a slice that does
    /// not.
    Owners,
    /// The same callers, and each may also change things of other people.
    Anybody,
    /// Nobody: the slice has no route and no scopes. Reactions, deadlines, direct invokes and whoever may write to the
    /// queue still give the command.
    Nobody,
}

/// Whether the slice reads or writes personal data, or its command has some. Then its function needs a vault.
#[must_use]
pub fn is_personal<S: Slice>() -> bool {
    let writes = S::Writes::SCHEMAS.iter().any(|schema| schema.subjects != Subjects::NONE);
    let is_blind = || S::SHAPES.iter().copied().flatten().any(|tag| tag.blind);
    writes || !ReadsOf::<S>::PERSONAL.is_empty() || is_blind() || personal::is_in::<S>()
}

/// The scopes of a slice's route; `None` if the slice has no route. A token needs one of them.
///
/// # Panics
/// The slice has scopes and no route. In a `const` block the compiler says so.
#[must_use]
#[track_caller]
pub const fn route_scopes<S: Slice>() -> Option<&'static [&'static str]> {
    match S::CALLERS {
        Callers::Owners | Callers::Anybody => Some(S::SCOPES),
        Callers::Nobody => {
            assert!(
                S::SCOPES.is_empty(),
                "a slice whose CALLERS are Nobody has SCOPES, which no token can use: remove one of the two"
            );
            None
        }
    }
}

/// One use case. `decide` is pure.
pub trait Slice: Command + 'static {
    /// Name in kebab case: of the Lambda, and the last part of its HTTP path.
    const NAME: &'static str;
    /// The types of events that it reacts to.
    const REACTS_TO: &'static [Cause] = &[];
    /// Who gives the command over HTTP.
    const CALLERS: Callers = Callers::Owners;
    /// A caller with a token needs one of these scopes to give the command over HTTP. Without scopes, no caller needs
    /// one. Reactions, direct invokes and callers who sign with IAM never need one.
    const SCOPES: &'static [&'static str] = &[];

    /// The order in which it reacts to events. `None`: the EventTopic delivers each within a second or so, in any
    /// order, and sometimes twice. With a lane it is fed from the index. It reacts to an event when its commands for
    /// the event before it in the lane have their answers. Different lanes do not wait for each other.
    const ORDER: Option<Lane> = None;

    /// The consistency of the first read. An eventually consistent read has half the price and is just as safe. A
    /// strong one is for a slice whose retries cost more than that.
    const CONSISTENCY: Consistency = Consistency::Eventual;

    /// The context that it belongs to.
    type Context: Context;
    /// The state that the decision depends on.
    type State: State;
    /// The events that it writes.
    type Writes: Writes;
    /// Why it rejects a command.
    type Rejection: Rejection;

    /// The events that follow from the command; empty if there is nothing to change.
    ///
    /// # Errors
    /// The command is rejected.
    fn decide(
        &self,
        state: &Self::State,
        context: &CommandContext,
    ) -> Result<Vec<Self::Writes>, Self::Rejection>;

    /// The events that a rejection leaves; by default there are none. They are appended under the condition that the
    /// rejection still follows from what was read. A repeat under an idempotency key is rejected in the same way.
    ///
    /// They belong where rejections are not conflicts for others, such as a partition of the caller. The slice must
    /// read what it writes, so the same rejection need not be recorded again, and a repeat finds it: a slice that does
    /// not fails under a key ([`HandleError::Leaves`](crate::HandleError::Leaves)).
    fn leaves(
        &self,
        _rejected_for: &Self::Rejection,
        _state: &Self::State,
        _context: &CommandContext,
    ) -> Vec<Self::Writes> {
        Vec::new()
    }

    /// The query of a command of this shape with these tags. A slice can write another one, for example to read every
    /// event of a type although the command has one of its tags. The function takes the tags and not the command, so
    /// the query can be planned when a function starts.
    fn query(shape: &[TagSchema], tags: Vec<Tag>, catalog: &Catalog) -> Query {
        Query::of_command(shape, tags, ReadsOf::<Self>::TYPES.iter().copied(), catalog)
    }

    /// The commands for an event of one of the types in [`Slice::REACTS_TO`].
    ///
    /// # Errors
    /// The payload does not have the shape of the type.
    fn react(_event: &Current<'_, TopicEvent>) -> Result<Vec<Self>, serde_json::Error> {
        Ok(Vec::new())
    }

    /// What a reaction's command is about: its tags with one value, without the blind ones. Of all commands that one
    /// event leads to about the same thing, only one takes effect, even if a later version of [`Slice::react`] makes
    /// another.
    fn about(&self) -> String {
        // The hash of a personal value could be guessed.
        let is_out =
            |tag: &Tag| self.shape().iter().any(|of| (of.many || of.blind) && of.key == tag.key);
        let tags: Vec<Tag> = self.tags().into_iter().filter(|tag| !is_out(tag)).collect();
        BoundaryId::composite(&tags).to_string()
    }

    /// Its rules, as cases ([`crate::kit`]). A test of its context runs them in memory, and refuses a slice without
    /// cases. The checks of a stack run them on DynamoDB.
    #[must_use]
    fn cases() -> Vec<Case<Self>> {
        Vec::new()
    }
}
