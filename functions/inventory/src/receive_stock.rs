//! ReceiveStock: adds the units of a delivery to a product's stock.

use std::num::NonZeroU32;

use crate::{DeliveryId, Inventory, ProductId, StockReceived};
use ringfence::prelude::*;
use serde::Serialize;

/// Adds units to a product's stock.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct ReceiveStock {
    #[tag(partition)]
    pub delivery_id: DeliveryId,
    /// Units that arrive are added, whatever the stock is. So the decision does not read it.
    #[tag(skip)]
    pub product_id: ProductId,
    pub units: NonZeroU32,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    StockReceived,
}

/// Whether the delivery has arrived.
#[derive(Default)]
pub struct Delivery {
    received: bool,
}

/// Why nothing is added.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    #[error("delivery {delivery_id} has already been received")]
    DeliveryAlreadyReceived { delivery_id: DeliveryId },
}

impl State for Delivery {
    type Reads = Consumed;

    fn evolve(self, event: Consumed) -> Self {
        let Consumed::StockReceived = event;
        Delivery { received: true }
    }
}

impl Slice for ReceiveStock {
    const NAME: &'static str = "receive-stock";
    const SCOPES: &'static [&'static str] = &["inventory/write"];
    type Context = Inventory;
    type State = Delivery;
    type Writes = StockReceived;
    type Rejection = Rejection;

    fn decide(
        &self,
        delivery: &Delivery,
        _: &CommandContext,
    ) -> Result<Vec<StockReceived>, Rejection> {
        let Self { delivery_id, product_id, units } = self.clone();
        if delivery.received {
            return Err(Rejection::DeliveryAlreadyReceived { delivery_id });
        }
        Ok(vec![StockReceived { delivery_id, product_id, units }])
    }

    fn cases() -> Vec<Case<Self>> {
        let units = NonZeroU32::MIN;
        let received =
            |delivery| StockReceived { delivery_id: id(delivery), product_id: id("lamp"), units };
        let receive = || ReceiveStock { delivery_id: id("d1"), product_id: id("lamp"), units };
        let again = Rejection::DeliveryAlreadyReceived { delivery_id: id("d1") };
        vec![
            given([]).when(receive()).then([received("d1")]),
            given(events![received("d2")]).when(receive()).then([received("d1")]),
            given(events![received("d1")]).when(receive()).then_rejected(again),
        ]
    }
}
