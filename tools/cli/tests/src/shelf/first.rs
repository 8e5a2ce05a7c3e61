//! The first build: an item has a name, and a price in euros.

use ringfence_core::prelude::*;
use ringfence_stack::{MemberList, Visitor};

#[path = "stack.rs"]
mod stack;

pub(super) use stack::run;

#[derive(Clone, Debug, PartialEq, Event)]
struct ItemAdded {
    #[tag(partition)]
    item_id: String,
    name: String,
    price: u64,
}

#[derive(Clone, Debug, PartialEq, Event)]
struct ItemDropped {
    #[tag(partition)]
    item_id: String,
}

type Gone = ItemDropped;

#[derive(Reads)]
enum Consumed {
    ItemAdded { item_id: String, name: String, price: u64 },
    ItemDropped { item_id: String },
}

impl Consumed {
    fn item_id(&self) -> &str {
        match self {
            Self::ItemAdded { item_id, .. } | Self::ItemDropped { item_id } => item_id,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::ItemAdded { name, price, .. } => text(name, *price),
            Self::ItemDropped { .. } => "gone".to_owned(),
        }
    }
}

/// The automation of this build is broken, so a later build gets its dead letters.
fn label(_: &ItemAdded) -> Result<String, serde_json::Error> {
    Err(serde::de::Error::custom("it is broken"))
}

fn text(name: &str, price: u64) -> String {
    format!("{name} for {price}")
}

fn added(item_id: String, name: String, price: u64) -> ItemAdded {
    ItemAdded { item_id, name, price }
}

/// Slices write each type.
fn only_read(_: &mut MemberList<impl Visitor>) {}
