//! Makes the request of an append (rules 1, 3, 4, 7): one conditional put, or a transaction.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use aws_sdk_dynamodb::types::{
    ConditionCheck, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use ringfence_aws::{Item, item_bytes};
use ringfence_core::{
    BoundaryId, CommandRecord, Counts, Effect, FenceEffect, Filing, LogError, Seen, SequencedEvent,
    limits,
};
use uuid::Uuid;

use crate::copies::{copy_key, copy_of};
use crate::fence::fence_key;
use crate::item::{
    ANNOUNCED, ANNOUNCER, EVENT_ID, HEAD, ID, OPEN, SINCE, count_name, encode, index_item, key,
    number, text,
};
use crate::log::DcbLog;
use crate::record;

/// An action of an append, in the order of the actions.
pub(crate) enum Action {
    /// Puts an event into a slot of its partition.
    Event {
        partition: BoundaryId,
        slot: u64,
        /// Whether the decision has read the partition. Then the slot is a condition.
        is_read: bool,
    },
    /// Puts an index item that repeats an event.
    Copy,
    /// Puts the command item, or adds a copied event to it.
    Command,
    /// Puts the marker of an imported event.
    Import,
    /// Checks that the slot after the last seen slot of a partition is free.
    Check { partition: BoundaryId, slot: u64 },
    /// Checks or advances the fence of a boundary.
    Fence {
        boundary: BoundaryId,
        requires: Counts,
        via: Via,
        /// How many copies the types declare. They are put before the append.
        copies: u16,
    },
}

/// The item that an append checks or updates for a fence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Via {
    /// The fence. An update requires that nobody has ever announced there.
    #[default]
    Fence,
    /// The fence, as the announcement of this number has announced.
    Announced(u64),
    /// The copy of this number, which is only checked.
    Copy(u64),
}

/// One append, sent unchanged until its outcome is known.
pub(crate) struct Transaction {
    /// Each of its events has it. As the token of the transaction it makes repeated sends one, for ten minutes.
    pub(crate) append_id: String,
    pub(crate) actions: Vec<Action>,
    pub(crate) items: Vec<TransactWriteItem>,
}

/// An append before it has slots and times.
pub(crate) struct Draft<'a> {
    pub(crate) table: &'a str,
    /// The events and requirements. The events are as the last request has them.
    pub(crate) effect: Effect,
    /// How each fence with copies takes part, if the writer knows that it has some.
    pub(crate) via: BTreeMap<BoundaryId, Via>,
    pub(crate) seen: Option<&'a Seen>,
    pub(crate) record: Option<&'a CommandRecord>,
    /// The record of the command that wrote the event, if the event is copied.
    pub(crate) copied: Option<CommandRecord>,
    /// The id that an imported event had in its first log.
    pub(crate) event_id: Option<&'a str>,
    /// The time of a restored event, in milliseconds since 1970. A new event gets the writer's time.
    pub(crate) at: Option<u64>,
}

/// The slots, the time and the id of one send of a draft.
pub(crate) struct Mint<'a> {
    /// Time of the first event, in milliseconds since 1970. Each further event is a millisecond later.
    pub(crate) ms: u64,
    pub(crate) append_id: Uuid,
    /// The last slots of the partitions that the decision did not read.
    pub(crate) ends: &'a BTreeMap<BoundaryId, u64>,
}

impl<'a> Draft<'a> {
    /// A draft of this effect alone.
    pub(crate) fn new(log: &'a DcbLog, effect: Effect) -> Self {
        let table = log.table.name();
        let partition = effect.targets.keys().next();
        let copy = |(boundary, fence): (&BoundaryId, &FenceEffect)| {
            let partition = partition.filter(|_| fence.copies > 0)?;
            Some((boundary.clone(), Via::Copy(copy_of(partition, fence.copies))))
        };
        // Who announces waits for no announcement of others: they may wait for this one.
        let via = match announced(&effect).next() {
            Some(_) => BTreeMap::new(),
            None => effect.fences.iter().filter_map(copy).collect(),
        };
        Self {
            table,
            effect,
            via,
            seen: None,
            record: None,
            copied: None,
            event_id: None,
            at: None,
        }
    }

