//! What follows from a command, as a group of pushes.

use ringfence::{CommandRecord, Metadata};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::once::marks;
use crate::{AggregateError, AggregateKey, Draft, NewEvent, Place, Push, Version};

/// What follows from a command: all of it is pushed, or nothing.
///
/// By default it is nothing: what the command asks for is already so.
#[derive(Clone, Debug)]
pub struct Decision<E> {
    events: Vec<Draft<E>>,
    others: Vec<Push>,
}

impl<E> Default for Decision<E> {
    fn default() -> Self {
        Self { events: Vec::new(), others: Vec::new() }
    }
}

impl<E> Decision<E> {
    /// Events of the command's own aggregate.
    pub fn of(events: impl IntoIterator<Item = impl Into<Draft<E>>>) -> Self {
        let events = events.into_iter().map(Into::into).collect();
        Self { events, ..Self::default() }
    }

    /// The same, and events of another aggregate in the same transaction. A push without events
    /// adds nothing.
    #[must_use]
    pub fn and(mut self, other: Push) -> Self {
        if !other.events.is_empty() {
            self.others.push(other);
        }
        self
    }
}

impl<E: Serialize> Decision<E> {
    /// The group to push, the command's own aggregate first; empty if nothing follows. Each event
    /// gets `metadata`, where it has none of its own under that key, and the marks of `record`.
    ///
    /// # Errors
    /// [`AggregateError::Invalid`] for events of other aggregates alone, and for an event that has no
    /// form.
    pub(crate) fn group(
        self,
        own: &AggregateKey,
        read: Version,
        metadata: &Metadata,
        record: Option<&CommandRecord>,
    ) -> Result<Vec<Push>, AggregateError> {
        let Self { events, others } = self;
        if events.is_empty() {
            return match others.first() {
                None => Ok(Vec::new()),
                Some(Push { key, .. }) => Err(AggregateError::Invalid(format!(
                    "a command that pushes to {key} pushes to its own aggregate {own} as well, \
                     where its repeat is known"
                ))),
            };
        }
        let events = events.into_iter().map(Draft::encode).collect::<Result<_, _>>()?;
        let first = Push { key: own.clone(), place: Place::After(read), events };
        let mut group: Vec<_> = std::iter::once(first).chain(others).collect();
        for Push { key, events, .. } in &mut group {
            let marks = record.into_iter().flat_map(|record| marks(record, own, key));
            let marks: Vec<_> = marks.collect();
            events.iter_mut().try_for_each(|event| mark(event, metadata, &marks))?;
        }
        Ok(group)
    }
}

fn mark(
    event: &mut NewEvent,
    metadata: &Metadata,
    marks: &[(&str, Option<String>)],
) -> Result<(), AggregateError> {
    if marks.is_empty() && metadata.iter().next().is_none() {
        return Ok(());
    }
    let own = event.metadata.take().unwrap_or_else(|| Map::new().into());
    let Value::Object(mut marked) = own else {
        let why = format!("the metadata of {} is not an object", event.event_type);
        return Err(AggregateError::Invalid(why));
    };
    for (key, value) in metadata.iter() {
        marked.entry(key).or_insert_with(|| value.clone());
    }
    for (mark, value) in marks {
        match value {
            Some(value) => marked.insert((*mark).to_owned(), value.as_str().into()),
            None => marked.remove(*mark),
        };
    }
    event.metadata = Some(marked.into());
    Ok(())
}
