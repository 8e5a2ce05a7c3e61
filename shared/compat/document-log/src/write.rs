//! Plans a write to the items of a stream: a pure function of the Tip that was read.

use ringfence_aws::item_bytes;
use ringfence_core::{LimitExceeded, LimitKind};

use crate::TipLimits;
use crate::batch::TIP_KEY;
use crate::limits::{APPEND_BYTES_MAX, ITEM_BYTES_MAX};
use crate::{Batch, StoredEvent, StreamName, Unfold};

/// The condition under which a write takes effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// There is no Tip.
    Absent,
    /// The Tip has this version and holds this many events. A writer that missed a trim would still have the trimmed
    /// events, and its calf would bring them back.
    Version {
        /// The stream's version.
        version: u64,
        /// Events in the Tip.
        held: u64,
    },
    /// The Tip has this etag: nothing at all was written in between.
    Etag(String),
}

/// The change of the Tip's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TipChange {
    /// Puts the first Tip.
    Put,
    /// Replaces them by the new ones.
    Replace,
    /// Keeps them and adds this many.
    Extend(usize),
    /// Keeps them; only unfolds are written.
    Keep,
}

/// One write of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The item that takes the Tip's events, if the Tip becomes too large.
    pub calf: Option<Batch>,
    /// The Tip after the write.
    pub tip: Batch,
    /// The change of the Tip's events.
    pub change: TipChange,
    /// Its condition.
    pub expect: Expect,
}

/// The events and unfolds to write onto a Tip.
pub(crate) struct Draft<'a> {
    pub(crate) stream: &'a StreamName,
    /// The Tip as it was read.
    pub(crate) known: Option<&'a Batch>,
    /// Whether unfolds of other writers are conflicts too, not only events.
    pub(crate) by_etag: bool,
    pub(crate) events: Vec<StoredEvent>,
    pub(crate) unfolds: Vec<Unfold>,
    /// The etag of the new Tip.
    pub(crate) etag: String,
}

impl Draft<'_> {
    /// The write that appends the draft.
    ///
    /// # Errors
    /// DynamoDB or the feed would refuse the write for its size.
    pub(crate) fn plan(self, limits: &TipLimits) -> Result<Write, LimitExceeded> {
        let advice = "append fewer or smaller events at once";
        let bytes = self.events.iter().map(StoredEvent::bytes).sum();
        let subject = format!("the append to {}", self.stream);
        LimitExceeded::check(LimitKind::Append, subject, "bytes", bytes, APPEND_BYTES_MAX, advice)?;
        let write = self.without_calf();
        let held = self.known.filter(|known| !known.events.is_empty());
        let write = match held {
            Some(known) if too_large(&write.tip, limits) => self.with_calf(known),
            _ => write,
        };
        let bytes = item_bytes(&write.tip.to_item());
        let advice = "write smaller unfolds, or let the Tip calve earlier";
        let subject = format!("the Tip of {}", self.stream);
        LimitExceeded::check(LimitKind::Tip, subject, "bytes", bytes, ITEM_BYTES_MAX, advice)?;
        Ok(write)
    }

    fn without_calf(&self) -> Write {
        let held = self.known.map_or(&[][..], |known| &known.events);
        let change = match (self.known, self.events.len()) {
            (None, _) => TipChange::Put,
            (_, 0) => TipChange::Keep,
            _ if held.is_empty() => TipChange::Replace,
            (_, added) => TipChange::Extend(added),
        };
        let events = held.iter().chain(&self.events).cloned().collect();
        let calved = self.known.map_or(0, |known| known.calved_bytes);
        Write { calf: None, change, expect: self.expect(), tip: self.tip(events, calved) }
    }

    /// The Tip's events move to a calf, and the new ones take their place. So every event is new in the Tip once, and a
    /// reader of the table's stream sees all events in order.
    fn with_calf(&self, known: &Batch) -> Write {
        let calf = Batch {
            key: i64::try_from(known.base()).unwrap_or(TIP_KEY - 1),
            etag: None,
            calved_bytes: 0,
            appended: 0,
            unfolds: Vec::new(),
            ..known.clone()
        };
        let calved = known.calved_bytes + known.event_bytes() as u64;
        Write {
            calf: Some(calf),
            change: TipChange::Replace,
            expect: self.expect(),
            tip: self.tip(self.events.clone(), calved),
        }
    }

    fn expect(&self) -> Expect {
        let Some(known) = self.known else { return Expect::Absent };
        match &known.etag {
            Some(etag) if self.by_etag => Expect::Etag(etag.clone()),
            _ => Expect::Version { version: known.version, held: known.events.len() as u64 },
        }
    }

    fn tip(&self, events: Vec<StoredEvent>, calved_bytes: u64) -> Batch {
        let appended = self.events.len() as u64;
        Batch {
            stream: self.stream.clone(),
            key: TIP_KEY,
            version: self.known.map_or(0, |known| known.version) + appended,
            etag: Some(self.etag.clone()),
            calved_bytes,
            appended,
            events,
            unfolds: self.unfolds.clone(),
        }
    }
}

fn too_large(tip: &Batch, limits: &TipLimits) -> bool {
    let events = tip.event_bytes();
    let unfolds = tip.unfolds.iter().map(Unfold::bytes).sum::<usize>();
    limits.events_max.is_some_and(|most| tip.events.len() > most)
        || events > limits.event_bytes_max
        || events + unfolds > limits.bytes_max
        // Whatever these limits say, DynamoDB limits the size of an item.
        || item_bytes(&tip.to_item()) > ITEM_BYTES_MAX
}

impl Write {
    /// Whether the Tip that was found is the expected one.
    pub(crate) fn fits(&self, found: Option<&Batch>) -> bool {
        match (&self.expect, found) {
            (Expect::Absent, found) => found.is_none(),
            (_, None) => false,
            (Expect::Version { version, held }, Some(found)) => {
                found.version == *version && found.events.len() as u64 == *held
            }
            (Expect::Etag(etag), Some(found)) => found.etag.as_ref() == Some(etag),
        }
    }
}
