//! Reads boundaries concurrently, page by page, and merges them in fold order (rule 2).

use std::cmp::Reverse;
use std::collections::VecDeque;

use aws_sdk_dynamodb::operation::query::builders::QueryInputBuilder;
use futures::future::try_join_all;
use futures::stream::{BoxStream, StreamExt, try_unfold};
use ringfence_aws::{BATCH_KEYS_MAX, Item, Retry};
use ringfence_core::{
    Access, BoundaryId, Catalog, Consistency, Envelope, LogError, Page, Plan, Read, SequencedEvent,
};

use crate::get::get_all;
use crate::item::{
    AT, COMPOSITE_INDEX, DATA, ID, POSITION, decode, items_id, name, number, partition, place_only,
    read_type, tag_index, text,
};
use crate::log::DcbLog;

/// The events of all reads of the plan, each once, merged in fold order. A partition ends before its first gap. It
/// holds one page of each read, however many events there are.
pub(crate) fn read<'a>(
    log: &'a DcbLog,
    plan: &'a Plan,
    consistency: Consistency,
    envelope: &'a Envelope,
) -> BoxStream<'a, Result<SequencedEvent, LogError>> {
    const WHOLE: &Page = &Page { after: None, limit: None, backwards: false };
    sources(log, plan, WHOLE, consistency == Consistency::Strong, true, log.retry(envelope))
}

/// The events of all reads in the order of the page, from its beginning. Decisions never rest on them.
pub(crate) fn merged<'a>(
    log: &'a DcbLog,
    plan: &'a Plan,
    page: &'a Page,
    retry: Retry,
) -> BoxStream<'a, Result<SequencedEvent, LogError>> {
    sources(log, plan, page, false, false, retry)
}

fn sources<'a>(
    log: &'a DcbLog,
    plan: &'a Plan,
    page: &'a Page,
    strong: bool,
    dense: bool,
    retry: Retry,
) -> BoxStream<'a, Result<SequencedEvent, LogError>> {
    let source = |read: &'a Read| Source {
        log,
        plan,
        read,
        retry,
        page,
        strong,
        dense,
        wanted: (dense && read.access == Access::Partition).then_some(read.after + 1),
        events: VecDeque::new(),
        failed: Vec::new(),
        keys: VecDeque::new(),
        next: Next::First,
    };
    let mut sources: Vec<Source<'a>> = plan.reads.iter().map(source).collect();
    // If two sources have the same event, the first one counts. The table is first, because it has everything.
    sources.sort_by_key(|source| !source.read.access.is_of_table());
    try_unfold(sources, move |mut sources| async move {
        let dry = sources.iter_mut().filter(|source| source.is_dry());
        try_join_all(dry.map(Source::fill)).await?;
        if let Some(error) = sources.iter_mut().find_map(|source| source.failed.pop()) {
            return Ok(Some((Err(error), sources)));
        }
        Ok(next(&mut sources, page.backwards).map(|event| (Ok(event), sources)))
    })
    .map(Result::flatten)
    .boxed()
}

/// The next event, removed from every source that has it.
fn next(sources: &mut [Source<'_>], backwards: bool) -> Option<SequencedEvent> {
    let fronts = sources
        .iter()
        .enumerate()
        .filter_map(|(n, source)| source.events.front().map(|event| (order(event), Reverse(n))));
    let (_, Reverse(first)) =
        if backwards { fronts.max() } else { fronts.min_by_key(|(at, Reverse(n))| (*at, *n)) }?;
    let event = sources[first].events.pop_front()?;
    for source in sources {
        source.events.pop_front_if(|copy| order(copy) == order(&event));
    }
    Some(event)
}

/// The order of [`ringfence_core::Place`], without a copy.
fn order(event: &SequencedEvent) -> (u64, &BoundaryId, u64) {
    (event.at, &event.partition, event.slot)
}

/// Where a source continues.
enum Next {
    First,
    After(Item),
    End,
}

/// One boundary, read page by page.
struct Source<'a> {
    log: &'a DcbLog,
    plan: &'a Plan,
    read: &'a Read,
    /// Retries of each page. Each page has all attempts, but no attempt begins after the command's deadline.
    retry: Retry,
    page: &'a Page,
    strong: bool,
    /// Whether a decision rests on the source.
    dense: bool,
    /// The next slot of a partition on which a decision rests.
    wanted: Option<u64>,
    events: VecDeque<SequencedEvent>,
    /// Errors of events that can't be decoded, if no decision rests on them.
    failed: Vec<LogError>,
    /// Keys of items that an index does not project, in their order.
    keys: VecDeque<Item>,
    next: Next,
}

