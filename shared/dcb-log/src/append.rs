//! Appending: send until the outcome is known (rule 9).

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

use aws_sdk_dynamodb::types::TransactWriteItem;
use futures::TryFutureExt;
use ringfence_aws::Failure;
use ringfence_core::{
    Append, Appended, BoundaryId, Conflict, Effect, Envelope, LogError, SequencedEvent,
};

use crate::copies::{self, Look};
use crate::log::DcbLog;
use crate::outcome::{Again, End, Verdict, classify};
use crate::partition::last;
use crate::record;
use crate::transaction::{Draft, Mint, Transaction, Via, announced};

const OPERATION: &str = "appending";
/// How often an append gets new slots and times. If many writers append to one boundary that they have not read, one
/// of them commits at a time, and the others try the next slot.
const MINTS_MAX: u32 = 16;
/// How often an append is sent unchanged. A transaction holds its items for longer than the first waits last. So if
/// many appends check one item, the last few sends decide.
const SENDS_MAX: u32 = 12;

pub(crate) async fn append(log: &DcbLog, append: Append<'_>) -> Result<Appended, LogError> {
    let (record, envelope) = (append.record, append.envelope);
    let mut draft = draft(log, append)?;
    match (commit(log, &mut draft, envelope).await?, record) {
        (End::Committed, _) => {
            note(log, &draft);
            Ok(Appended::Committed(draft.into_events().collect()))
        }
        (End::Recorded(item), Some(record)) => record::events(record, item).map(Appended::Repeated),
        (End::Recorded(_), None) | (End::Imported, _) => {
            unreachable!("the transaction has no such action")
        }
    }
}

fn draft<'a>(log: &'a DcbLog, append: Append<'a>) -> Result<Draft<'a>, LogError> {
    let Append { events, seen, record, envelope } = append;
    let marks = usize::from(record.is_some());
    let effect = Effect::new(&log.catalog, events, &envelope.metadata, seen, marks)?;
    Ok(Draft { seen, record, ..Draft::new(log, effect) })
}

/// The request that an append would send, and its events in their slots. Nothing is written.
pub(crate) async fn dry_run(
    log: &DcbLog,
    append: Append<'_>,
) -> Result<(Transaction, Vec<SequencedEvent>), LogError> {
    let envelope = append.envelope;
    let mut draft = draft(log, append)?;
    let place = Place::find(log, &draft, envelope).await?;
    let transaction = draft.mint(&place.mint(log, &draft, envelope))?;
    Ok((transaction, draft.into_events().collect()))
}

/// Mints and sends until the outcome is known.
///
/// A request that failed its conditions can never succeed later: slots are never free again, and counts, heads and
/// numbers of announcements only grow. A copy of the request that arrives late fails as well. So it is safe to mint
/// again, even if the answer to an earlier send was lost, because the earlier send can no longer take effect once a
/// later one was judged. Only a check of a copy of a fence can succeed later; see [`sends`].
pub(crate) async fn commit(
    log: &DcbLog,
    draft: &mut Draft<'_>,
    envelope: &Envelope,
) -> Result<End, LogError> {
    let mut announcers = BTreeMap::new();
    let ended = sends(log, draft, envelope, &mut announcers).await;
    if !matches!(ended, Ok(End::Committed)) {
        for (boundary, announcer) in announcers {
            copies::give_up(log, log.retry(envelope), &boundary, &announcer).await;
        }
    }
    ended
}

