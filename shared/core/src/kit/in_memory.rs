//! Runs cases on a log of events in memory: as given, in other orders, and twice under a key, also on a copy.

use std::sync::Arc;

use super::{
    orders,
    run::check_each,
    same::fail,
    vault::{MemoryVault, opened, vaulted},
};
use crate::{Catalog, Context, MemoryLog, OnEvents, Slice, check, decide::case::Case};

/// The catalog of a context. Panics if it contradicts itself.
pub fn catalog<C: Context>() -> Catalog {
    C::catalog().unwrap_or_else(|error| fail(format!("the catalog of {}", C::NAME), error))
}

impl<S: Slice> Case<S> {
    /// Runs the case on a log of events in memory, also in other orders of its facts, and twice under an idempotency
    /// key, also on a copy of the events. Panics as [`Case::check`] does.
    pub async fn check_in_memory(&self) {
        let catalog = catalog::<S::Context>();
        let vault = Arc::new(MemoryVault::default());
        let on = |log| OnEvents::new(vaulted::<S>(log, &vault), catalog.clone(), 0);
        let empty = || on(MemoryLog::new(catalog.clone()));
        let first = empty();
        // The log in memory uses the time of the envelope.
        self.check(&first, &|_| {}).await;
        orders::check(self, &catalog, opened(first.log()));
        let once = empty();
        self.check_once(&once, &|_| {}).await;
        let copy = MemoryLog::of(catalog.clone(), once.log().log().events());
        let copy = copy.unwrap_or_else(|error| self.fail("copied", error));
        self.check_copied(&once, &on(copy)).await;
        self.check_personal(&catalog).await;
    }
}

/// Checks a slice on a log of events as its function does at start-up, and runs each of its cases in memory.
pub fn check_in_memory<S: Slice>() {
    check::<S>(&catalog::<S::Context>()).unwrap_or_else(|error| fail(S::NAME, error));
    check_each::<S>(async |case| case.check_in_memory().await);
}
