//! The fourth build writes what the third one reads: an item has a price in cents. It is removed, and not dropped.

use ringfence_core::prelude::*;
use ringfence_stack::{MemberList, Visitor};

use super::second::name_is_title;
use super::third::price_in_cents;

#[path = "stack.rs"]
mod stack;

pub(super) use stack::run;

#[derive(Clone, Debug, PartialEq, Event)]
#[event(version = 3)]
#[upcast(1 = name_is_title, 2 = price_in_cents)]
struct ItemAdded {
    #[tag(partition)]
    item_id: String,
    title: String,
    cents: u64,
}

/// The older name of [`ItemRemoved`].
#[derive(Clone, Debug, PartialEq, Event)]
#[event(retired)]
struct ItemDropped {
    #[tag(partition)]
    item_id: String,
}

#[derive(Clone, Debug, PartialEq, Event)]
struct ItemRemoved {
    #[tag(partition)]
    item_id: String,
}

type Gone = ItemRemoved;

#[derive(Reads)]
enum Consumed {
    ItemAdded {
        item_id: String,
        title: String,
        cents: u64,
    },
    #[reads(also = "ItemDropped")]
    ItemRemoved {
        item_id: String,
    },
}

impl Consumed {
    fn item_id(&self) -> &str {
        match self {
            Self::ItemAdded { item_id, .. } | Self::ItemRemoved { item_id } => item_id,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::ItemAdded { title, cents, .. } => text(title, *cents),
            Self::ItemRemoved { .. } => "gone".to_owned(),
        }
    }
}

fn label(item: &ItemAdded) -> Result<String, serde_json::Error> {
    Ok(text(&item.title, item.cents))
}

fn text(title: &str, cents: u64) -> String {
    format!("{title} for {cents} cents")
}

fn added(item_id: String, title: String, euros: u64) -> ItemAdded {
    ItemAdded { item_id, title, cents: euros * 100 }
}

/// No slice writes it any more.
fn only_read(list: &mut MemberList<impl Visitor>) {
    list.event::<ItemDropped>();
}