/// Announces the append on fences with copies, in their order, so two writers seldom wait for each other. Then mints
/// and sends. Adds the name of the announcer on each of these fences.
///
/// If a copy of a fence refuses a check, an earlier send without an answer can still take effect, because a copy may
/// count less again. So the next request has the same slots and the same `appendId`. It checks that copy again, or the
/// fence itself: at most one of them commits, and all of them are refused for ever once the fence's count has refused
/// one.
async fn sends(
    log: &DcbLog,
    draft: &mut Draft<'_>,
    envelope: &Envelope,
    announcers: &mut BTreeMap<BoundaryId, String>,
) -> Result<End, LogError> {
    let from_ms = envelope.context.now_ms;
    let mut announce: BTreeSet<_> = announced(&draft.effect).cloned().collect();
    let mut mints = log.retry(envelope).attempts_max(MINTS_MAX).start();
    let mut place = Place::find(log, draft, envelope).await?;
    loop {
        for boundary in take(&mut announce) {
            let fence = &draft.effect.fences[&boundary];
            let target = draft.effect.targets.get(&boundary);
            let is_read = target.is_some_and(|target| target.seen.is_some());
            let announcer = announcers.entry(boundary.clone());
            let announcer = announcer.or_insert_with(|| log.clock.uuid().to_string());
            let retry = log.retry(envelope);
            let of =
                copies::announce(log, retry, &boundary, fence, is_read, announcer, from_ms).await?;
            place.raise = place.raise.max(of.after_head());
            draft.via.insert(boundary, Via::Announced(of.number));
        }
        let mint = place.mint(log, draft, envelope);
        let mut transaction = draft.mint(&mint)?;
        let mut items = take(&mut transaction.items);
        let mut token = None;
        let mut sends = log.retry(envelope).attempts_max(SENDS_MAX).write();
        let again = loop {
            let send = || {
                let token = token.as_ref().unwrap_or(&transaction.append_id);
                let sent = send(log, draft, &mint, &mut items, token);
                sent.map_ok(|()| Verdict::End(End::Committed))
            };
            let judge = |failure, sent_before| classify(&transaction, failure, sent_before);
            let refused = match sends.judged(OPERATION, send, judge).await? {
                Verdict::End(end) => return Ok(end),
                Verdict::Conflict(conflict) => return Err(LogError::Conflict(conflict)),
                Verdict::Again(again) => break again,
                Verdict::Copies(refused) => refused,
            };
            let mut whole = BTreeSet::new();
            for (boundary, copy) in refused {
                let (retry, fence) = (log.retry(envelope), &draft.effect.fences[&boundary]);
                let look = match copy {
                    None => Look::Fence,
                    Some(copy) => {
                        copies::look(log, retry, &boundary, copy, &fence.requires, from_ms).await
                    }
                };
                match look {
                    Look::More(changes) if !sends.is_unsettled() => {
                        return Err(LogError::Conflict(Conflict(changes)));
                    }
                    Look::Again => {}
                    Look::More(_) | Look::Fence => drop(whole.insert(boundary)),
                }
            }
            if !whole.is_empty() {
                draft.via.retain(|boundary, _| !whole.contains(boundary));
                transaction = draft.mint(&mint)?;
                items = take(&mut transaction.items);
                // Another request needs another token.
                token = Some(log.clock.uuid().to_string());
            }
            sends.again(OPERATION).await?;
        };
        mints.contend(None).await?;
        if !again.announce.is_empty() {
            // Who announces waits for no announcement of others: they may wait for this one.
            draft.via.retain(|_, via| matches!(via, Via::Announced(_)));
            announce.clone_from(&again.announce);
        }
        place.move_on(log, again, envelope).await?;
    }
}

/// Notes the time of the writer's last event; the writer's next events get later times (rule 4).
pub(crate) fn note(log: &DcbLog, draft: &Draft<'_>) {
    if let Some((last, _)) = draft.effect.events.last() {
        log.own.note(last.at, log.clock.now_ms());
    }
}

/// A single event with nothing else is sent as a put, which costs half as much as a transaction and has no conflicts.
/// A request takes the items that it sends. A transaction gets copies, because a repeat must send the same text with
/// the same token. A put is seldom repeated, so a repeat makes it again.
fn send<'a>(
    log: &'a DcbLog,
    draft: &mut Draft<'_>,
    mint: &Mint<'_>,
    items: &mut [TransactWriteItem],
    token: &str,
) -> impl Future<Output = Result<(), Failure>> + use<'a> {
    let mut again = || draft.mint(mint).expect("it was minted before").items;
    let (put, items) = match items {
        [TransactWriteItem { put, .. }] => (put.take().or_else(|| again().pop()?.put), Vec::new()),
        items => (None, items.to_vec()),
    };
    let token = token.to_owned();
    async move {
        match put {
            Some(put) => log.table.put(put).await,
            None => log.table.transact(items, &token).await,
        }
    }
}

/// Where and when the draft's events go in partitions that the decision has not read (rule 8).
struct Place {
    /// The last slots of the partitions that the decision did not read.
    ends: BTreeMap<BoundaryId, u64>,
    /// The clock must reach this time, in milliseconds since 1970.
    raise: u64,
}

impl Place {
    async fn find(log: &DcbLog, draft: &Draft<'_>, envelope: &Envelope) -> Result<Self, LogError> {
        let mut place = Self { ends: BTreeMap::new(), raise: 0 };
        for (partition, hint) in draft.unread() {
            match hint {
                None => place.end(log, partition.clone(), false, envelope).await?,
                Some(hint) => drop(place.ends.insert(partition.clone(), hint)),
            }
        }
        Ok(place)
    }

    /// Takes slots and times from a refused send.
    async fn move_on(
        &mut self,
        log: &DcbLog,
        again: Again,
        envelope: &Envelope,
    ) -> Result<(), LogError> {
        self.raise = self.raise.max(again.raise);
        for partition in again.taken {
            self.end(log, partition, true, envelope).await?;
        }
        Ok(())
    }

    /// Reads the end of a partition.
    async fn end(
        &mut self,
        log: &DcbLog,
        partition: BoundaryId,
        strong: bool,
        envelope: &Envelope,
    ) -> Result<(), LogError> {
        let last = last(log, &partition, strong, log.retry(envelope)).await?;
        let (slot, at) = last.unwrap_or_default();
        self.raise = self.raise.max(at + 1);
        self.ends.insert(partition, slot);
        Ok(())
    }

    fn mint(&self, log: &DcbLog, draft: &Draft<'_>, envelope: &Envelope) -> Mint<'_> {
        let (now_ms, cause_ms) = (log.clock.now_ms(), log.clock.follow(envelope.cause_ms));
        let earliest = draft
            .at
            .unwrap_or_else(|| draft.effect.earliest_ms(now_ms, &log.own, cause_ms, draft.seen));
        Mint { ms: earliest.max(self.raise), append_id: log.clock.uuid(), ends: &self.ends }
    }
}
