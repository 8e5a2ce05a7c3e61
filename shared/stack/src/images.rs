//! Reads records of the tables' streams, for a team's function on a stream.

use std::collections::BTreeMap;

use ringfence_core::{Context, Current, CurrentError, Reads, SequencedEvent};
use ringfence_lambda::{RecordError, new_image};
use ringfence_log::EntryError;
use serde_json::Value;

use crate::Stack;

/// Makes a `T` of an event of one context; `None` if its type gives nothing.
type Read<T> = Box<dyn Fn(&Current<'_>) -> Option<Result<T, serde_json::Error>> + Send + Sync>;

/// Makes values of the events of several contexts, from the records of their tables' streams. [`Stack::images`] begins
/// without contexts.
pub struct Images<T> {
    stack: Stack,
    readers: BTreeMap<&'static str, Read<T>>,
}

/// A record, or an event of it, that can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ImagesError {
    /// It is not a record of a table's stream.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Its image is not a complete event.
    #[error("not an event")]
    Image(#[from] EntryError),
    /// The stack has no such context.
    #[error("event {event} is of the context {context:?}, which this stack does not list")]
    Context {
        /// Its id.
        event: String,
        /// Its context; empty if neither the event nor a catalog names it.
        context: String,
    },
    /// Its newest version can't be made.
    #[error(transparent)]
    Version(#[from] CurrentError),
    /// The reader of its context can't decode it.
    #[error("event {event} ({event_type}) can't be decoded")]
    Shape {
        /// Its id.
        event: String,
        /// Its type.
        event_type: String,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
}

impl Stack {
    /// Makes values of the events in the records of the tables' streams.
    #[must_use]
    pub fn images<T>(self) -> Images<T> {
        Images { stack: self, readers: BTreeMap::new() }
    }
}

impl<T> Images<T> {
    /// Adds a reader `R` for the events of the context `C`, and a function that makes a `T` of each. Events of other
    /// types are skipped. A second reader of a context replaces the first.
    #[must_use]
    pub fn of<C: Context, R: Reads>(
        mut self,
        make: impl Fn(R) -> T + Send + Sync + 'static,
    ) -> Self {
        let read = move |event: &Current<'_>| {
            let is_read = R::TYPES.contains(&&*event.event_type);
            is_read.then(|| R::decode(event).map(&make))
        };
        self.readers.insert(C::NAME, Box::new(read));
        self
    }

    /// The events of a record that have a reader, each in its newest version, with the values that were made. A record
    /// of a document shows the events of one append. An event that can't be read fails alone. A record without an image
    /// of an event has none.
    #[must_use]
    pub fn read(&self, record: &Value) -> Vec<Result<(SequencedEvent, T), ImagesError>> {
        match self.events_of(record) {
            Ok(events) => {
                let events = events.into_iter();
                events.filter_map(|event| self.event(event).transpose()).collect()
            }
            Err(error) => vec![Err(error)],
        }
    }

    fn events_of(
        &self,
        record: &Value,
    ) -> Result<Vec<Result<SequencedEvent, EntryError>>, ImagesError> {
        Ok(match new_image(record)? {
            Some(image) => self.stack.sources.events(image)?,
            None => Vec::new(),
        })
    }

    fn event(
        &self,
        event: Result<SequencedEvent, EntryError>,
    ) -> Result<Option<(SequencedEvent, T)>, ImagesError> {
        let mut event = event?;
        if event.context.is_empty() {
            // Another writer wrote it. Its type names the context.
            let context = self.stack.catalog.context(&event.event_type);
            event.context = context.unwrap_or_default().to_owned();
        }
        if self.stack.context(&event.context).is_none() {
            let (event, context) = (event.id(), event.context);
            return Err(ImagesError::Context { event, context });
        }
        let Some(read) = self.readers.get(&*event.context) else { return Ok(None) };
        let event = self.stack.catalogs.current(event)?;
        match read(&event) {
            None => Ok(None),
            Some(Ok(made)) => Ok(Some((event.into_event(), made))),
            Some(Err(source)) => {
                let (event, event_type) = (event.id(), event.event_type.clone());
                Err(ImagesError::Shape { event, event_type, source })
            }
        }
    }
}
