//! The log as decisions use it.

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use ringfence_core::{
    Append, Appended, CommandRecord, Conflict, Consistency, Envelope, EventLog, EventRef, LogError,
    Plan, Seen, SequencedEvent,
};

use crate::log::DcbLog;
use crate::{append, read, record, snapshot, unchanged};

impl EventLog for DcbLog {
    fn read<'a>(
        &'a self,
        plan: &'a Plan,
        consistency: Consistency,
        envelope: &'a Envelope,
    ) -> BoxStream<'a, Result<SequencedEvent, LogError>> {
        read::read(self, plan, consistency, envelope)
    }

    fn append<'a>(&'a self, append: Append<'a>) -> BoxFuture<'a, Result<Appended, LogError>> {
        Box::pin(append::append(self, append))
    }

    fn verify<'a>(
        &'a self,
        seen: &'a Seen,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Conflict>, LogError>> {
        Box::pin(unchanged::verify(self, seen, envelope))
    }

    fn recorded<'a>(
        &'a self,
        record: &'a CommandRecord,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Vec<EventRef>>, LogError>> {
        Box::pin(record::find(self, record, envelope))
    }

    fn snapshot<'a>(
        &'a self,
        id: &'a str,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<String>, LogError>> {
        Box::pin(snapshot::read(self, id, envelope))
    }

    fn keep_snapshot(&self, id: String, snapshot: String) {
        snapshot::keep(self, id, snapshot);
    }

    fn pause<'a>(&'a self, attempt: u32, envelope: &'a Envelope) -> BoxFuture<'a, bool> {
        Box::pin(self.retry(envelope).pause(attempt))
    }
}
