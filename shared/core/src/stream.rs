//! Slices on the logs of single streams, where a decision rests on one stream.

use serde::{Serialize, de::DeserializeOwned};

use crate::{Context, Slice};

/// A context whose decisions each rest on one stream.
pub trait StreamContext: Context<Event: Serialize + DeserializeOwned + 'static> {
    /// The state of a stream, folded from its events. The default is that of a stream without events.
    type State: Default + Clone + Send + Sync;

    /// The state after one more event. It is pure.
    fn evolve(state: Self::State, event: Self::Event) -> Self::State;
}

/// The state of a stream of the slice's context.
pub type StateOf<S> = <<S as Slice>::Context as StreamContext>::State;

/// A slice that decides on one stream: an aggregate, or a document.
pub trait StreamSlice:
    Slice<
        Context: StreamContext,
        State = <<Self as Slice>::Context as StreamContext>::State,
        Writes = <<Self as Slice>::Context as Context>::Event,
    >
{
    /// The id of the stream, which follows from the command alone.
    fn stream_id(&self) -> String;
}
