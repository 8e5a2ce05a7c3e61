//! The second build: an item has a title, and a price in euros.

use ringfence_core::prelude::*;
use ringfence_stack::{MemberList, Visitor};

#[path = "stack.rs"]
mod stack;

pub(super) use stack::run;

#[derive(Clone, Debug, PartialEq, Event)]
#[event(version = 2)]
#[upcast(1 = name_is_title)]
struct ItemAdded {
    #[tag(partition)]
    item_id: String,
    title: String,
    price: u64,
}

pub(super) fn name_is_title(mut data: Fields) -> Result<Fields, FieldError> {
    data.rename("name", "title")?;
    Ok(data)
}

#[derive(Clone, Debug, PartialEq, Event)]
struct ItemDropped {
    #[tag(partition)]
    item_id: String,
}

type Gone = ItemDropped;

#[derive(Reads)]
enum Consumed {
    ItemAdded { item_id: String, title: String, price: u64 },
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
            Self::ItemAdded { title, price, .. } => text(title, *price),
            Self::ItemDropped { .. } => "gone".to_owned(),
        }
    }
}

fn label(item: &ItemAdded) -> Result<String, serde_json::Error> {
    Ok(text(&item.title, item.price))
}

fn text(title: &str, price: u64) -> String {
    format!("{title} for {price}")
}

fn added(item_id: String, title: String, price: u64) -> ItemAdded {
    ItemAdded { item_id, title, price }
}

/// Slices write each type.
fn only_read(_: &mut MemberList<impl Visitor>) {}
