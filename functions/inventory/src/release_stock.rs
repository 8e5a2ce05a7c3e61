//! ReleaseStock: makes the units of an order free again, if it is cancelled, or not paid in time.
//!
//! An automation: a cancelled order leads to its command, and so does the end of the time for which units are kept. The
//! decision does not ask which of the two it was. It looks at the order, its reservation and its payment, which are in
//! one partition. So a payment and the end of the time can't both win, and a command that comes too early, too late or
//! twice changes nothing.

use std::error::Error;

use crate::{Inventory, Item, OrderId, StockReleased};
use ordering::{OrderCancelled, Ordering};
use ringfence::prelude::*;
use serde::Deserialize;

const MINUTE_MS: u64 = 60 * 1_000;

/// Makes the units of an order free again.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct ReleaseStock {
    #[tag(partition)]
    pub order_id: OrderId,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    OrderCancelled,
    PaymentReceived,
    StockReserved {
        items: Vec<Item>,
        minutes: u32,
        #[time]
        at_ms: u64,
    },
    StockReleased,
}

/// Units that are reserved, and until when.
struct Reserved {
    items: Vec<Item>,
    until_ms: u64,
}

/// The reservation of an order, and what it depends on.
#[derive(Default)]
pub struct Reservation {
    reserved: Option<Reserved>,
    cancelled: bool,
    paid: bool,
}

impl State for Reservation {
    type Reads = Consumed;

    fn evolve(self, event: Consumed) -> Self {
        match event {
            Consumed::OrderCancelled => Self { cancelled: true, ..self },
            Consumed::PaymentReceived => Self { paid: true, ..self },
            Consumed::StockReserved { items, minutes, at_ms } => {
                let until_ms = at_ms + u64::from(minutes) * MINUTE_MS;
                Self { reserved: Some(Reserved { items, until_ms }), ..self }
            }
            Consumed::StockReleased => Self { reserved: None, ..self },
        }
    }
}

impl Slice for ReleaseStock {
    const NAME: &'static str = "release-stock";
    const REACTS_TO: &'static [Cause] = &[Cause::of::<OrderCancelled>(Ordering::NAME)];
    const SCOPES: &'static [&'static str] = &["inventory/write"];
    type Context = Inventory;
    type State = Reservation;
    type Writes = StockReleased;
    type Rejection = Never;

    fn decide(
        &self,
        state: &Reservation,
        context: &CommandContext,
    ) -> Result<Vec<StockReleased>, Never> {
        let order_id = self.order_id.clone();
        let Some(Reserved { items, until_ms }) = &state.reserved else { return Ok(vec![]) };
        let is_over = !state.paid && context.now_ms >= *until_ms;
        Ok(match state.cancelled || is_over {
            true => vec![StockReleased { order_id, items: items.clone() }],
            false => vec![],
        })
    }

    fn react(event: &Current<'_, TopicEvent>) -> Result<Vec<Self>, serde_json::Error> {
        let Order { order_id } = Order::deserialize(&event.data)?;
        Ok(vec![Self { order_id }])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::{KEPT_MINUTES, StockReserved};
        use ordering::{Money, OrderCancelled};
        use payments::PaymentReceived;

        let items = || vec![Item { product_id: id("lamp"), units: id("2") }];
        let reserved =
            |order| StockReserved { order_id: id(order), items: items(), minutes: KEPT_MINUTES };
        let released = || StockReleased { order_id: id("o1"), items: items() };
        let cancelled =
            |order| OrderCancelled { order_id: id(order), product_ids: vec![id("lamp")] };
        let paid = || PaymentReceived { order_id: id("o1"), amount: Money::new(2_500, "EUR") };
        let release = || ReleaseStock { order_id: id("o1") };
        let time_ms = u64::from(KEPT_MINUTES) * MINUTE_MS;
        vec![
            // The time, to the millisecond.
            given(events![reserved("o1")]).wait(time_ms - 1).when(release()).then_nothing(),
            given(events![reserved("o1")]).wait(time_ms).when(release()).then([released()]),
            // The event says how long, whatever the shop promises today.
            given(events![StockReserved { minutes: 60, ..reserved("o1") }])
                .wait(time_ms)
                .when(release())
                .then_nothing(),
            // An order that is paid keeps its units, unless it is cancelled.
            given(events![reserved("o1"), paid()]).wait(time_ms).when(release()).then_nothing(),
            given(events![reserved("o1"), paid(), cancelled("o1")])
                .when(release())
                .then([released()]),
            given(events![reserved("o1"), cancelled("o1")]).when(release()).then([released()]),
            // Once.
            given(events![reserved("o1"), cancelled("o1"), released()])
                .wait(time_ms)
                .when(release())
                .then_nothing(),
            // Nothing is reserved, or not for this order.
            given(events![cancelled("o1")]).when(release()).then_nothing(),
            given(events![reserved("o2"), cancelled("o2")])
                .wait(time_ms)
                .when(release())
                .then_nothing(),
        ]
    }
}

