//! Checks whether the items of a stream fit together.

use ringfence_core::{Consistency, Envelope};

use crate::{Batch, Direction, DocumentError, DocumentLog, ItemQuery, Store, StreamName};

/// The result of a check of a stream's items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamReport {
    /// The first event that is there.
    pub first: u64,
    /// The index after the last event.
    pub version: u64,
    /// The number of calves.
    pub calves: u64,
    /// The faults; empty if the stream is whole.
    pub problems: Vec<StreamDefect>,
}

/// A fault of the items of a stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamDefect {
    /// There are calves and no Tip.
    #[error("there is no Tip")]
    NoTip,
    /// Events are missing.
    #[error("events {from} to {to} are missing", to = to - 1)]
    Hole {
        /// The first missing event.
        from: u64,
        /// The first event after them.
        to: u64,
    },
    /// Two items have the same events.
    #[error("event {from} is in two items")]
    Overlap {
        /// The first one.
        from: u64,
    },
    /// A calf's key is not the index of its first event.
    #[error("calf {key} begins at event {base}")]
    Key {
        /// `i`.
        key: i64,
        /// The index that follows from `n` and `e`.
        base: u64,
    },
    /// A calf has an attribute of Tips, or no events.
    #[error("calf {key} has unfolds or no events")]
    Calf {
        /// `i`.
        key: i64,
    },
    /// `b` is not the sum over the calves. Readers do not use it.
    #[error("the Tip says that {said} bytes are in calves, found {found}")]
    CalvedBytes {
        /// `b`.
        said: u64,
        /// The estimate of the calves' events.
        found: u64,
    },
    /// The Tip says that the last append had more events than the stream ever had.
    #[error("the Tip says that the last of {version} events were {appended}")]
    Appended {
        /// `a`.
        appended: u64,
        /// `n`.
        version: u64,
    },
    /// An unfold is of another version than the Tip.
    #[error("unfold {event_type} is of version {unfold}, the Tip of {version}")]
    Unfold {
        /// `u.c`.
        event_type: String,
        /// `u.i`.
        unfold: u64,
        /// `n`.
        version: u64,
    },
}

/// The findings after some items.
#[derive(Default)]
struct Check {
    report: StreamReport,
    started: bool,
    calved_bytes: u64,
    tip: bool,
}

impl<S: Store> DocumentLog<S> {
    /// Reads all items of a stream and checks whether they fit together. A stream that is written
    /// meanwhile can look wrong: look again before you believe it.
    ///
    /// # Errors
    /// A request failed, or an item is neither a Tip nor a calf.
    pub async fn verify(
        &self,
        stream: &StreamName,
        envelope: &Envelope,
    ) -> Result<StreamReport, DocumentError> {
        let mut check = Check::default();
        let mut beyond = None;
        loop {
            let query = ItemQuery {
                stream,
                direction: Direction::Forward,
                beyond,
                items_max: None,
                consistency: Consistency::Strong,
            };
            let page = self.retry(envelope).run(|| self.store.query(query)).await;
            let page = page.map_err(|gave_up| gave_up.during("verifying"))?;
            beyond = page.batches.last().map(|batch| batch.key).or(beyond);
            page.batches.iter().for_each(|batch| check.item(batch));
            if !page.more {
                break;
            }
        }
        if check.started && !check.tip {
            check.report.problems.push(StreamDefect::NoTip);
        }
        Ok(check.report)
    }
}

impl Check {
    fn item(&mut self, batch: &Batch) {
        let (base, end) = (batch.base(), self.report.version);
        match std::mem::replace(&mut self.started, true) {
            false => self.report.first = base,
            true if base > end => self.problem(StreamDefect::Hole { from: end, to: base }),
            true if base < end => self.problem(StreamDefect::Overlap { from: base }),
            true => {}
        }
        self.report.version = batch.version;
        if batch.is_tip() { self.tip(batch) } else { self.calf(batch) }
    }

    fn calf(&mut self, calf: &Batch) {
        self.report.calves += 1;
        self.calved_bytes += calf.event_bytes() as u64;
        let (key, base) = (calf.key, calf.base());
        if i64::try_from(base) != Ok(key) {
            self.problem(StreamDefect::Key { key, base });
        }
        if calf.events.is_empty() || !calf.unfolds.is_empty() || calf.etag.is_some() {
            self.problem(StreamDefect::Calf { key });
        }
    }

    fn tip(&mut self, tip: &Batch) {
        self.tip = true;
        // Pruned calves stay in the sum.
        let (said, found) = (tip.calved_bytes, self.calved_bytes);
        if said < found || (self.report.first == 0 && said > found) {
            self.problem(StreamDefect::CalvedBytes { said, found });
        }
        let (appended, version) = (tip.appended, tip.version);
        if appended > version {
            self.problem(StreamDefect::Appended { appended, version });
        }
        for unfold in tip.unfolds.iter().filter(|unfold| unfold.version != version) {
            let event_type = unfold.event_type.clone();
            self.problem(StreamDefect::Unfold { event_type, unfold: unfold.version, version });
        }
    }

    fn problem(&mut self, problem: StreamDefect) {
        self.report.problems.push(problem);
    }
}
