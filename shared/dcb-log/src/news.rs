//! What is new in a partition, validated by its fence (rule 5).
//!
//! A query is read-committed: the items of one transaction may appear one by one, and a writer may
//! commit between two pages. So the fence is read *first*: what it counts is
//! committed and lies at or below its `head`; whatever is committed later lies above, for under one
//! fence commit order is position order (rule 4). The events up to that head are therefore a fixed
//! set of known size, however long it takes to see them: a query that finds as many of each type has
//! found exactly them. What lies above the head is never looked at, so that no busy writer keeps a
//! reader from its page. Reading the fence first is safe only with this cut.
//!
//! The fences of many partitions are read in one strong BatchGetItem and not in a transaction, which
//! would be refused as a whole whenever one of them is being written. A transaction is not needed:
//! each partition is compared with its own fence alone, and a read of one item shows it as one
//! transaction has left it, counts and head together. Only one thing is lost with the transaction: a
//! read in the middle of an append may show its event and not yet the new fence. Who knows of an
//! event therefore names it, and a fence whose head lies before that event is read again.
//!
//! A backlog of many pages is counted as a whole before its first page is returned. What one strong
//! read has shown, later strong reads show too, so the further pages need no second count.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use ringfence::{Boundary, BoundaryId, Catalog, LogError, Position, StoreError};
use ringfence_dynamo::{BATCH_KEYS_MAX, Item, Retry};

use crate::fence::{FENCE_ID, fence_key};
use crate::get::OPERATION;
use crate::item::{COUNT, EVENT, HEAD, ID, POSITION, count, event_type, in_context, text};
use crate::log::DcbLog;

/// How often a fence is read until it counts an event that is known, and how often a partition is
/// queried until its events agree with the fence: some seconds, where items become visible within
/// milliseconds.
const LOOKS_MAX: u32 = 8;

const OUT_OF_TIME: &str = "no time was left to look again";

/// How many events of each type.
pub type Counts = BTreeMap<String, u64>;

/// How far a reader of one partition has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The last event it has; `None` before the first.
    pub position: Option<Position>,
    /// The events up to there, by type.
    pub counts: Counts,
}

/// What a partition's fence said at one moment.
#[derive(Clone, Debug)]
pub struct Mark {
    head: Position,
    counts: Counts,
    /// Whether every event up to `head` was seen in a strong read.
    settled: bool,
}

/// The next events of a partition, in order.
#[derive(Clone, Debug)]
pub struct News {
    /// The items as the table has them, with the context of their type where they name none; at most
    /// one page of a query (1 MB).
    pub events: Vec<Item>,
    /// What to go on with when there is more behind them.
    pub more: Option<Mark>,
}

/// Why what is new in a partition can't be told.
#[derive(Debug, thiserror::Error)]
pub enum NewsError {
    /// The fence counts more, or fewer, than the partition has, and time does not mend it.
    #[error("fence#{partition} counts {counted} {event_type}, the partition has {found}; {advice}")]
    Differs {
        /// The partition.
        partition: BoundaryId,
        /// The event type.
        event_type: String,
        /// How many the fence counts.
        counted: u64,
        /// How many there are.
        found: u64,
        /// The way out.
        advice: &'static str,
    },
    /// The fence does not count an event that is there, or there is no fence.
    #[error("fence#{partition} does not count {}; run `ringfence repair`", named(event.as_ref()))]
    Uncounted {
        /// The partition.
        partition: BoundaryId,
        /// The event, if it is known.
        event: Option<Position>,
    },
    /// A request failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl DcbLog {
    /// What the fences of the partitions say now, in their order. With a partition comes an event
    /// that is known to be in it, if there is one: its fence is read again until it counts the event.
    /// Each partition succeeds or fails for itself.
    ///
    /// # Errors
    /// A request that fails for good or too often.
    pub async fn marks(
        &self,
        partitions: &[(BoundaryId, Option<Position>)],
        retry: Retry,
    ) -> Result<Vec<Result<Mark, NewsError>>, LogError> {
        // What each fence said in the last look for it; those that this look did not get to are
        // missing, whatever an earlier one has shown: it may have been too early.
        let mut said: HashMap<&BoundaryId, Option<Mark>> = HashMap::new();
        let mut late: Vec<_> = partitions.iter().collect();
        let mut attempts = retry.attempts_max(LOOKS_MAX).start();
        loop {
            for (partition, _) in &late {
                said.remove(partition);
            }
            for chunk in late.chunks(BATCH_KEYS_MAX) {
                said.extend(self.read_fences(chunk, retry).await?);
            }
            late.retain(|(partition, event)| {
                let mark = said.get(partition).and_then(Option::as_ref);
                !mark.is_some_and(|mark| mark.counts(event.as_ref()))
            });
            if late.is_empty() || !attempts.again().await {
                break;
            }
        }
        let made = attempts.made();
        let mark = |(partition, event): &(BoundaryId, Option<Position>)| match said.get(partition) {
            Some(Some(mark)) if mark.counts(event.as_ref()) => Ok(mark.clone()),
            None => Err(LogError::from(StoreError::Throttled { attempts: made }).into()),
            Some(_) if made < LOOKS_MAX => Err(out_of_time(made)),
            Some(_) => {
                let (partition, event) = (partition.clone(), event.clone());
                Err(NewsError::Uncounted { partition, event })
            }
        };
        Ok(partitions.iter().map(mark).collect())
    }

