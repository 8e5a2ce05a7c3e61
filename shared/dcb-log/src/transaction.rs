//! An append as the one transaction that makes it (rules 3, 4, 7).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use aws_sdk_dynamodb::types::{
    ConditionCheck, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use ringfence::{
    BoundaryId, Catalog, CommandRecord, EventRef, Filing, LogError, Metadata, Name, NewEvent,
    Outcome, Position, Seen, SequencedEvent,
};
use ringfence_dynamo::{Item, item_bytes, rfc3339};
use uuid::Uuid;

use crate::fence::fence_key;
use crate::item::{
    EVENT_ID, HEAD, ID, count_name, encode, index_item, key, number, position_name, text,
};
use crate::{limits, record};

/// What one action of the transaction is, in the order of the actions.
pub(crate) enum Action {
    /// Puts an event, or an index item that repeats it.
    Event,
    /// Puts the command item.
    Command,
    /// Puts the marker of an imported event.
    Import,
    /// Checks or advances the fence of a boundary; with the counts that it requires.
    Fence(BoundaryId, BTreeMap<Name, u64>),
}

/// One transaction, to be sent as it is until its outcome is known.
pub(crate) struct Transaction {
    /// Makes sends of this transaction one, for ten minutes.
    pub(crate) token: String,
    pub(crate) actions: Vec<Action>,
    pub(crate) items: Vec<TransactWriteItem>,
    /// The events as they are in the log once it is committed.
    pub(crate) events: Vec<SequencedEvent>,
}

/// What is appended, before it has positions.
pub(crate) struct Draft<'a> {
    pub(crate) table: &'a str,
    pub(crate) events: Vec<(NewEvent, Filing, &'a str)>,
    pub(crate) seen: Option<&'a Seen>,
    pub(crate) record: Option<&'a CommandRecord>,
    pub(crate) metadata: &'a Metadata,
    /// The id that an imported event had in its first log.
    pub(crate) event_id: Option<&'a str>,
}

/// When and as what a transaction is minted.
pub(crate) struct Mint {
    /// Time of the positions, in milliseconds since 1970.
    pub(crate) ms: u64,
    /// The clock's time, in milliseconds since 1970.
    pub(crate) now_ms: u64,
    pub(crate) event_uuid: Uuid,
    pub(crate) token: Uuid,
}

/// What the transaction does to one fence.
#[derive(Default)]
struct Fence {
    requires: BTreeMap<Name, u64>,
    /// By type: how many events, and the position of the last.
    adds: BTreeMap<Name, (u64, Position)>,
    head: Option<Position>,
}

impl<'a> Draft<'a> {
    /// Files the events.
    pub(crate) fn new(
        table: &'a str,
        catalog: &'a Catalog,
        events: Vec<NewEvent>,
        metadata: &'a Metadata,
    ) -> Result<Self, LogError> {
        let file = |event: NewEvent| {
            let filing = catalog.filing_of_new(&event)?;
            let context = catalog.context(&event.event_type).unwrap_or_default();
            Ok::<_, LogError>((event, filing, context))
        };
        let events = events.into_iter().map(file).collect::<Result<_, _>>()?;
        Ok(Self { table, events, seen: None, record: None, metadata, event_id: None })
    }

    /// The transaction at these positions.
    pub(crate) fn mint(&self, mint: &Mint) -> Result<Transaction, LogError> {
        let first = Position::mint(mint.ms, &mint.event_uuid, 0)?;
        let fences = self.fences(mint)?;
        let marks = usize::from(self.record.is_some()) + usize::from(self.event_id.is_some());
        let index_items: usize = self.events.iter().map(|(_, filing, _)| filing.items.len()).sum();
        limits::actions(self.events.len() + index_items + marks + fences.len())?;

        let mut actions = Vec::new();
        let mut items = Vec::new();
        let mut bytes = 0;
        let mut events = Vec::with_capacity(self.events.len());
        for (index, (event, filing, context)) in self.events.iter().enumerate() {
            let position = Position::mint(mint.ms, &mint.event_uuid, index)?;
            let event = self.place(event, filing, context, position, mint.now_ms);
            let mut item = encode(&event, filing)?;
            item.extend(self.event_id.map(|id| (EVENT_ID.to_owned(), text(id))));
            let event_bytes = item_bytes(&item);
            limits::event(&event.event_type, event_bytes)?;
            let copies = filing.items.iter().map(|id| index_item(&item, filing, id));
            let copies: Vec<Item> = copies.collect();
            bytes += event_bytes + copies.iter().map(item_bytes).sum::<usize>();
            for item in [item].into_iter().chain(copies) {
                actions.push(Action::Event);
                items.push(put_new(self.table, item));
            }
            events.push(event);
        }
        if let Some(id) = self.event_id {
            let id = format!("import#{}", ringfence::escape(id));
            limits::key("the imported event's id", &id)?;
            actions.push(Action::Import);
            items.push(put_new(self.table, key(id, "IMPORT")));
        }
        if let Some(record) = self.record {
            let outcome = Outcome::Accepted(events.iter().map(EventRef::from).collect());
            let put = record::put(self.table, record, &outcome, mint.now_ms)?;
            bytes += item_bytes(&put.item);
            actions.push(Action::Command);
            items.push(TransactWriteItem::builder().put(put).build());
        }
        for (boundary, fence) in fences {
            let (item, fence_bytes) = fence.action(self.table, &boundary, &first)?;
            bytes += fence_bytes;
            items.push(item);
            actions.push(Action::Fence(boundary, fence.requires));
        }
        limits::transaction(bytes)?;
        Ok(Transaction { token: mint.token.to_string(), actions, items, events })
    }

