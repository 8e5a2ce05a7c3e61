//! Reading boundaries: all at once, page by page, merged by position.

use std::collections::VecDeque;

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use futures::future::{FutureExt, try_join_all};
use futures::stream::{BoxStream, StreamExt, try_unfold};
use ringfence::{
    Access, Catalog, Consistency, Envelope, LogError, Page, Plan, Position, Read, SequencedEvent,
    StoreError,
};
use ringfence_dynamo::{BATCH_KEYS_MAX, Item, Retry};

use crate::get::get_all;
use crate::item::{
    COMPOSITE_INDEX, DATA, ID, POSITION, decode, items_id, read_type, tag_index, text,
};
use crate::log::DcbLog;

/// The events of all reads of the plan, merged by position, each once. It holds one page of each
/// read, however many events there are.
pub(crate) fn read<'a>(
    log: &'a DcbLog,
    plan: &'a Plan,
    consistency: Consistency,
    envelope: &'a Envelope,
) -> BoxStream<'a, Result<SequencedEvent, LogError>> {
    const WHOLE: &Page = &Page { after: None, limit: None, backwards: false };
    merged(log, plan, WHOLE, consistency == Consistency::Strong, log.retry(envelope))
}

/// The events of all reads from where the page begins, in its order.
pub(crate) fn merged<'a>(
    log: &'a DcbLog,
    plan: &'a Plan,
    page: &'a Page,
    strong: bool,
    retry: Retry,
) -> BoxStream<'a, Result<SequencedEvent, LogError>> {
    let source = |read| Source {
        log,
        read,
        retry,
        page,
        strong,
        events: VecDeque::new(),
        keys: VecDeque::new(),
        next: Next::First,
    };
    let mut sources: Vec<Source<'a>> = plan.reads.iter().map(source).collect();
    // Of two copies of an event the first source's is kept: the table's, which has everything.
    sources.sort_by_key(|source| !source.read.access.is_of_table());
    try_unfold(sources, move |mut sources| async move {
        let dry = sources.iter_mut().filter(|source| source.is_dry());
        // Each in a box: a request under way has many kilobytes, which a growing list would copy.
        try_join_all(dry.map(|source| source.fill().boxed())).await?;
        Ok(next(&mut sources, page.backwards).map(|event| (event, sources)))
    })
    .boxed()
}

/// The event that comes first, taken from every source that has it.
fn next(sources: &mut [Source<'_>], backwards: bool) -> Option<SequencedEvent> {
    let front = |source: &Source<'_>| source.events.front().map(|event| event.position.clone());
    let fronts = sources.iter().filter_map(front);
    let first: Position = if backwards { fronts.max() } else { fronts.min() }?;
    let holders = sources.iter_mut().filter(|source| front(source).as_ref() == Some(&first));
    let copies: Vec<_> = holders.filter_map(|source| source.events.pop_front()).collect();
    copies.into_iter().next()
}

/// Where a source goes on.
enum Next {
    First,
    After(Item),
    End,
}

/// One boundary, read page by page.
struct Source<'a> {
    log: &'a DcbLog,
    read: &'a Read,
    /// Of each page: the whole number of attempts, none past the command's deadline.
    retry: Retry,
    page: &'a Page,
    strong: bool,
    events: VecDeque<SequencedEvent>,
    /// Keys whose items an index does not project, in the order of their positions.
    keys: VecDeque<Item>,
    next: Next,
}

impl Source<'_> {
    fn is_dry(&self) -> bool {
        self.events.is_empty() && !(self.keys.is_empty() && matches!(self.next, Next::End))
    }

    /// Reads until there is an event or no more page; a page can be empty and not the last.
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
        if items.iter().all(|item| item.contains_key(DATA)) {
            self.accept(items)
        } else {
            // The index projects keys only, or less than an event.
            self.keys.extend(items.into_iter().map(|mut item| {
                item.retain(|name, _| name == ID || name == POSITION);
                item
            }));
            Ok(())
        }
    }

    fn of_boundary(
        &self,
        mut query: QueryFluentBuilder,
        start: Option<Item>,
    ) -> QueryFluentBuilder {
        let boundary = || self.read.boundary.as_str().to_owned();
        let (index, value) = match &self.read.access {
            Access::Partition => (None, boundary()),
            Access::TagItems(_) | Access::TypeItems(_) => (None, items_id(&self.read.boundary)),
            Access::TagIndex(tag) => (Some(tag_index(&tag.key)), tag.value.clone()),
            Access::CompositeIndex(_) => (Some(COMPOSITE_INDEX.to_owned()), boundary()),
        };
        let name = index.clone().unwrap_or_else(|| ID.to_owned());
        // An index has no strong read.
        let strong = self.read.access.is_of_table() && self.strong;
        let mut condition = "#key = :key".to_owned();
        if let Some(after) = &self.page.after {
            let beyond = if self.page.backwards { "<" } else { ">" };
            condition = format!("{condition} AND #position {beyond} :after");
            query = query
                .expression_attribute_names("#position", POSITION)
                .expression_attribute_values(":after", text(after.as_str()));
        }
        query
            .set_index_name(index)
            .key_condition_expression(condition)
            .expression_attribute_names("#key", name)
            .expression_attribute_values(":key", text(value))
            .consistent_read(strong)
            .set_scan_index_forward(self.page.backwards.then_some(false))
            .set_limit(self.page.limit.map(items_of_page))
            .set_exclusive_start_key(start)
    }

    /// Reads the items of the next keys. One that is not there is not seen, which the append's
    /// condition notices.
    async fn complete(&mut self) -> Result<(), LogError> {
        let keys = self.keys.drain(..self.keys.len().min(BATCH_KEYS_MAX)).collect::<Vec<_>>();
        let items = get_all(self.log, self.retry, keys, self.strong).await?;
        self.accept(items)?;
        self.events.make_contiguous().sort_by(|a, b| a.position.cmp(&b.position));
        if self.page.backwards {
            self.events.make_contiguous().reverse();
        }
        Ok(())
    }

    /// Decodes items. What can't be decoded fails the read if the decision consumes its type.
    fn accept(&mut self, items: Vec<Item>) -> Result<(), LogError> {
        for item in items {
            let consumed = read_type(&item).is_none_or(|t| self.read.types.contains(t));
            match decode_named(&self.log.catalog, item) {
                Ok(event) => self.events.push_back(event),
                Err(error) if consumed => return Err(error),
                Err(_) => {}
            }
        }
        Ok(())
    }
}

/// No more items are asked for at once than the answer has events; the read goes on if the query
/// does not match all of them.
fn items_of_page(limit: usize) -> i32 {
    i32::try_from(limit.max(1)).unwrap_or(i32::MAX)
}

/// The event of an item, or an error that names the item.
pub(crate) fn decode_named(catalog: &Catalog, item: Item) -> Result<SequencedEvent, LogError> {
    let name = |name| item.get(name).and_then(|value| value.as_s().ok()).cloned();
    let (partition, position) = (name(ID), name(POSITION));
    decode(catalog, item).map_err(|source| {
        let partition = partition.unwrap_or_default();
        match position.map(Position::try_from) {
            Some(Ok(position)) => {
                LogError::Undecodable { partition, position, source: source.into() }
            }
            _ => {
                let source = format!("partition {partition}").into();
                StoreError::Failed { operation: "decoding an item without a position", source }
                    .into()
            }
        }
    })
}
