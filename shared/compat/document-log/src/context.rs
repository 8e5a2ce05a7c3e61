//! Contexts on the document log, and the ways to store and read the state of a document.

use std::marker::PhantomData;
use std::slice;

use ringfence_core::personal::store_plain;
use ringfence_core::{Catalog, LogKind, LogName, Reads, State};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Error, Value};

use crate::codec::Payload;
use crate::{Encoding, TipLimits};

/// Names the document log as the log of a context, and the state of its documents. The context's name is the category:
/// the part of a stream's name before the hyphen.
pub struct Documents<D>(PhantomData<D>);

impl<D: Document> LogName for Documents<D> {
    const KIND: LogKind = LogKind::Documents;

    fn snapshots() -> Vec<&'static str> {
        D::ACCESS.snapshots().iter().map(|snapshot| snapshot.name).collect()
    }
}

/// The state of a document, and how documents are stored. All decisions about a document use this state. A context has
/// one state, because a document stores it beside the events.
pub trait Document: State + Clone + Sync + 'static {
    /// The access of commands to the state; it decides which unfolds an append writes. By default, a command reads all
    /// events.
    const ACCESS: AccessStrategy<Self> = AccessStrategy::Unoptimized;
    /// The sizes at which the events of a Tip move to a calf. They can change at any time.
    const TIP: TipLimits = TipLimits::DEFAULT;
    /// The encoding of payloads, unfolds and metadata, used where it makes them smaller. It can change at any time,
    /// because reads accept every encoding.
    const ENCODING: Encoding = Encoding::Brotli;
}

/// The way to store and read the state of a document.
///
/// A context can change from `Unoptimized` to any other access at any time. It can change back from all except
/// `RollingState`, which writes no events.
#[derive(Clone, Copy)]
pub enum AccessStrategy<D: 'static> {
    /// Reads all events, backwards in pages. Writes no unfold.
    Unoptimized,
    /// The state is the last event of a type that it reads. Each append also writes this event as an unfold.
    LatestKnownEvent,
    /// Each append writes the state as one unfold; a read goes back to the newest one. A read takes an unfold of
    /// another version of the fold or of the events only if the version is older and the events were pruned.
    Snapshot(Snapshot<D>),
    /// The same with several unfolds, for example when two builds of a program run side by side. A read takes only the
    /// first of them; the others are for other builds.
    Snapshots(&'static [Snapshot<D>]),
    /// Writes only the state, as one unfold, and no events. The etag guards it.
    RollingState(Snapshot<D>),
}

/// An unfold that holds a whole state. A read that meets its type, as unfold or as event, needs nothing before it.
#[derive(Clone, Copy)]
pub struct Snapshot<D> {
    name: &'static str,
    version: u32,
    to_json: fn(&D) -> Result<Value, Error>,
    from_json: fn(Value) -> Result<D, Error>,
}

impl<D: Serialize + DeserializeOwned> Snapshot<D> {
    /// The JSON of the state, under this type name.
    #[must_use]
    pub const fn named(name: &'static str) -> Self {
        Self::of(name, |state| serde_json::to_value(state), |json| serde_json::from_value(json))
    }
}

impl<D> Snapshot<D> {
    /// The JSON of the state under this type name, converted by these functions.
    #[must_use]
    pub const fn of(
        name: &'static str,
        to_json: fn(&D) -> Result<Value, Error>,
        from_json: fn(Value) -> Result<D, Error>,
    ) -> Self {
        Self { name, version: 0, to_json, from_json }
    }

    /// Sets the version of the fold; by default it is 0. Raise it when `evolve` makes another state of the same events.
    /// Documents are then folded again. The checks of a stack compare the states, and report a version that was not
    /// raised.
    #[must_use]
    pub const fn version(self, version: u32) -> Self {
        Self { version, ..self }
    }

    /// The version of the fold.
    #[must_use]
    pub const fn fold_version(&self) -> u32 {
        self.version
    }

