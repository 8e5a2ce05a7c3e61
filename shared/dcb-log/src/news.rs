//! What is new in a partition, validated by its fence (rule 5).
//!
//! A query is read-committed: the items of one transaction may appear one by one, and a writer may
//! commit between two pages. So the fence is read *first*, in a transaction: what it counts is
//! committed and lies at or below its `head`; whatever is committed later lies above, for under one
//! fence commit order is position order (rule 4). The events up to that head are therefore a fixed
//! set of known size, however long it takes to see them: a query that finds as many of each type has
//! found exactly them. What lies above the head is never looked at, so that no busy writer keeps a
//! reader from its page. Reading the fence first is safe only with this cut.
//!
//! A backlog of many pages is counted as a whole before its first page is returned. What one strong
//! read has shown, later strong reads show too, so the further pages need no second count.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::operation::query::QueryOutput;
use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use ringfence::{Boundary, BoundaryId, Catalog, LogError, Position};
use ringfence_dynamo::{Failure, GaveUp, Item, Kind, Retry};

use crate::fence::snapshot;
use crate::item::{COUNT, EVENT, HEAD, ID, POSITION, count, event_type, in_context, text};
use crate::limits::TRANSACTION_ACTIONS_MAX;
use crate::log::DcbLog;

/// How often a partition is queried until its events agree with the fence: some seconds, where
/// items become visible within milliseconds.
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
    /// Nothing counts the partition's events.
    #[error("{partition} has no fence that counts its events; run `ringfence repair`")]
    Uncounted {
        /// The partition.
        partition: BoundaryId,
    },
    /// A request failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl DcbLog {
    /// What the fences of the partitions say now, in their order; `None` for a fence that no writer
    /// of this protocol has touched.
    ///
    /// # Errors
    /// A request that fails for good or too often.
    pub async fn marks(
        &self,
        partitions: &[BoundaryId],
        retry: Retry,
    ) -> Result<Vec<Option<Mark>>, LogError> {
        let mut marks = Vec::with_capacity(partitions.len());
        for chunk in partitions.chunks(TRANSACTION_ACTIONS_MAX) {
            let fences = snapshot(self, retry, chunk.iter()).await?;
            marks.extend(fences.into_iter().map(|fence| Mark::of(&fence?)));
        }
        Ok(marks)
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
                    // The deadline ended it, not the looks: a later call may find them equal.
                    let failure = Failure::Unknown { source: OUT_OF_TIME.into() };
                    let gave_up = GaveUp { failure, attempts: attempts.made() };
                    let error = gave_up.during("comparing a partition with its fence");
                    return Err(LogError::from(error).into());
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
            let query = || self.query_news(partition, from.clone(), mark, whole, start.clone());
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

    async fn query_news(
        &self,
        partition: &BoundaryId,
        from: Option<String>,
        mark: &Mark,
        whole: bool,
        start: Option<Item>,
    ) -> Result<QueryOutput, Failure> {
        let range = match from {
            Some(_) => "#position BETWEEN :from AND :head",
            None => "#position <= :head",
        };
        let mut query = self.client.query();
        if let Some(from) = from {
            query = query.expression_attribute_values(":from", text(from));
        }
        if !whole {
            query = query
                .projection_expression("#event, #position")
                .expression_attribute_names("#event", EVENT);
        }
        self.meter.sent(Kind::Read);
        let page = query
            .table_name(&self.table)
            .key_condition_expression(format!("#id = :id AND {range}"))
            .expression_attribute_names("#id", ID)
            .expression_attribute_names("#position", POSITION)
            .expression_attribute_values(":id", text(partition.as_str()))
            .expression_attribute_values(":head", text(mark.head.as_str()))
            .consistent_read(true)
            .set_exclusive_start_key(start)
            .return_consumed_capacity(ReturnConsumedCapacity::Indexes)
            .send()
            .await?;
        self.meter.consumed(Kind::Read, page.consumed_capacity());
        Ok(page)
    }
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
    let keys = schema.tags.iter().filter(|tag| tag.partition).map(|tag| tag.key);
    match boundary {
        Boundary::Tag(tag) => keys.eq([&*tag.key]),
        Boundary::CompositePartition(tags, _) => keys.eq(tags.iter().map(|tag| &*tag.key)),
        Boundary::Tagless => keys.eq([""; 0]),
        Boundary::Composite(_) | Boundary::EventType(_) => true,
    }
}