impl Source<'_> {
    fn is_dry(&self) -> bool {
        let ended = self.keys.is_empty() && matches!(self.next, Next::End);
        !(ended || self.knows_first())
    }

    /// Whether the first of the events precedes all unread ones. Events of one millisecond have no order in an index.
    fn knows_first(&self) -> bool {
        match (self.events.front(), self.events.back()) {
            (Some(first), Some(last)) => {
                self.read.access == Access::Partition || first.at != last.at
            }
            _ => false,
        }
    }

    /// Reads until the first event is known or no page is left. A page can be empty without being the last.
    async fn fill(&mut self) -> Result<(), LogError> {
        while self.is_dry() {
            if self.keys.is_empty() {
                self.page().await?;
            } else {
                self.complete().await?;
            }
        }
        Ok(())
    }

    async fn page(&mut self) -> Result<(), LogError> {
        let start = match std::mem::replace(&mut self.next, Next::End) {
            Next::First => None,
            Next::After(key) => Some(key),
            Next::End => return Ok(()),
        };
        let query = || self.log.table.query(|query| self.of_boundary(query, start.clone()));
        let page = self.retry.run(query).await;
        let page = page.map_err(|gave_up| gave_up.during("reading events"))?;
        if let Some(key) = page.last_evaluated_key {
            self.next = Next::After(key);
        }
        let items = page.items.unwrap_or_default();
        if self.read.access.is_of_table() || items.iter().all(|item| item.contains_key(DATA)) {
            self.accept(items)
        } else {
            // The index projects only keys, or less than an event.
            self.keys.extend(items.into_iter().map(|mut item| {
                item.retain(|name, _| name == ID || name == POSITION);
                item
            }));
            Ok(())
        }
    }

    fn of_boundary(&self, mut query: QueryInputBuilder, start: Option<Item>) -> QueryInputBuilder {
        let boundary = || self.read.boundary.as_str().to_owned();
        let (index, value) = match &self.read.access {
            Access::Partition => (None, boundary()),
            Access::TagItems(_) | Access::TypeItems(_) => (None, items_id(&self.read.boundary)),
            Access::TagIndex(tag) => (Some(tag_index(&tag.key)), tag.value.clone()),
            Access::CompositeIndex(_) => (Some(COMPOSITE_INDEX.to_owned()), boundary()),
        };
        let name = index.clone().unwrap_or_else(|| ID.to_owned());
        let sort_key = if index.is_some() { AT } else { POSITION };
        // An index has no strong read.
        let strong = self.read.access.is_of_table() && self.strong;
        let mut condition = "#key = :key".to_owned();
        if let Some((beyond, than)) = self.range() {
            condition = format!("{condition} AND #sort {beyond} :than");
            query = query
                .expression_attribute_names("#sort", sort_key)
                .expression_attribute_values(":than", number(than));
        }
        query
            .set_index_name(index)
            .key_condition_expression(condition)
            .expression_attribute_names("#key", name)
            .expression_attribute_values(":key", text(value))
            .consistent_read(strong)
            .set_scan_index_forward(self.page.backwards.then_some(false))
            .set_limit(self.page.limit.map(|limit| self.items_of_page(limit)))
            .set_exclusive_start_key(start)
    }

    /// Where the read of the boundary begins, by its sort key. A partition is sorted by slot, so another partition
    /// than the one where the page begins is read from its start. All other boundaries are sorted by time.
    fn range(&self) -> Option<(&'static str, u64)> {
        match (&self.read.access, &self.page.after) {
            (Access::Partition, None) => (self.read.after > 0).then_some((">", self.read.after)),
            (Access::Partition, Some(after)) if after.partition != self.read.boundary => None,
            (Access::Partition, Some(after)) if self.page.backwards => Some(("<", after.slot)),
            (Access::Partition, Some(after)) => Some((">", after.slot)),
            // Several events can have this time, and the position of an index item has a fraction.
            (_, Some(after)) if self.page.backwards => Some(("<", after.at.saturating_add(1))),
            (_, Some(after)) => Some((">=", after.at)),
            (_, None) => (self.read.after > 0).then_some((">", self.read.after)),
        }
    }

    /// A request asks for at most as many items as the answer has events; the read continues if the query does not
    /// match all of them. For an index it asks for one more, which shows that the event before it is really the next.
    fn items_of_page(&self, limit: usize) -> i32 {
        let more = usize::from(self.read.access != Access::Partition);
        i32::try_from(limit.max(1).saturating_add(more)).unwrap_or(i32::MAX)
    }

    /// Reads the items of the next keys. A missing item is not seen, and the append's condition notices that.
    async fn complete(&mut self) -> Result<(), LogError> {
        let keys = self.keys.drain(..self.keys.len().min(BATCH_KEYS_MAX)).collect::<Vec<_>>();
        let items = get_all(self.log, self.retry, keys, self.strong).await?;
        self.accept(items)
    }

    /// Decodes items. An item that can't be decoded fails the read if the decision consumes its type. Events that the
    /// decision does not consume appear without their content, or not at all.
    fn accept(&mut self, items: Vec<Item>) -> Result<(), LogError> {
        for item in items {
            let partition = || partition(&item).unwrap_or_default();
            let event = match read_type(&item).is_none_or(|name| self.plan.reads_type(name)) {
                true => match decode_named(&self.log.catalog, item) {
                    Err(error) if !self.dense => {
                        self.failed.push(error);
                        continue;
                    }
                    decoded => decoded?,
                },
                false if self.dense && self.read.shows_unread(partition()) => {
                    place_named(&self.log.catalog, item, &self.read.access)?
                }
                false => continue,
            };
            let event = if self.read.access.is_of_table() { event } else { event.of_index() };
            // An index may project less than an event has; the command's key, for example, may be missing. So events
            // of a partition that is read come only from that read.
            let is_copy = self.read.access != Access::Partition;
            if self.dense && is_copy && self.plan.reads_partition(&event.partition) {
                continue;
            }
            if self.wanted.is_some_and(|wanted| event.slot != wanted) {
                self.next = Next::End;
                break;
            }
            self.wanted = self.wanted.map(|wanted| wanted + 1);
            if self.page.after.is_none() || self.page.holds(&event.place()) {
                self.events.push_back(event);
            }
        }
        // A batch has no order, and neither have events of one millisecond in an index.
        self.events.make_contiguous().sort_by(|a, b| match self.page.backwards {
            true => order(b).cmp(&order(a)),
            false => order(a).cmp(&order(b)),
        });
        Ok(())
    }
}

/// The event of an item, or an error that names the item.
pub(crate) fn decode_named(catalog: &Catalog, item: Item) -> Result<SequencedEvent, LogError> {
    let event = name(&item);
    decode(catalog, item).map_err(|source| LogError::Undecodable { event, source: source.into() })
}

/// An event without its content. Of its tags, it has only the one by which it was read.
fn place_named(catalog: &Catalog, item: Item, access: &Access) -> Result<SequencedEvent, LogError> {
    let event = name(&item);
    let found = place_only(catalog, item);
    let found = found.map_err(|source| LogError::Undecodable { event, source: source.into() })?;
    let tags = match access {
        Access::TagIndex(tag) | Access::TagItems(tag) => vec![tag.clone()],
        _ => Vec::new(),
    };
    Ok(SequencedEvent { tags, ..found })
}