    /// Its type name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The number in its metadata: 1, plus one for each upcast of the context, plus the version of the fold. A catalog
    /// keeps its types, and their versions only grow. So a later build never has a smaller number, even if its state no
    /// longer reads a type.
    #[must_use]
    pub fn number(&self, catalog: &Catalog) -> u32 {
        let upcasts = catalog.schemas().map(|schema| schema.upcasts.version() - 1);
        1 + upcasts.sum::<u32>() + self.version
    }

    /// The JSON of a state.
    ///
    /// # Errors
    /// The state has no JSON.
    pub fn json(&self, state: &D) -> Result<Value, Error> {
        let mut json = (self.to_json)(state)?;
        store_plain(&mut json);
        Ok(json)
    }

    /// The state in a payload.
    pub(crate) fn read(&self, data: Value) -> Result<D, Error> {
        (self.from_json)(data)
    }

    /// The payload of a state. Fails if it can't be read back.
    fn written(&self, state: &D, catalog: &Catalog) -> Result<Payload, Error> {
        let data = self.json(state)?;
        self.read(data.clone())?;
        let version = self.number(catalog);
        Ok(Payload { version, ..Payload::new(self.name, Some(data)) })
    }
}

impl<D: Document> AccessStrategy<D> {
    /// The snapshots that are written.
    #[must_use]
    pub fn snapshots(&self) -> &[Snapshot<D>] {
        match self {
            Self::Unoptimized | Self::LatestKnownEvent => &[],
            Self::Snapshot(snapshot) | Self::RollingState(snapshot) => slice::from_ref(snapshot),
            Self::Snapshots(all) => all,
        }
    }

    /// The types of unfolds with which a read can begin. It needs no event before them.
    #[must_use]
    pub fn origins(&self) -> Vec<&'static str> {
        match self {
            Self::LatestKnownEvent => D::Reads::TYPES.to_vec(),
            _ => self.own().map(|snapshot| snapshot.name).into_iter().collect(),
        }
    }

    /// Whether a cold read begins with only the Tip, because an unfold may be enough.
    pub(crate) fn reads_unfolds(&self) -> bool {
        !matches!(self, Self::Unoptimized)
    }

    /// Whether decisions are kept as events, not in the state alone.
    #[must_use]
    pub fn keeps_events(&self) -> bool {
        !matches!(self, Self::RollingState(_))
    }

    /// Whether an append must find the whole Tip unchanged, not only its events.
    pub(crate) fn by_etag(&self) -> bool {
        !self.keeps_events()
    }

    /// The snapshot that reads take.
    pub(crate) fn own(&self) -> Option<&Snapshot<D>> {
        self.snapshots().first()
    }

    /// The snapshot of this type, if reads take it.
    pub(crate) fn snapshot(&self, event_type: &str) -> Option<&Snapshot<D>> {
        self.own().filter(|snapshot| snapshot.name == event_type)
    }

    /// Whether a read needs nothing before an event or unfold of this type.
    pub(crate) fn is_origin(&self, event_type: &str) -> bool {
        match self {
            Self::LatestKnownEvent => D::Reads::TYPES.contains(&event_type),
            _ => self.snapshot(event_type).is_some(),
        }
    }

    /// The events and unfolds to write, from these events and the state after them.
    pub(crate) fn written(
        &self,
        events: Vec<Payload>,
        state: &D,
        catalog: &Catalog,
    ) -> Result<(Vec<Payload>, Vec<Payload>), Error> {
        if let Self::LatestKnownEvent = self {
            let last = events.iter().rfind(|event| self.is_origin(&event.event_type));
            let unfolds = last.cloned().into_iter().collect();
            return Ok((events, unfolds));
        }
        let unfolds = self.snapshots().iter().map(|snapshot| snapshot.written(state, catalog));
        let unfolds = unfolds.collect::<Result<_, _>>()?;
        Ok((if self.keeps_events() { events } else { Vec::new() }, unfolds))
    }
}
