//! An order that has no parcel after an hour gets one.

use std::error::Error;

use ringfence_core::prelude::*;

use super::{OrderId, PackParcel};

/// The events that set and clear the time.
#[derive(Reads)]
pub enum Ordered {
    OrderPlaced {
        order_id: OrderId,
        #[time]
        at_ms: u64,
    },
    ParcelPacked {
        order_id: OrderId,
    },
}

impl Due for PackParcel {
    type Reads = Ordered;
    type Row = u64;

    fn rows(event: &Ordered) -> Vec<String> {
        let (Ordered::OrderPlaced { order_id, .. } | Ordered::ParcelPacked { order_id }) = event;
        vec![order_id.to_string()]
    }

    fn evolve(until_ms: Option<u64>, _: &str, event: &Ordered) -> Option<u64> {
        match event {
            // An order that is placed again has an hour more.
            Ordered::OrderPlaced { at_ms, .. } => Some(until_ms.unwrap_or(*at_ms) + 3_600_000),
            Ordered::ParcelPacked { .. } => None,
        }
    }

    fn due_ms(until_ms: &u64) -> Option<u64> {
        Some(*until_ms)
    }

    fn command(order: &str, _: &u64) -> Result<Self, Box<dyn Error + Send + Sync>> {
        Ok(Self { order_id: order.parse()?, parcel_id: "late".parse()?, seal_ids: vec![] })
    }
}
