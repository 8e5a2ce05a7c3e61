//! Importing events that another log recorded (rule 8).
//!
//! Events are imported one at a time, because their order becomes the order of slots and times. Two concurrent
//! imports could pass each other under a common fence. Then the earlier event would get the later time.

use std::collections::BTreeMap;

use ringfence_core::{CommandRecord, Effect, Envelope, LogError, NewEvent, SequencedEvent};

use crate::append::{commit, note};
use crate::log::DcbLog;
use crate::outcome::End;
use crate::record;
use crate::restore::{only, reused};
use crate::transaction::{Draft, Mint};

/// The result of an import.
#[derive(Clone, Debug, PartialEq)]
pub enum Imported {
    /// It is in the log now.
    Now(SequencedEvent),
    /// It was imported before.
    Before,
}

impl DcbLog {
    /// Appends one event of another log, whatever the fences count. It is filed as every event is, in the next slot
    /// of its partition. The attribute `eventId` keeps `event_id`, its id in the other log. A marker that never
    /// expires ensures that an id is imported once, so an interrupted import can start again from its beginning. If
    /// the event says that an item recorded its command, the event is added to that item, unless the item would have
    /// expired by the envelope's time.
    /// there still, it is added to the item. Whether it would be follows from the envelope's time.
    ///
    /// # Errors
    /// As [`ringfence_core::EventLog::append`]; never a conflict.
    pub async fn import(
        &self,
        event_id: &str,
        event: NewEvent,
        envelope: &Envelope,
    ) -> Result<Imported, LogError> {
        let mut draft = self.draft(event_id, event, envelope)?;
        match commit(self, &mut draft, envelope).await? {
            End::Committed => {
                note(self, &draft);
                Ok(Imported::Now(only(draft)))
            }
            End::Imported => Ok(Imported::Before),
            End::Recorded(_) => Err(reused(draft)),
        }
    }

    /// The event as the log would have it, if it were the first one of its partition, at the time of the log's clock.
    /// Sends no request.
    ///
    /// # Errors
    /// The errors of [`DcbLog::import`] that depend on the event alone.
    pub fn importable(
        &self,
        event_id: &str,
        event: NewEvent,
        envelope: &Envelope,
    ) -> Result<SequencedEvent, LogError> {
        let mut draft = self.draft(event_id, event, envelope)?;
        let (ms, append_id) = (self.clock.now_ms(), self.clock.uuid());
        let mint = Mint { ms, append_id, ends: &BTreeMap::new() };
        draft.mint(&mint)?;
        Ok(only(draft))
    }

    fn draft<'a>(
        &'a self,
        event_id: &'a str,
        event: NewEvent,
        envelope: &'a Envelope,
    ) -> Result<Draft<'a>, LogError> {
        let Envelope { metadata, context, .. } = envelope;
        // If an event of another log has no hash, its command had no item.
        let copied = CommandRecord::of_item(metadata).filter(|record| {
            let (at, now_ms) = (self.clock.now_ms(), context.now_ms);
            !record.sha256.is_empty() && record::is_kept(record, at, now_ms)
        });
        let marks = 1 + usize::from(copied.is_some());
        let effect = Effect::new(&self.catalog, vec![event], metadata, None, marks)?;
        Ok(Draft { event_id: Some(event_id), copied, ..Draft::new(self, effect) })
    }
}
