//! Events from another log, and their import into this one.

use std::fmt::{self, Display, Formatter};

use anyhow::{Context, Result, ensure};
use ringfence_aws::Clock;
use ringfence_core::{CommandContext, Envelope, Metadata, NewEvent};
use ringfence_dcb_log::{DcbLog, Imported};

use crate::paced::paced;
use crate::progress;

/// The number of events between two updates of the progress.
const PROGRESS_EVENTS: u64 = 100;

/// An event from another log.
pub struct ForeignEvent {
    /// Its id there, which makes the import take it once.
    pub id: String,
    /// When it was recorded, in milliseconds since 1970.
    pub ms: u64,
    /// The event.
    pub event: NewEvent,
    /// Its metadata.
    pub metadata: Metadata,
}

impl ForeignEvent {
    /// Fails if the event is later than now. Every later event of its boundaries would get a time in the future as
    /// well.
    pub(crate) fn check_time(&self, now_ms: u64) -> Result<()> {
        let late = "its time lies in the future: import it then, or set the clock of this machine if it is slow";
        ensure!(self.ms <= now_ms, late);
        Ok(())
    }
}

/// The numbers of an import.
#[derive(Default)]
pub struct Imports {
    /// How many events this run imported.
    pub imported: u64,
    /// How many events were there before.
    pub before: u64,
    /// How many events of an export got a later time, because the log has later events in their boundaries.
    pub later: u64,
}

impl Imports {
    /// Imports events in their order, each once and at its time. The log puts further events of one millisecond one
    /// millisecond apart.
    ///
    /// # Errors
    /// An event lies in the future: then nothing is imported. Or an event can't be imported: then the events before it
    /// are.
    pub async fn import(
        &mut self,
        events: Vec<ForeignEvent>,
        log: &DcbLog,
        clock: &Clock,
    ) -> Result<()> {
        let (all, now_ms) = (events.len(), Clock::system().now_ms());
        for event in &events {
            event
                .check_time(now_ms)
                .with_context(|| format!("nothing is imported: {}", event.id))?;
        }
        for ForeignEvent { id, ms, event, metadata } in events {
            clock.set(ms);
            // The log's clock shows the time of the event. The context has the time of the import.
            let context = CommandContext { now_ms, ..CommandContext::default() };
            let envelope = Envelope { context, metadata, ..Envelope::default() };
            let import = async || Ok(log.import(&id, event.clone(), &envelope).await?);
            let imported = paced(import).await;
            let broken_off = || format!("broken off at {id}, after {self}");
            match imported.with_context(broken_off)? {
                Imported::Now(_) => self.imported += 1,
                Imported::Before => self.before += 1,
            }
            let done = self.imported + self.before;
            if done.is_multiple_of(PROGRESS_EVENTS) {
                progress::show(format_args!("{done} of {all} events imported"));
            }
        }
        progress::clear();
        Ok(())
    }
}

impl Display for Imports {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { imported, before, later } = self;
        write!(f, "{imported} imported, {before} were there before")?;
        match later {
            0 => Ok(()),
            later => write!(
                f,
                "; {later} have a later time, because the log has later events beside them"
            ),
        }
    }
}
