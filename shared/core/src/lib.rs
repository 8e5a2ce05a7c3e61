//! Event sourcing with dynamic consistency boundaries (DCB): the pure core.
//!
//! A [`Slice`] is one use case: a command, the events that it reads, a fold and a decision. [`handle`]
//! runs it over any [`EventLog`]: read, fold, decide, append under the condition that nothing the
//! decision read has changed. The condition is what was seen ([`Seen`]): the next slot of each partition
//! that was read is free, and the fence of each other boundary counts as many events. Why that is enough is
//! in docs/no-lost-update.md. The rules whose numbers are in comments are in docs/protocol.md.
//!
//! # Without the derive macros
//!
//! Event types that are known only at run time have schemas that own their names. A [`Plan`] says what a
//! decision reads, [`EventLog::read_with_seen`] gives the events and the condition of the append, and a
//! conflict names what was added to which boundary. References, boxes and `Arc`s of logs are logs.
//!
//! ```
//! use std::sync::Arc;
//!
//! use ringfence_core::{
//!     Append, Catalog, Change, Consistency, Envelope, EventLog, EventSchema, LogError, MemoryLog, NewEvent, Plan,
//!     Query, QueryItem, Subjects, Tag, TagSchema, Upcasts,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # futures::executor::block_on(async {
//! // As from a file: the name of a context, types of events, and the tag that partitions them.
//! let (context, types, key) = ("rooms".to_owned(), ["Booked", "Left"].map(str::to_owned), "roomId".to_owned());
//! let schemas: Vec<EventSchema> = types
//!     .iter()
//!     .map(|name| EventSchema {
//!         name: name.clone().into(),
//!         tags: vec![TagSchema {
//!             key: key.clone().into(),
//!             partition: true,
//!             cross_partition: false,
//!             strong: false,
//!             many: false,
//!             required: true,
//!             computed: false,
//!             blind: false,
//!         }]
//!         .into(),
//!         separator: '/',
//!         read_as_composite: false,
//!         read_by_type: false,
//!         fenced: false,
//!         copies: 0,
//!         upcasts: Upcasts::NONE,
//!         write: None,
//!         retired: false,
//!         subjects: Subjects::NONE,
//!     })
//!     .collect();
//! let catalog = Catalog::new(context, schemas)?;
//! let log: Arc<dyn EventLog> = Arc::new(MemoryLog::new(catalog.clone()));
//!
//! let tags = vec![Tag::new(key, "r1")];
//! let types = types.map(Into::into).to_vec();
//! let query = Query { items: vec![QueryItem { tags: tags.clone(), types }] };
//! let plan = Plan::new(&query, &catalog)?;
//! let envelope = Envelope::default();
//! let (events, seen) = log.read_with_seen(&plan, Consistency::Eventual, &envelope).await?;
//! assert!(events.is_empty());
//!
//! let data = serde_json::json!({ "roomId": "r1" });
//! let booked = NewEvent { event_type: "Booked".into(), tags, data };
//! let append = || Append {
//!     events: vec![booked.clone()],
//!     seen: Some(&seen),
//!     record: None,
//!     envelope: &envelope,
//! };
//! log.append(append()).await?;
//! match log.append(append()).await {
//!     Err(LogError::Conflict(conflict)) => {
//!         assert_eq!(conflict.to_string(), "roomId:r1 has Booked in slot 1, which was free");
//!         assert!(matches!(conflict.0[..], [Change::Slot { slot: 1, .. }]));
//!     }
//!     other => panic!("nobody saw the first booking: {other:?}"),
//! }
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! A limit has a kind, by which a program tells one from another:
//!
//! ```
//! use ringfence_core::{LimitKind, LogError};
//!
//! fn advice(error: &LogError) -> Option<&'static str> {
//!     match error {
//!         LogError::Limit(limit) if limit.kind == LimitKind::Event => Some("store the picture elsewhere"),
//!         LogError::Limit(limit) => Some(limit.advice),
//!         _ => None,
//!     }
//! }
//! # let limit = ringfence_core::LimitExceeded::check(LimitKind::Event, "Booked", "bytes", 2, 1, "use less");
//! # assert_eq!(advice(&limit.unwrap_err().into()), Some("store the picture elsewhere"));
//! ```
//!
//! Architecture invariant: nothing here reads a clock, makes a random number or does I/O.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

// The derive macros name the crate `::ringfence`, inside it too.
extern crate self as ringfence;

mod boundary;
mod decide;
mod error;
pub mod json;
pub mod kit;
pub mod limits;
mod log;
mod model;
mod time;
mod visible;

