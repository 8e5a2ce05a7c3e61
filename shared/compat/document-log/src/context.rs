//! Contexts on the document log, and how the state of a document is stored and read.

use std::marker::PhantomData;
use std::slice;

use ringfence_core::{Catalog, LogKind, LogName, Reads, State};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Error, Value};

use crate::codec::Payload;
use crate::{Encoding, TipLimits};

/// Names the document log as the log of a context, and the state that its documents have. The context's name is the
/// category: the part of a stream's name before the hyphen.
pub struct Documents<D>(PhantomData<D>);

impl<D: Document> LogName for Documents<D> {
    const KIND: LogKind = LogKind::Documents;

    fn snapshots() -> Vec<&'static str> {
        D::ACCESS.snapshots().iter().map(|snapshot| snapshot.name).collect()
    }
}

/// The state of a document, on which all decisions about it rest, and how documents are stored. A context has one, since a
/// document stores it beside the events.
pub trait Document: State + Clone + Sync + 'static {
    /// How it is stored and read for commands: which unfolds an append writes. The default is to read all events.
    const ACCESS: AccessStrategy<Self> = AccessStrategy::Unoptimized;
    /// How large a Tip may grow before its events move to a calf. It can change at any time.
    const TIP: TipLimits = TipLimits::DEFAULT;
    /// How payloads, unfolds and metadata are written, where that makes them smaller. It can change at any time, because
    /// every encoding is read.
    const ENCODING: Encoding = Encoding::Brotli;
}

/// How the state of a document is stored and read.
///
/// A context can change from `Unoptimized` to any other access at any time, and back from any but `RollingState`: what
/// that writes is in no event.
#[derive(Clone, Copy)]
pub enum AccessStrategy<D: 'static> {
    /// All events are read, backwards in pages; no unfold is written.
    Unoptimized,
    /// The state is the last event that it reads, which each append also writes as unfold.
    LatestKnownEvent,
    /// Each append writes the state as one unfold; a read goes back to the newest one. One of another version of the fold
    /// or of the events is read only if the events were pruned, and only if it is older.
    Snapshot(Snapshot<D>),
    /// The same with several unfolds, for example when two builds of a program run side by side. A read takes the
    /// first of them alone; the others are for other builds.
    Snapshots(&'static [Snapshot<D>]),
    /// The state alone, as one unfold; no events are written, and the etag guards it.
    RollingState(Snapshot<D>),
}

/// An unfold that holds a whole state. Where a read meets its type, as unfold or as event, nothing before it matters.
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
    /// The JSON that these functions make of a state, and make a state of, under this type name.
    #[must_use]
    pub const fn of(
        name: &'static str,
        to_json: fn(&D) -> Result<Value, Error>,
        from_json: fn(Value) -> Result<D, Error>,
    ) -> Self {
        Self { name, version: 0, to_json, from_json }
    }

    /// The version of the fold; 0 unless given. Raise it with each change of what `evolve` makes of events: documents are then
    /// folded again. The checks of a stack compare the states and ask for it.
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

    /// The number that it has in its metadata: 1, one more for each upcast of the context, and the version of the fold. A
    /// catalog keeps its types and their versions only grow. So the number of a later build is never smaller, also if its
    /// state no longer reads a type.
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
        (self.to_json)(state)
    }

    /// The state in a payload.
    pub(crate) fn read(&self, data: Value) -> Result<D, Error> {
        (self.from_json)(data)
    }

    /// The payload for a state, which can be read back.
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

    /// The types of unfolds with which a read begins, so that it needs no event before them.
    #[must_use]
    pub fn origins(&self) -> Vec<&'static str> {
        match self {
            Self::LatestKnownEvent => D::Reads::TYPES.to_vec(),
            _ => self.own().map(|snapshot| snapshot.name).into_iter().collect(),
        }
    }

    /// Whether a cold read begins with the Tip alone, because an unfold may be enough.
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

    /// Whether nothing matters before an event or unfold of this type.
    pub(crate) fn is_origin(&self, event_type: &str) -> bool {
        match self {
            Self::LatestKnownEvent => D::Reads::TYPES.contains(&event_type),
            _ => self.snapshot(event_type).is_some(),
        }
    }

    /// The events and unfolds to write for these events of a context and the state after them.
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
