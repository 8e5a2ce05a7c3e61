//! An entry of the index: where an event is, and what readers need to pass over it.

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::Item;
use ringfence_core::{BoundaryId, LogKind, Metadata, SequencedEvent};
use serde_json::Value;

use crate::mark::Mark;
use crate::partition::Partition;

/// An entry of the index. It is not an event: the body is in the event's log, and readers fetch it.
///
/// It is stored as a list: partition, slot, type, time, and the mark or the body. With its place in the list of entries
/// that takes 35 bytes, besides the names; 27 with a hash. If the log's item has more than one block, the number of its
/// blocks follows.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// The partition of the event.
    pub partition: Partition,
    /// Its number there.
    pub slot: u64,
    /// Its type.
    pub event_type: String,
    /// When it was recorded, in milliseconds since 1970, or 0 if that is not known.
    pub at: u64,
    pub(crate) body: Body,
}

/// The bytes of a block, which costs half a read unit.
pub(crate) const BLOCK_BYTES: usize = 4 * 1_024;

/// The body of an event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Body {
    /// Its log has it, with this mark and in an item of so many blocks.
    InLog(Mark, u64),
    /// The index has it, because its log drops events.
    Here(Item),
}

impl Reference {
    pub(crate) fn mark(&self) -> Option<&Mark> {
        match &self.body {
            Body::InLog(mark, _) => Some(mark),
            Body::Here(_) => None,
        }
    }

    /// The blocks of 4 KB that a reader fetches for the body, each for half a read unit; none if the index has it.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        match &self.body {
            Body::InLog(_, blocks) => *blocks,
            Body::Here(_) => 0,
        }
    }

    pub(crate) fn attribute(&self) -> AttributeValue {
        let body = match &self.body {
            Body::InLog(mark, _) => mark.attribute(),
            Body::Here(item) => AttributeValue::M(item.clone()),
        };
        let number = |number: u64| AttributeValue::N(number.to_string());
        let [slot, at] = [self.slot, self.at].map(number);
        let blocks = Some(self.blocks()).filter(|blocks| *blocks > 1).map(number);
        let texts = [self.partition.id.as_str(), &self.event_type];
        let [partition, event_type] = texts.map(|text| AttributeValue::S(text.to_owned()));
        AttributeValue::L(
            [partition, slot, event_type, at, body].into_iter().chain(blocks).collect(),
        )
    }

    pub(crate) fn of_attribute(value: AttributeValue) -> Option<Self> {
        let AttributeValue::L(mut parts) = value else { return None };
        let whole = |value: AttributeValue| value.as_n().ok()?.parse().ok();
        let blocks = parts.drain(parts.len().min(5)..).next().map_or(Some(1), whole)?;
        let [partition, slot, event_type, at, body] = <[_; 5]>::try_from(parts).ok()?;
        let body = match body {
            AttributeValue::M(item) => Body::Here(item),
            mark => Body::InLog(Mark::of_attribute(&mark)?, blocks),
        };
        Some(Self {
            partition: BoundaryId::stored(partition.as_s().ok()?.as_str()).into(),
            slot: whole(slot)?,
            event_type: event_type.as_s().ok()?.clone(),
            at: whole(at)?,
            body,
        })
    }

    /// What is known of the event without its body: no context in the DCB log, no tag, no payload.
    pub(crate) fn known(&self) -> SequencedEvent {
        let id = &self.partition.id;
        let context = match self.partition.log {
            LogKind::Dcb => "",
            LogKind::Aggregates => id.as_str().split('#').next().unwrap_or_default(),
            LogKind::Documents => id.as_str().split('-').next().unwrap_or_default(),
        };
        SequencedEvent {
            partition: id.clone(),
            slot: self.slot,
            at: self.at,
            rest: 0,
            event_type: self.event_type.clone(),
            context: context.to_owned(),
            tags: Vec::new(),
            version: 1,
            data: Value::Null,
            metadata: Metadata::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readers look at the context of an event that can't be read.
    #[test]
    fn the_context_of_an_aggregate_may_have_a_hyphen() {
        for (partition, context) in [("gift-cards#c1", "gift-cards"), ("carts-ada", "carts")] {
            let partition = BoundaryId::stored(partition).into();
            let body = Body::Here(Item::new());
            let it = Reference { partition, slot: 1, event_type: "Sold".to_owned(), at: 1, body };
            assert_eq!(it.known().context, context);
        }
    }
}
