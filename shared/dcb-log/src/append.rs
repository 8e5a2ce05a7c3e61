//! Appending: send until the outcome is known (rule 9).

use ringfence::{Append, Appended, Envelope, LogError, Position, SequencedEvent, StoreError};
use ringfence_dynamo::{GaveUp, Item};

use crate::log::DcbLog;
use crate::outcome::{Verdict, classify};
use crate::record;
use crate::transaction::{Draft, Mint, Transaction};

/// How a draft ended.
pub(crate) enum End {
    /// It is in the log.
    Committed(Vec<SequencedEvent>),
    /// The command was settled before, by this item.
    Recorded(Item),
    /// The imported event was in the log before.
    Imported,
}

pub(crate) async fn append(log: &DcbLog, append: Append<'_>) -> Result<Appended, LogError> {
    let Append { events, seen, record, envelope } = append;
    let draft = Draft::new(log.table.name(), &log.catalog, events, &envelope.metadata)?;
    let draft = Draft { seen, record, ..draft };
    match (commit(log, &draft, envelope).await?, record) {
        (End::Committed(events), _) => Ok(Appended::Committed(events)),
        (End::Recorded(item), Some(record)) => {
            record::recorded(record, item).map(Appended::Repeated)
        }
        (End::Recorded(_), None) | (End::Imported, _) => {
            unreachable!("the transaction has no such action")
        }
    }
}

/// Mints and sends until the outcome is known.
///
/// A transaction that was cancelled for a condition stays cancelled: counts and heads only grow,
/// so a copy of it that arrives late fails as well. It is therefore safe to mint anew after one,
/// also when the answer to an earlier send was lost.
pub(crate) async fn commit(
    log: &DcbLog,
    draft: &Draft<'_>,
    envelope: &Envelope,
) -> Result<End, LogError> {
    let mut attempts = log.retry(envelope).start();
    let mut raise = 0;
    loop {
        let transaction = mint(log, draft, envelope.cause.as_ref(), raise)?;
        let send = || log.table.transact(transaction.items.clone(), &transaction.token);
        let Err(GaveUp { failure, attempts: made, unknown }) = attempts.run(send).await else {
            return Ok(End::Committed(transaction.events));
        };
        match classify(&transaction, failure)? {
            Verdict::Committed => return Ok(End::Committed(transaction.events)),
            Verdict::Imported => return Ok(End::Imported),
            Verdict::Recorded(item) => return Ok(End::Recorded(item)),
            Verdict::Conflict(conflict) => return Err(LogError::Conflict(conflict)),
            Verdict::Behind(ms) if attempts.at_once() => raise = ms,
            Verdict::Behind(_) => {
                return Err(StoreError::Contention { attempts: made, over: None }.into());
            }
            Verdict::Failed(failure) => {
                let gave_up = GaveUp { failure, attempts: made, unknown };
                return Err(gave_up.writing("appending").into());
            }
        }
    }
}

fn mint(
    log: &DcbLog,
    draft: &Draft<'_>,
    cause: Option<&Position>,
    raise: u64,
) -> Result<Transaction, LogError> {
    draft.mint(&Mint {
        ms: log.next_ms(draft.seen, cause, raise),
        now_ms: log.clock.now_ms(),
        event_uuid: log.clock.uuid(),
        token: log.clock.uuid(),
    })
}