/// The events that set, move or clear the time at which units are released.
#[derive(Reads)]
pub enum Watched {
    StockReserved {
        order_id: OrderId,
        minutes: u32,
        #[time]
        at_ms: u64,
    },
    PaymentReceived {
        order_id: OrderId,
    },
    OrderCancelled {
        order_id: OrderId,
        #[time]
        at_ms: u64,
    },
    StockReleased {
        order_id: OrderId,
    },
}

/// Units that are kept for an order. The row of a paid order stays without a time, because a cancellation still
/// releases its units.
#[ringfence::value]
pub struct Kept {
    until_ms: u64,
    paid: bool,
    /// When the order was cancelled. Its units are released at once, even if the reaction to the event failed.
    cancelled_ms: Option<u64>,
}

impl Due for ReleaseStock {
    type Reads = Watched;
    type Row = Kept;

    fn rows(event: &Watched) -> Vec<String> {
        match event {
            Watched::StockReserved { order_id, .. }
            | Watched::PaymentReceived { order_id }
            | Watched::OrderCancelled { order_id, .. }
            | Watched::StockReleased { order_id } => vec![order_id.to_string()],
        }
    }

    fn evolve(row: Option<Kept>, _id: &str, event: &Watched) -> Option<Kept> {
        match event {
            Watched::StockReserved { minutes, at_ms, .. } => {
                let until_ms = at_ms + u64::from(*minutes) * MINUTE_MS;
                Some(Kept { until_ms, paid: false, cancelled_ms: None })
            }
            Watched::PaymentReceived { .. } => row.map(|row| Kept { paid: true, ..row }),
            Watched::OrderCancelled { at_ms, .. } => {
                row.map(|row| Kept { cancelled_ms: Some(*at_ms), ..row })
            }
            Watched::StockReleased { .. } => None,
        }
    }

    fn due_ms(row: &Kept) -> Option<u64> {
        row.cancelled_ms.or((!row.paid).then_some(row.until_ms))
    }

    fn command(id: &str, _: &Kept) -> Result<Self, Box<dyn Error + Send + Sync>> {
        Ok(Self { order_id: id.parse()? })
    }

    fn due_cases() -> Vec<DueCase<Self>> {
        use crate::{KEPT_MINUTES, StockReserved};
        use ordering::Money;
        use payments::PaymentReceived;

        let items = || vec![Item { product_id: id("lamp"), units: id("2") }];
        let reserved =
            |order| StockReserved { order_id: id(order), items: items(), minutes: KEPT_MINUTES };
        let released = |order| StockReleased { order_id: id(order), items: items() };
        let cancelled =
            |order| OrderCancelled { order_id: id(order), product_ids: vec![id("lamp")] };
        let paid =
            |order| PaymentReceived { order_id: id(order), amount: Money::new(2_500, "EUR") };
        let release = |order| ReleaseStock { order_id: id(order) };
        let time_ms = u64::from(KEPT_MINUTES) * MINUTE_MS;
        vec![
            given(events![reserved("o1")]).wait(time_ms - 1).then_none_due(),
            given(events![reserved("o1")]).wait(time_ms).then_due([release("o1")]),
            given(events![StockReserved { minutes: 60, ..reserved("o1") }])
                .wait(1)
                .and(events![reserved("o2")])
                .wait(time_ms)
                .then_due([release("o2")]),
            given(events![reserved("o1"), paid("o1")]).wait(time_ms).then_none_due(),
            given(events![reserved("o1"), released("o1")]).wait(time_ms).then_none_due(),
            // A cancelled order is due at once, paid or not.
            given(events![reserved("o1"), cancelled("o1")]).then_due([release("o1")]),
            given(events![reserved("o1"), paid("o1"), cancelled("o1")]).then_due([release("o1")]),
            given(events![reserved("o1"), cancelled("o1"), paid("o1")]).then_due([release("o1")]),
            // Nothing was reserved.
            given(events![cancelled("o1"), paid("o2")]).wait(time_ms).then_none_due(),
        ]
    }
}

/// What this context reads of an order that is cancelled.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    order_id: OrderId,
}
