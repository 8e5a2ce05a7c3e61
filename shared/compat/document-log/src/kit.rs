//! Cases on the document log in memory: [`ringfence_core::kit`].

use std::sync::Arc;

use ringfence_aws::Clock;
use ringfence_core::kit::{Case, MemoryVault, check_each, fail};
use ringfence_core::{Context, Slice};

use crate::{Cache, Category, Document, DocumentLog, Documents, MemoryStore, TipLimits};

/// Runs the start-up checks of a slice, and each of its cases in memory.
pub fn check_in_memory<S, D>()
where
    S: Slice<State = D, Context: Context<Log = Documents<D>>>,
    D: Document,
{
    check_each::<S>(async |case| check(case).await);
}

/// Runs the case in memory, and twice under an idempotency key. Panics as [`Case::check`] does.
pub async fn check<S, D>(case: &Case<S>)
where
    S: Slice<State = D, Context: Context<Log = Documents<D>>>,
    D: Document,
{
    // A Tip of one event, so that every case reads calves too.
    let limits = TipLimits { events_max: Some(1), ..TipLimits::default() };
    let clock = Clock::fixed(0);
    let on = || {
        let log = DocumentLog::new(MemoryStore::default(), clock.clone());
        let category = Category::of::<S>(log, Cache::none());
        let vault = Some(Arc::<MemoryVault>::default() as _);
        category.unwrap_or_else(|error| fail(S::NAME, error)).with_limits(limits).with_vault(vault)
    };
    case.check(&on(), &|now_ms| clock.set(now_ms)).await;
    // A category without events can't recognise a repeat.
    if D::ACCESS.keeps_events() {
        case.check_once(&on(), &|now_ms| clock.set(now_ms)).await;
    }
}