pub use boundary::catalog::{Catalog, CatalogError, Scope};
pub use boundary::catalogs::Catalogs;
pub use boundary::effect::{Effect, FenceEffect, Target};
pub use boundary::filing::{Filing, FilingError};
pub use boundary::plan::{Access, Clause, Plan, PlanError, Read};
pub use boundary::query::{Query, QueryItem};
pub use boundary::reading::{Page, Reading};
pub use boundary::seen::{Counts, Extent, Prefix, Seen};
pub use boundary::snapshot::Snapshots;
pub use decide::cache::Decisions;
pub use decide::check::{SliceError, check, check_writes, plans};
pub use decide::decision::decide;
pub use decide::due::{Due, DueRow};
pub use decide::handle::{ATTEMPTS_MAX, BOUNDARIES_MAX, HandleError, Handled, handle};
pub use decide::on_log::{OnEvents, OnLog};
pub use decide::once::events_are_record;
pub use decide::record::{record_of, refuses};
pub use decide::slice::{
    Callers, Cause, Command, Context, LogOf, ReadsOf, Slice, TopicEvent, is_personal, route_scopes,
};
pub use error::{Change, Conflict, LogError, StoreError, VaultError, chain};
pub use limits::{
    ACTIONS_MAX, EVENT_BYTES_MAX, LimitExceeded, LimitKind, SNAPSHOT_BYTES_MAX,
    TRANSACTION_BYTES_MAX, TYPES_MAX,
};
pub use log::event_log::{Append, Appended, Consistency, EventLog, Outcome};
pub use log::memory::MemoryLog;
pub use log::storable;
pub use log::vault::{KEPT_OPEN_MS, Vault, Vaulted, is_open_too_long};
pub use model::boundary::{BOUNDARY_BYTES_MAX, Boundary, BoundaryId, escape, unescape};
pub use model::command::{
    CommandContext, CommandRecord, Envelope, KEY_KEPT_SECONDS, KeyReused, canonical_json,
    reaction_key,
};
pub use model::current::{Current, CurrentError, NewerVersion, Reads};
pub use model::downcast::DowncastError;
pub use model::event::{
    Event, EventError, EventRef, EventSchema, EventVisitor, NewEvent, SequencedEvent, TagSchema,
    Writes,
};
pub use model::kind::{LogKind, LogName};
pub use model::lane::Lane;
pub use model::mail::{MAIL_ADDRESS_BYTES_MAX, MailAddress, MailAddressError};
pub use model::metadata::{Metadata, MetadataError};
pub use model::origin::Origin;
pub use model::personal;
pub use model::personal::{Personal, Sealed};
pub use model::place::{Place, PlaceError, rfc3339};
pub use model::principal::{Principal, PrincipalKind};
pub use model::rejection::{Never, Rejected, Rejection};
pub use model::state::State;
pub use model::subjects::{SUBJECT_BYTES_MAX, SubjectError, Subjects};
pub use model::tag::{Name, Tag, TagValue};
pub use model::trace::{Traceparent, TraceparentError};
pub use model::upcast::{FieldError, Fields, Upcast, UpcastError, Upcasts, WrittenVersion};
pub use model::value::{ID_BYTES_MAX, Id, IdError, List, ListError, Text, TextError};
pub use ringfence_derive::{Command, Event, Reads, Writes, value};
pub use time::{AHEAD_MAX_MS, OwnTime, is_followed};
pub use visible::{visible, visible_lines};

/// Names for the files of slices and contexts.
pub mod prelude {
    pub use crate::{
        Callers, Catalog, CatalogError, Cause, Command, CommandContext, Context, Current, Due,
        Event, FieldError, Fields, Lane, Never, NewEvent, Personal, Principal, PrincipalKind,
        Reads, Slice, Snapshots, State, TopicEvent, Writes, events,
        kit::{Case, DueCase, case, given, id},
    };
}

/// Names for the derive macros and [`id_type!`], not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use crate::{
        Command, Current, Event, EventError, EventSchema, EventVisitor, NewEvent, Personal, Reads,
        Subjects, Tag, TagSchema, TagValue, Upcasts, Writes, WrittenVersion,
    };
    pub use schemars;
    pub use serde;
    pub use serde_json;

    use serde::{Deserialize, Deserializer, de::DeserializeOwned, de::Error};
    use serde_json::{Map, Value};

    /// The time of the event, for a field that is marked `#[time]`.
    pub fn ms(event: &crate::SequencedEvent) -> Result<u64, serde_json::Error> {
        match event.at {
            0 => Err(Error::custom("the time at which another writer recorded it can't be read")),
            at => Ok(at),
        }
    }

    /// The id of the event's stream, for a field that is marked `#[stream]`.
    pub fn stream<T: std::str::FromStr<Err: std::fmt::Display>>(
        event: &crate::SequencedEvent,
    ) -> Result<T, serde_json::Error> {
        event.partition.id_of_stream()
    }

    /// The name of a command's variant, under `type`, and its other fields.
    pub fn variant<'de, D: Deserializer<'de>>(json: D) -> Result<(String, Value), D::Error> {
        let mut fields = Map::deserialize(json)?;
        match fields.remove("type") {
            Some(Value::String(variant)) => Ok((variant, Value::Object(fields))),
            Some(_) => Err(Error::custom("type: must be a string")),
            None => Err(Error::missing_field("type")),
        }
    }

    /// The error for a type without such a variant. Like all errors of variants, it begins with the field.
    pub fn unknown_variant<E: Error>(variant: &str, variants: &'static [&'static str]) -> E {
        E::custom(format_args!("type: {}", E::unknown_variant(variant, variants)))
    }

    /// The fields of a variant; an error begins with the field.
    pub fn from_fields<T: DeserializeOwned, E: Error>(fields: Value) -> Result<T, E> {
        serde_path_to_error::deserialize(fields).map_err(|error| {
            match error.path().to_string().as_str() {
                "." => E::custom(error.inner()),
                path => E::custom(format_args!("{path}: {}", error.inner())),
            }
        })
    }
}
