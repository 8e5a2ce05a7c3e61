//! A command and its state, without their types.

use crate::{
    Catalog, CommandContext, Current, EventError, NewEvent, Place, Plan, Reads, ReadsOf, Rejected,
    Seen, Slice, State, Writes, boundary::keys::Keys, decide::record::refuses,
};

/// The view of the decide loop on a slice. The loop has no type parameter, so it is compiled once and not for each
/// slice.
pub(crate) trait Decision: Send {
    /// Returns to the state without events.
    fn begin(&mut self);

    /// Folds one more event.
    ///
    /// # Errors
    /// The event does not have the shape of its type.
    fn fold(&mut self, event: &Current<'_>) -> Result<(), serde_json::Error>;

    /// As [`decide`].
    ///
    /// # Errors
    /// An event can't be read back.
    fn decide(
        &self,
        context: &CommandContext,
    ) -> Result<(Option<Rejected>, Vec<NewEvent>), EventError>;

    /// As [`refuses`].
    fn refuses(&self, context: &CommandContext, subject: &str) -> bool;

    /// The name of the state's snapshots; `None` if it has none.
    fn snapshot_id(&self, plan: &Plan, catalog: &Catalog) -> Option<String>;

    /// The text of the next snapshot, if one is due after this many events that the last one lacks.
    fn snapshot(
        &self,
        taken: u64,
        seen: &Seen,
        last: Option<&Place>,
        keys: &Keys,
    ) -> Option<String>;

    /// Loads the state of a snapshot. Returns the rest of the snapshot; `None` for a text that this version can't read.
    fn recall(&mut self, text: &str) -> Option<(Seen, Option<Place>, Keys)>;
}

/// Why a command is rejected on this state, if it is, and the events that follow.
///
/// # Errors
/// An event can't be read back.
pub fn decide<S: Slice>(
    command: &S,
    state: &S::State,
    context: &CommandContext,
) -> Result<(Option<Rejected>, Vec<NewEvent>), EventError> {
    let (rejected, events) = match command.decide(state, context) {
        Ok(events) => (None, events),
        Err(rejection) => {
            let left = command.leaves(&rejection, state, context);
            (Some(Rejected::of(&rejection)), left)
        }
    };
    Ok((rejected, events.iter().map(Writes::to_event).collect::<Result<_, _>>()?))
}

/// The decision of a slice.
pub(crate) struct DecisionOf<'c, S: Slice> {
    pub(crate) command: &'c S,
    pub(crate) state: S::State,
}

impl<S: Slice> Decision for DecisionOf<'_, S> {
    fn begin(&mut self) {
        self.state = S::State::default();
    }

    fn fold(&mut self, event: &Current<'_>) -> Result<(), serde_json::Error> {
        let read = ReadsOf::<S>::decode(event)?;
        self.state = std::mem::take(&mut self.state).evolve(read);
        Ok(())
    }

    fn decide(
        &self,
        context: &CommandContext,
    ) -> Result<(Option<Rejected>, Vec<NewEvent>), EventError> {
        decide(self.command, &self.state, context)
    }

    fn refuses(&self, context: &CommandContext, subject: &str) -> bool {
        refuses(self.command, context, subject)
    }

    fn snapshot_id(&self, plan: &Plan, catalog: &Catalog) -> Option<String> {
        Some(S::State::SNAPSHOTS?.id(S::NAME, plan, catalog))
    }

    fn snapshot(
        &self,
        taken: u64,
        seen: &Seen,
        last: Option<&Place>,
        keys: &Keys,
    ) -> Option<String> {
        let snapshots = S::State::SNAPSHOTS.filter(|it| it.is_due(taken))?;
        snapshots.text(&self.state, seen, last, keys)
    }

    fn recall(&mut self, text: &str) -> Option<(Seen, Option<Place>, Keys)> {
        let (state, seen, last, keys) = S::State::SNAPSHOTS?.read(text)?;
        self.state = state;
        Some((seen, last, keys))
    }
}