    /// The events, as the last request has them.
    pub(crate) fn into_events(self) -> impl Iterator<Item = SequencedEvent> {
        self.effect.events.into_iter().map(|(event, _)| event)
    }

    /// The partitions whose last slot the decision does not know, each with the largest slot that it has seen.
    pub(crate) fn unread(&self) -> impl Iterator<Item = (&BoundaryId, Option<u64>)> {
        let targets = self.effect.targets.iter();
        targets.filter(|(_, target)| target.seen.is_none()).map(|(id, target)| (id, target.hint))
    }

    /// The request, and the events in their slots.
    pub(crate) fn mint(&mut self, mint: &Mint<'_>) -> Result<Transaction, LogError> {
        let append_id = mint.append_id.to_string();
        self.effect.mint(mint.ms, |partition| mint.ends.get(partition).copied().unwrap_or(0));
        let Effect { events, targets, checks, fences } = &self.effect;
        let mut actions = Vec::new();
        let mut items = Vec::with_capacity(events.len());
        let mut bytes = 0;
        for (event, filing) in events {
            let mut item = encode(event, filing, &append_id)?;
            item.extend(self.event_id.map(|id| (EVENT_ID.to_owned(), text(id))));
            let event_bytes = item_bytes(&item);
            limits::event(&event.event_type, event_bytes)?;
            let copies: Vec<Item> =
                filing.items.iter().map(|id| index_item(&item, filing, id)).collect();
            bytes += event_bytes + copies.iter().map(item_bytes).sum::<usize>();
            let partition = filing.partition.clone();
            let is_read = targets[&partition].seen.is_some();
            actions.push(Action::Event { partition, slot: event.slot, is_read });
            actions.extend(copies.iter().map(|_| Action::Copy));
            items.extend([item].into_iter().chain(copies).map(|item| put_new(self.table, item)));
        }
        if let Some(id) = self.event_id {
            let id = format!("import#{}", ringfence_core::escape(id));
            limits::key("the imported event's id", &id)?;
            actions.push(Action::Import);
            items.push(put_new(self.table, key(id, 0)));
        }
        if let Some(record) = self.record {
            let events = events.iter().map(|(event, _)| event);
            let item = record::item(record, events, mint.ms)?;
            bytes += item_bytes(&item);
            actions.push(Action::Command);
            items.push(put_new(self.table, item));
        }
        for (record, (event, _)) in self.copied.iter().zip(events) {
            let (item, item_bytes) = record::add(self.table, record, event)?;
            bytes += item_bytes;
            actions.push(Action::Command);
            items.push(item);
        }
        for (partition, seen) in checks {
            items.push(check_free(self.table, partition, seen + 1));
            actions.push(Action::Check { partition: partition.clone(), slot: seen + 1 });
        }
        for (boundary, fence) in fences {
            let is_filed = |(_, filing): &(_, Filing)| filing.fences.contains(boundary);
            let last = events.iter().rposition(is_filed).unwrap_or(0) as u64;
            let via = self.via.get(boundary).copied().unwrap_or_default();
            let (item, fence_bytes) =
                fence_action(fence, via, self.table, boundary, [mint.ms, mint.ms + last]);
            bytes += fence_bytes;
            items.push(item);
            let (boundary, requires) = (boundary.clone(), fence.requires.clone());
            actions.push(Action::Fence { boundary, requires, via, copies: fence.copies });
        }
        limits::transaction(bytes)?;
        Ok(Transaction { append_id, actions, items })
    }
}

