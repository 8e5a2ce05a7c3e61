//! An event of version 1 that is read in version 4.

use std::hint::black_box;

use ringfence_core::{BoundaryId, SequencedEvent, prelude::*};
use serde_json::{Value, json};

use crate::measure::{Case, Side};
use crate::{BARE, OURS};

/// An order line, three versions later.
#[derive(Event)]
#[event(version = 4)]
#[upcast(1 = name_is_title, 2 = price_in_cents, 3 = has_a_currency)]
struct LineAdded {
    #[tag(partition)]
    order_id: String,
    product_id: String,
    title: String,
    quantity: u32,
    cents: u64,
    currency: String,
}

fn name_is_title(mut data: Fields) -> Result<Fields, FieldError> {
    data.rename("name", "title")?;
    Ok(data)
}

fn price_in_cents(mut data: Fields) -> Result<Fields, FieldError> {
    data.convert("price", |euros: u64| Ok(euros * 100))?;
    data.rename("price", "cents")?;
    Ok(data)
}

fn has_a_currency(mut data: Fields) -> Result<Fields, FieldError> {
    data.default("currency", "EUR")?;
    Ok(data)
}

/// The same three steps, handwritten.
fn by_hand(mut event: SequencedEvent) -> Option<SequencedEvent> {
    let fields = event.data.as_object_mut()?;
    let title = fields.remove("name")?;
    fields.insert("title".to_owned(), title);
    let euros = fields.remove("price")?.as_u64()?;
    fields.insert("cents".to_owned(), (euros * 100).into());
    fields.entry("currency").or_insert_with(|| "EUR".into());
    event.version = 4;
    Some(event)
}

/// Each side gets a copy of the event, like a reader that owns its events.
pub(crate) fn chain_of_three() -> Case {
    let catalog = Catalog::new("orders", [LineAdded::SCHEMA]).expect("it has one type");
    let data: Value = json!({
        "orderId": "order-000001", "productId": "product-0001", "name": "Mug", "quantity": 2, "price": 4,
    });
    let event = SequencedEvent {
        partition: BoundaryId::tag("orderId", "order-000001"),
        slot: 1,
        at: 0,
        rest: 0,
        event_type: LineAdded::NAME.to_owned(),
        context: "orders".to_owned(),
        tags: Vec::new(),
        version: 1,
        data,
        metadata: ringfence_core::Metadata::default(),
    };
    let copy = event.clone();
    let current = catalog.current(event.clone()).expect("its shape").into_event();
    assert_eq!(Some(current), by_hand(event.clone()), "the two sides make different events");
    let ours = Side::pure(move || {
        black_box(catalog.current(event.clone()).expect("its shape"));
    });
    let bare = Side::pure(move || {
        black_box(by_hand(copy.clone()));
    });
    Case { sides: vec![(OURS, ours), (BARE, bare)], unit: "event", units: 1 }
}
