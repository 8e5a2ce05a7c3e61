//! Appending: send until the outcome is known (rule 9).

use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use ringfence::{Append, Appended, Envelope, LogError, Position, SequencedEvent, StoreError};
use ringfence_dynamo::{Failure, GaveUp, Item, Kind};

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
    let draft = Draft::new(&log.table, &log.catalog, events, &envelope.metadata)?;
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
    let mut transaction = mint(log, draft, envelope.cause.as_ref(), 0)?;
    let mut unknown = None;
    loop {
        let Err(failure) = attempts.bounded(send(log, &transaction)).await else {
            return Ok(End::Committed(transaction.events));
        };
        let failure = match classify(&transaction, failure)? {
            Verdict::Committed => return Ok(End::Committed(transaction.events)),
            Verdict::Imported => return Ok(End::Imported),
            Verdict::Recorded(item) => return Ok(End::Recorded(item)),
            Verdict::Conflict(conflict) => return Err(LogError::Conflict(conflict)),
            Verdict::Behind(raise) => {
                if !attempts.at_once() {
                    return Err(StoreError::Contention { attempts: attempts.made() }.into());
                }
                transaction = mint(log, draft, envelope.cause.as_ref(), raise)?;
                unknown = None;
                continue;
            }
            Verdict::Failed(failure) => failure,
        };
        if !failure.is_transient() || !attempts.again().await {
            let gave_up = GaveUp { failure, attempts: attempts.made() };
            return Err(gave_up.writing("appending", unknown).into());
        }
        if matches!(failure, Failure::Unknown { .. }) {
            unknown = Some(failure);
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

async fn send(log: &DcbLog, transaction: &Transaction) -> Result<(), Failure> {
    log.meter.sent(Kind::Write);
    let answer = log
        .client
        .transact_write_items()
        .set_transact_items(Some(transaction.items.clone()))
        .client_request_token(&transaction.token)
        .return_consumed_capacity(ReturnConsumedCapacity::Indexes)
        .send()
        .await?;
    log.meter.consumed(Kind::Write, answer.consumed_capacity());
    Ok(())
}
