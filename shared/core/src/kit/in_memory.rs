//! Cases of the DCB log and the aggregate log in memory: as they are, in other orders, and twice under a key.

use super::{
    on_events::{OnEvents, catalog},
    once, orders,
    run::InMemory,
    same::fail,
};
use crate::{Aggregates, Dcb, MemoryLog, Slice, case::Case, check};

macro_rules! in_memory {
    ($($log:ident),*) => {$(
        impl<S: Slice> InMemory<S> for $log {
            async fn check(case: &Case<S>) {
                let catalog = catalog::<S::Context>();
                let log = MemoryLog::new(catalog.clone());
                // The log in memory takes the time from the envelope.
                case.check(&OnEvents { log: &log, set_clock: |_| {} }).await;
                orders::check(case, &catalog, log.events());
                once::check(case, &catalog).await;
            }

            fn check_slice() {
                check::<S>(&catalog::<S::Context>()).unwrap_or_else(|error| fail(S::NAME, error));
            }
        }
    )*};
}

in_memory!(Dcb, Aggregates);