    /// What those of at most [`BATCH_KEYS_MAX`] fences say that the store gets to; `None` for a fence that
    /// is not there, or that no writer of this protocol has touched.
    async fn read_fences<'p>(
        &self,
        partitions: &[&'p (BoundaryId, Option<Position>)],
        retry: Retry,
    ) -> Result<HashMap<&'p BoundaryId, Option<Mark>>, LogError> {
        let partitions = partitions.iter().map(|(partition, _)| partition);
        let keys: Vec<_> = partitions.clone().map(fence_key).collect();
        let fences = retry.run(|| self.table.get_batch(keys.clone(), true)).await;
        let (fences, left) = fences.map_err(|gave_up| gave_up.during(OPERATION))?;
        let of =
            |item: &Item| item.get(ID)?.as_s().ok()?.strip_prefix(FENCE_ID).map(BoundaryId::stored);
        let left: Vec<_> = left.iter().filter_map(of).collect();
        let fences: HashMap<_, _> =
            fences.iter().filter_map(|fence| Some((of(fence)?, fence))).collect();
        let read = partitions.filter(|partition| !left.contains(partition));
        let mark = |partition| fences.get(partition).and_then(|fence| Mark::of(fence));
        Ok(read.map(|partition| (partition, mark(partition))).collect())
    }

    /// The events of a partition behind `after` and up to the mark: all of them, or the first page
    /// and the mark to go on with. Memory: one page of a query.
    ///
    /// # Errors
    /// [`NewsError::Differs`] when the counts don't come to agree.
    pub async fn news(
        &self,
        partition: &BoundaryId,
        after: &Progress,
        mark: &Mark,
        retry: Retry,
    ) -> Result<News, NewsError> {
        let counts = |counts: &Counts, event_type: &str| counts.get(event_type).copied();
        let here = |event_type: &str| stored_here(&self.catalog, partition, event_type);
        let mut attempts = retry.attempts_max(LOOKS_MAX).start();
        loop {
            let nothing = Look::default();
            let look = match mark.differs(&after.counts, &nothing.found, here) {
                None if !mark.settled => nothing,
                _ => self.look(partition, after, mark, retry).await?,
            };
            let differs = match mark.settled {
                true => None,
                false => mark.differs(&after.counts, &look.found, here),
            };
            let Some(event_type) = differs else {
                let more = look.more.then(|| Mark { settled: true, ..mark.clone() });
                return Ok(News { events: look.events, more });
            };
            let counted = counts(&mark.counts, event_type).unwrap_or(0);
            let found = [&after.counts, &look.found].map(|all| counts(all, event_type));
            let found = found.into_iter().flatten().sum();
            // None is ever deleted, so what is too many stays too many.
            if found > counted || !attempts.again().await {
                if found <= counted && attempts.made() < LOOKS_MAX {
                    return Err(out_of_time(attempts.made()));
                }
                let advice = match self.catalog.schema(event_type) {
                    Some(_) => "run `ringfence verify`",
                    None => "add the type to the catalog if it is stored elsewhere",
                };
                let (partition, event_type) = (partition.clone(), event_type.to_owned());
                return Err(NewsError::Differs { partition, event_type, counted, found, advice });
            }
        }
    }

    /// One look at the partition: the first page whole; the others only counted, unless they are
    /// known to be there.
    async fn look(
        &self,
        partition: &BoundaryId,
        after: &Progress,
        mark: &Mark,
        retry: Retry,
    ) -> Result<Look, LogError> {
        let mut look = Look::default();
        let from = after.position.as_ref().map(|position| format!("{position} "));
        // The condition BETWEEN refuses limits in the wrong order.
        if from.as_deref().is_some_and(|from| from > mark.head.as_str()) {
            return Ok(look);
        }
        let mut start = None;
        loop {
            let whole = look.events.is_empty();
            let query = || {
                self.table.query(|query| {
                    let query = of_news(query, partition, from.as_deref(), mark);
                    let query = query.set_exclusive_start_key(start.clone());
                    match whole {
                        true => query,
                        false => query
                            .projection_expression("#event, #position")
                            .expression_attribute_names("#event", EVENT),
                    }
                })
            };
            let page = retry.run(query).await;
            let page = page.map_err(|gave_up| gave_up.during("reading a partition"))?;
            for item in page.items.unwrap_or_default() {
                let Some(event_type) = event_type(&item) else { continue };
                *look.found.entry(event_type.to_owned()).or_default() += 1;
                if whole {
                    look.events.push(in_context(&self.catalog, item));
                } else {
                    look.more = true;
                }
            }
            start = page.last_evaluated_key;
            if start.is_none() {
                return Ok(look);
            }
            if mark.settled && !look.events.is_empty() {
                look.more = true;
                return Ok(look);
            }
        }
    }
}

