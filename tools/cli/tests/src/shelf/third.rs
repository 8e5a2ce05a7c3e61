//! The third build reads what the fourth one writes: an item has a price in cents, or is removed. It still writes what
//! the second build reads.

use ringfence_core::prelude::*;
use ringfence_stack::{MemberList, Visitor};

use super::second::name_is_title;

#[path = "stack.rs"]
mod stack;

pub(super) use stack::run;

#[derive(Clone, Debug, PartialEq, Event)]
#[event(version = 3)]
#[upcast(1 = name_is_title, 2 = price_in_cents)]
#[write(2 = cents_in_price)]
struct ItemAdded {
    #[tag(partition)]
    item_id: String,
    title: String,
    cents: u64,
}

pub(super) fn price_in_cents(mut data: Fields) -> Result<Fields, FieldError> {
    data.convert("price", |euros: u64| Ok(euros * 100))?;
    data.rename("price", "cents")?;
    Ok(data)
}

fn cents_in_price(mut data: Fields) -> Result<Fields, FieldError> {
    data.convert("cents", |cents: u64| Ok(cents / 100))?;
    data.rename("cents", "price")?;
    Ok(data)
}

#[derive(Clone, Debug, PartialEq, Event)]
struct ItemDropped {
    #[tag(partition)]
    item_id: String,
}

/// The later name of [`ItemDropped`].
#[derive(Clone, Debug, PartialEq, Event)]
struct ItemRemoved {
    #[tag(partition)]
    item_id: String,
}

type Gone = ItemDropped;

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

/// No slice writes it yet.
fn only_read(list: &mut MemberList<impl Visitor>) {
    list.event::<ItemRemoved>();
}