/// The fences that an append updates and for which its types declare copies.
pub(crate) fn announced(effect: &Effect) -> impl Iterator<Item = &BoundaryId> {
    let fences = effect.fences.iter();
    let updated = fences.filter(|(_, fence)| fence.copies > 0 && !fence.adds.is_empty());
    updated.map(|(boundary, _)| boundary)
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

/// The action that requires a free slot.
fn check_free(table: &str, partition: &BoundaryId, slot: u64) -> TransactWriteItem {
    let check = ConditionCheck::builder()
        .table_name(table)
        .set_key(Some(key(partition.as_str(), slot)))
        .condition_expression("attribute_not_exists(#id)")
        .expression_attribute_names("#id", ID)
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .build();
    let check = check.expect("table, key and condition are set");
    TransactWriteItem::builder().condition_check(check).build()
}

/// The expressions of one action. Every attribute name has an alias.
#[derive(Default)]
struct Terms {
    names: HashMap<String, String>,
    values: Item,
    conditions: Vec<String>,
    sets: Vec<String>,
    adds: Vec<String>,
    removes: Vec<&'static str>,
}

/// The conditions and changes of a fence for an append. `first` is the time of the append's first event, and `last`
/// the time of the last event that the fence counts.
fn terms(fence: &FenceEffect, via: Via, [first, last]: [u64; 2]) -> Terms {
    let mut terms = Terms::default();
    let types: BTreeSet<_> = fence.requires.keys().chain(fence.adds.keys()).collect();
    for (n, event_type) in types.into_iter().enumerate() {
        terms.names.insert(format!("#c{n}"), count_name(event_type));
        match fence.requires.get(event_type) {
            None => {}
            Some(0) => terms.conditions.push(format!("attribute_not_exists(#c{n})")),
            Some(seen) => {
                terms.conditions.push(format!("#c{n} = :n{n}"));
                terms.values.insert(format!(":n{n}"), number(*seen));
            }
        }
        if let Some(added) = fence.adds.get(event_type) {
            terms.adds.push(format!("#c{n} :k{n}"));
            terms.values.insert(format!(":k{n}"), number(*added));
        }
    }
    if !fence.adds.is_empty() {
        terms.names.insert("#head".to_owned(), HEAD.to_owned());
        terms.sets.push("#head = :head".to_owned());
        terms.values.insert(":head".to_owned(), number(last));
        let guard = "(attribute_not_exists(#head) OR #head < :first)";
        terms.conditions.push(guard.to_owned());
        terms.values.insert(":first".to_owned(), number(first));
    }
    let mut name = |alias: &str, name: &str| terms.names.insert(alias.to_owned(), name.to_owned());
    match via {
        Via::Fence if fence.adds.is_empty() => {}
        Via::Fence => {
            name("#announced", ANNOUNCED);
            terms.conditions.push("attribute_not_exists(#announced)".to_owned());
        }
        Via::Announced(announced) => {
            name("#announced", ANNOUNCED);
            name("#announcer", ANNOUNCER);
            name("#since", SINCE);
            terms.conditions.push("#announced = :announced".to_owned());
            terms.values.insert(":announced".to_owned(), number(announced));
            terms.removes.extend(["#announcer", "#since"]);
        }
        Via::Copy(_) => {
            name("#open", OPEN);
            terms.conditions.push("attribute_exists(#open)".to_owned());
        }
    }
    terms
}

/// The action and its size in bytes: an Update if events are filed under the fence, otherwise a `ConditionCheck`.
fn fence_action(
    fence: &FenceEffect,
    via: Via,
    table: &str,
    boundary: &BoundaryId,
    times: [u64; 2],
) -> (TransactWriteItem, usize) {
    let Terms { names, values, conditions, sets, adds, removes } = terms(fence, via, times);
    let key = match via {
        Via::Copy(copy) => copy_key(boundary, copy),
        Via::Fence | Via::Announced(_) => fence_key(boundary),
    };
    let bytes = item_bytes(&key) + item_bytes(&values);
    let bytes = bytes + names.values().map(String::len).sum::<usize>();
    let condition = conditions.join(" AND ");
    let all_old = ReturnValuesOnConditionCheckFailure::AllOld;
    let action = TransactWriteItem::builder();
    if adds.is_empty() {
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
        return (action.condition_check(check).build(), bytes);
    }
    let removes = removes.join(", ");
    let removes = if removes.is_empty() { removes } else { format!(" REMOVE {removes}") };
    let update = format!("SET {} ADD {}{removes}", sets.join(", "), adds.join(", "));
    // It names at most as many types as an append has actions, far below the limit of an expression.
    let update = Update::builder()
        .table_name(table)
        .set_key(Some(key))
        .update_expression(update)
        .set_condition_expression((!condition.is_empty()).then_some(condition))
        .set_expression_attribute_names(Some(names))
        .set_expression_attribute_values(Some(values))
        .return_values_on_condition_check_failure(all_old)
        .build();
    let update = update.expect("table, key and expression are set");
    (action.update(update).build(), bytes)
}