/// The events of a partition up to the mark, from a position on.
fn of_news(
    query: QueryFluentBuilder,
    partition: &BoundaryId,
    from: Option<&str>,
    mark: &Mark,
) -> QueryFluentBuilder {
    let query = query
        .expression_attribute_names("#id", ID)
        .expression_attribute_names("#position", POSITION)
        .expression_attribute_values(":id", text(partition.as_str()))
        .expression_attribute_values(":head", text(mark.head.as_str()))
        .consistent_read(true);
    match from {
        Some(from) => query
            .key_condition_expression("#id = :id AND #position BETWEEN :from AND :head")
            .expression_attribute_values(":from", text(from)),
        None => query.key_condition_expression("#id = :id AND #position <= :head"),
    }
}

/// The deadline ended it, not the looks: a later call may find that all agree.
fn out_of_time(attempts: u32) -> NewsError {
    let (operation, source) = ("comparing a partition with its fence", OUT_OF_TIME.into());
    LogError::from(StoreError::Unavailable { operation, attempts, source }).into()
}

/// What an error says that a fence does not count.
fn named(event: Option<&Position>) -> String {
    event.map_or_else(|| "the partition's events".to_owned(), |event| format!("event {event}"))
}

/// What one look at a partition found.
#[derive(Default)]
struct Look {
    events: Vec<Item>,
    found: Counts,
    more: bool,
}

impl Mark {
    fn of(fence: &Item) -> Option<Self> {
        let head = Position::try_from(fence.get(HEAD)?.as_s().ok()?.clone()).ok()?;
        let types = fence.keys().filter_map(|name| name.strip_prefix(COUNT));
        let counts = types.map(|name| (name.to_owned(), count(Some(fence), name))).collect();
        Some(Self { head, counts, settled: false })
    }

    /// Whether the event is among those that the fence counts; without one, whatever it counts.
    fn counts(&self, event: Option<&Position>) -> bool {
        event.is_none_or(|event| *event <= self.head)
    }

    /// A type of which there are not as many as the fence counts, and `here` says that they are
    /// stored in the partition; rather one of which there are too many.
    fn differs<'a>(
        &'a self,
        before: &'a Counts,
        found: &'a Counts,
        here: impl Fn(&str) -> bool,
    ) -> Option<&'a str> {
        let of = |counts: &Counts, name: &str| counts.get(name).copied().unwrap_or(0);
        let types = self.counts.keys().chain(before.keys()).chain(found.keys());
        let mut few = None;
        for event_type in types {
            let counted = of(&self.counts, event_type);
            let there = of(before, event_type) + of(found, event_type);
            if there > counted {
                return Some(event_type);
            }
            if there < counted && here(event_type) {
                few = few.or(Some(event_type.as_str()));
            }
        }
        few
    }
}

/// Whether events of the type that the partition's fence counts are stored in it. The fence of a
/// cross-partition tag also counts events that carry the tag and are stored elsewhere. A type that
/// the catalog does not know is taken as stored here: better a difference than a gap.
fn stored_here(catalog: &Catalog, partition: &BoundaryId, event_type: &str) -> bool {
    let (Some(schema), Some(boundary)) = (catalog.schema(event_type), partition.decode()) else {
        return true;
    };
    let keys = schema.tags.iter().filter(|tag| tag.partition).map(|tag| &*tag.key);
    match boundary {
        Boundary::Tag(tag) => keys.eq([&*tag.key]),
        Boundary::CompositePartition(tags, _) => keys.eq(tags.iter().map(|tag| &*tag.key)),
        Boundary::Tagless => keys.eq([""; 0]),
        Boundary::Composite(_) | Boundary::EventType(_) => true,
    }
}
