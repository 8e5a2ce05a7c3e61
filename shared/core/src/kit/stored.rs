//! The facts of a case as a log stores them, without a log.

use std::collections::BTreeMap;

use super::in_memory::catalog;
use super::same::fail;
use crate::{
    BoundaryId, Context, Due, LogKind, LogName, Metadata, NewEvent, SequencedEvent, Slice,
    decide::case::{Case, DueCase, Fact},
    escape,
};

impl<S: Slice> Case<S> {
    /// The events of the case as the log stores them, in the newest versions of their types: the facts, then the events
    /// of the command. Panics if a log would refuse one of them.
    #[must_use]
    pub fn history(&self) -> Vec<SequencedEvent> {
        let written = |event: &NewEvent| Fact { at_ms: self.context.now_ms, event: event.clone() };
        let written = self.then.events.iter().map(written);
        stored::<S::Context>(&self.given.iter().cloned().chain(written).collect::<Vec<_>>())
    }
}

impl<D: Due> DueCase<D> {
    /// The events of the case as the log stores them. Panics if a log would refuse one of them.
    #[must_use]
    pub fn history(&self) -> Vec<SequencedEvent> {
        stored::<D::Context>(&self.given)
    }
}

/// The facts as the log of their context would store them, each at its moment.
pub(super) fn stored<C: Context>(facts: &[Fact]) -> Vec<SequencedEvent> {
    let (catalog, kind) = (catalog::<C>(), C::Log::KIND);
    let mut slots = BTreeMap::<BoundaryId, u64>::new();
    let event = |Fact { at_ms, event }: &Fact| {
        let NewEvent { event_type, tags, mut data } = event.clone();
        let context = catalog.context(&event_type).unwrap_or(C::NAME).to_owned();
        let filing = catalog.filing(event).unwrap_or_else(|error| fail("a given event", error));
        let partition = match kind {
            LogKind::Dcb => filing.partition,
            LogKind::Aggregates | LogKind::Documents => {
                let schema = catalog.schema(&event_type).expect("it was filed");
                let names =
                    |key: &str| schema.tags.iter().any(|tag| tag.partition && *tag.key == *key);
                let id = tags.iter().find(|tag| names(&tag.key)).map_or("", |tag| &*tag.value);
                schema.leave_out_id(id, &mut data);
                match kind {
                    LogKind::Documents => BoundaryId::stored(escape(&format!("{}-{id}", C::NAME))),
                    _ => filing.partition,
                }
            }
        };
        let next = slots.entry(partition.clone()).or_insert_with(|| kind.first_slot());
        let slot = *next;
        *next += 1;
        SequencedEvent {
            partition,
            slot,
            at: *at_ms,
            rest: 0,
            version: catalog.version(&event_type),
            event_type: event_type.into_owned(),
            context,
            tags,
            data,
            metadata: Metadata::default(),
        }
    };
    facts.iter().map(event).collect()
}