    fn place(
        &self,
        event: &NewEvent,
        filing: &Filing,
        context: &str,
        position: Position,
        now_ms: u64,
    ) -> SequencedEvent {
        SequencedEvent {
            position,
            partition: filing.partition.clone(),
            event_type: event.event_type.clone().into_owned(),
            context: context.to_owned(),
            tags: event.tags.clone(),
            data: event.data.clone(),
            metadata: self.metadata.clone(),
            recorded_at: rfc3339(now_ms),
        }
    }

    /// Every fence that the decision depends on or the events are filed under, each once: one item
    /// takes one action.
    fn fences(&self, mint: &Mint) -> Result<BTreeMap<BoundaryId, Fence>, LogError> {
        let mut fences: BTreeMap<BoundaryId, Fence> = BTreeMap::new();
        for (boundary, types) in self.seen.into_iter().flat_map(Seen::iter) {
            fences.entry(boundary.clone()).or_default().requires = types.clone();
        }
        for (index, (event, filing, _)) in self.events.iter().enumerate() {
            let position = Position::mint(mint.ms, &mint.event_uuid, index)?;
            for boundary in &filing.boundaries {
                let fence = fences.entry(boundary.clone()).or_default();
                let (count, last) =
                    fence.adds.entry(event.event_type.clone()).or_insert((0, position.clone()));
                *count += 1;
                *last = position.clone();
                fence.head = Some(position.clone());
            }
        }
        Ok(fences)
    }
}

fn put_new(table: &str, item: Item) -> TransactWriteItem {
    let put = Put::builder()
        .table_name(table)
        .set_item(Some(item))
        .condition_expression("attribute_not_exists(#id)")
        .expression_attribute_names("#id", ID)
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .build();
    TransactWriteItem::builder().put(put.expect("table and item are set")).build()
}

/// The expressions of one action, every attribute name behind an alias.
#[derive(Default)]
struct Terms {
    names: HashMap<String, String>,
    values: Item,
    conditions: Vec<String>,
    sets: Vec<String>,
    adds: Vec<String>,
}

impl Fence {
    fn terms(&self, first: &Position) -> Terms {
        let mut terms = Terms::default();
        let types: BTreeSet<_> = self.requires.keys().chain(self.adds.keys()).collect();
        for (n, event_type) in types.into_iter().enumerate() {
            terms.names.insert(format!("#c{n}"), count_name(event_type));
            match self.requires.get(event_type) {
                None => {}
                Some(0) => terms.conditions.push(format!("attribute_not_exists(#c{n})")),
                Some(seen) => {
                    terms.conditions.push(format!("#c{n} = :n{n}"));
                    terms.values.insert(format!(":n{n}"), number(*seen));
                }
            }
            if let Some((count, last)) = self.adds.get(event_type) {
                terms.names.insert(format!("#p{n}"), position_name(event_type));
                terms.sets.push(format!("#p{n} = :p{n}"));
                terms.adds.push(format!("#c{n} :k{n}"));
                terms.values.insert(format!(":p{n}"), text(last.as_str()));
                terms.values.insert(format!(":k{n}"), number(*count));
            }
        }
        if let Some(head) = &self.head {
            terms.names.insert("#head".to_owned(), HEAD.to_owned());
            let guard = "(attribute_not_exists(#head) OR #head < :first)";
            terms.conditions.push(guard.to_owned());
            terms.sets.push("#head = :head".to_owned());
            terms.values.insert(":first".to_owned(), text(first.as_str()));
            terms.values.insert(":head".to_owned(), text(head.as_str()));
        }
        terms
    }

    /// The action and its size in bytes: an Update when events are filed under the fence, else a
    /// `ConditionCheck`.
    fn action(
        &self,
        table: &str,
        boundary: &BoundaryId,
        first: &Position,
    ) -> Result<(TransactWriteItem, usize), LogError> {
        let Terms { names, values, conditions, sets, adds } = self.terms(first);
        let key = fence_key(boundary);
        let bytes = item_bytes(&key) + item_bytes(&values);
        let bytes = bytes + names.values().map(String::len).sum::<usize>();
        let condition = conditions.join(" AND ");
        limits::expression(boundary.as_str(), &condition)?;
        let all_old = ReturnValuesOnConditionCheckFailure::AllOld;
        let action = TransactWriteItem::builder();
        if self.head.is_none() {
            let check = ConditionCheck::builder()
                .table_name(table)
                .set_key(Some(key))
                .condition_expression(condition)
                .set_expression_attribute_names(Some(names))
                // DynamoDB refuses an empty map of values.
                .set_expression_attribute_values((!values.is_empty()).then_some(values))
                .return_values_on_condition_check_failure(all_old)
                .build();
            let check = check.expect("table, key and condition are set");
            return Ok((action.condition_check(check).build(), bytes));
        }
        let update = format!("SET {} ADD {}", sets.join(", "), adds.join(", "));
        // It names at most as many types as a transaction has actions, far from an expression's limit.
        let update = Update::builder()
            .table_name(table)
            .set_key(Some(key))
            .update_expression(update)
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values))
            .return_values_on_condition_check_failure(all_old)
            .build();
        let update = update.expect("table, key and expression are set");
        Ok((action.update(update).build(), bytes))
    }
}
