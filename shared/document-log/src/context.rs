//! Contexts on the document log, and how the state of a stream is stored and read.

use ringfence::StreamContext;

/// Names the document log as the log of a context.
pub enum Documents {}

/// A context on the document log. Its name is the category: the part of a stream's name before the hyphen.
///
/// `Event` is an enum with a variant for each type of event, and for each unfold. An unfold of another type is
/// ignored. An event of another type fails the read: a decision that overlooks it could be wrong.
pub trait DocumentContext: StreamContext<Log = Documents> {
    /// How the state is stored and read for commands. The default is to read all events.
    #[must_use]
    fn access() -> Access<Self>
    where
        Self: Sized,
    {
        Access::Unoptimized
    }
}

/// How a category's state is stored and read.
///
/// A context can change from `Unoptimized` to snapshots and back at any time. From `RollingState` there is
/// no way back: what it writes is in no event.
pub enum Access<D: DocumentContext> {
    /// All events are read, backwards in pages; no unfold is written.
    Unoptimized,
    /// The state is the last event, which each append also writes as unfold.
    LatestKnownEvent,
    /// Each append writes the state as one unfold; a read goes back to the newest event or unfold
    /// that is an origin.
    Snapshot {
        /// Whether nothing before it matters; true for the snapshot.
        is_origin: fn(&D::Event) -> bool,
        /// The event that sets the state.
        to_snapshot: fn(&D::State) -> D::Event,
    },
    /// The same with several unfolds, for example when two versions of a program run side by side and each
    /// reads its own.
    Snapshots {
        /// Whether nothing before it matters.
        is_origin: fn(&D::Event) -> bool,
        /// The events that set the state.
        to_snapshots: fn(&D::State) -> Vec<D::Event>,
    },
    /// The state alone, as one unfold; no events are written, and the etag guards it.
    RollingState {
        /// The event that sets the state.
        to_snapshot: fn(&D::State) -> D::Event,
    },
}

impl<D: DocumentContext> Access<D> {
    /// Whether a cold read begins with the Tip alone, because an unfold may be enough.
    pub(crate) fn reads_unfolds(&self) -> bool {
        !matches!(self, Self::Unoptimized)
    }

    /// Whether decisions are kept as events, not in the state alone.
    pub(crate) fn keeps_events(&self) -> bool {
        !matches!(self, Self::RollingState { .. })
    }

    /// Whether an append must find the whole Tip unchanged, not only its events.
    pub(crate) fn by_etag(&self) -> bool {
        !self.keeps_events()
    }

    pub(crate) fn is_origin(&self, event: &D::Event) -> bool {
        match self {
            Self::Unoptimized => false,
            Self::LatestKnownEvent | Self::RollingState { .. } => true,
            Self::Snapshot { is_origin, .. } | Self::Snapshots { is_origin, .. } => {
                is_origin(event)
            }
        }
    }

    /// The events and unfolds to write for these events.
    pub(crate) fn written(
        &self,
        events: Vec<D::Event>,
        state: &D::State,
    ) -> (Vec<D::Event>, Vec<D::Event>) {
        match self {
            Self::Unoptimized => (events, Vec::new()),
            Self::LatestKnownEvent => {
                let last = events.last().cloned().into_iter().collect();
                (events, last)
            }
            Self::Snapshot { to_snapshot, .. } => (events, vec![to_snapshot(state)]),
            Self::Snapshots { to_snapshots, .. } => (events, to_snapshots(state)),
            Self::RollingState { to_snapshot } => (Vec::new(), vec![to_snapshot(state)]),
        }
    }
}
