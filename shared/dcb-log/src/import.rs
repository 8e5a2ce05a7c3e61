//! Importing events that another log recorded (rule 8).

use ringfence::{Envelope, LogError, NewEvent, SequencedEvent};

use crate::append::{End, commit};
use crate::log::DcbLog;
use crate::transaction::Draft;

/// What became of an imported event.
#[derive(Clone, Debug, PartialEq)]
pub enum Imported {
    /// It is in the log now, at this position.
    Now(SequencedEvent),
    /// It was imported before.
    Before,
}

impl DcbLog {
    /// Appends one event of another log, whatever the fences count: filed as every event is, at a
    /// new position. `event_id`, its id in the other log, is kept in the attribute `eventId`; a
    /// marker without expiry makes that an id is imported once, so an import that broke off can
    /// start again from its beginning.
    ///
    /// # Errors
    /// As [`ringfence::EventLog::append`]; never a conflict.
    pub async fn import(
        &self,
        event_id: &str,
        event: NewEvent,
        envelope: &Envelope,
    ) -> Result<Imported, LogError> {
        let draft = Draft::new(self.table.name(), &self.catalog, vec![event], &envelope.metadata)?;
        let draft = Draft { event_id: Some(event_id), ..draft };
        match commit(self, &draft, envelope).await? {
            End::Committed(mut events) => Ok(Imported::Now(events.remove(0))),
            End::Imported => Ok(Imported::Before),
            End::Recorded(_) => unreachable!("the transaction has no command item"),
        }
    }
}
