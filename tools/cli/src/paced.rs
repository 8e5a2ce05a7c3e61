//! Requests of an import, which is in no hurry.

use anyhow::{Error, Result};
use ringfence_aggregate_log::AggregateError;
use ringfence_aws::{Failure, Retry};
use ringfence_core::{LogError, StoreError};
use ringfence_document_log::DocumentError;
use ringfence_feed::{FeedError, IndexError};

/// Does work again, after longer and longer pauses, as long as DynamoDB throttles it. So an import is as fast as the
/// busiest key of its tables.
pub(crate) async fn paced<T>(work: impl AsyncFn() -> Result<T>) -> Result<T> {
    for tries in 1.. {
        match work().await {
            Err(error) if is_throttled(&error) => drop(Retry::default().pause(tries).await),
            done => return done,
        }
    }
    unreachable!("it returns if nothing throttles it")
}

/// Whether a table or a key was too busy for a request, which then had no effect.
fn is_throttled(error: &Error) -> bool {
    let throttled = |store: &StoreError| matches!(store, StoreError::Throttled { .. });
    matches!(error.downcast_ref(), Some(LogError::Store(store)) if throttled(store))
        || matches!(error.downcast_ref(), Some(AggregateError::Store(store)) if throttled(store))
        || matches!(error.downcast_ref(), Some(DocumentError::Store(store)) if throttled(store))
        || matches!(error.downcast_ref(), Some(IndexError::Feed(index)) if is_throttled_index(index))
        || error.downcast_ref().is_some_and(is_throttled_index)
}

fn is_throttled_index(error: &FeedError) -> bool {
    matches!(error, FeedError::Failed { source: Failure::Throttled { .. }, .. })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use anyhow::Context;

    use super::*;

    fn of_index(error: &StoreError) -> FeedError {
        let (operation, attempts) = ("writing a page", 8);
        match error {
            StoreError::Throttled { .. } => {
                let source = Failure::Throttled { source: "busy".into() };
                FeedError::Failed { operation, attempts, source }
            }
            _ => FeedError::Contention { attempts },
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_import_waits_for_a_busy_table_and_for_nothing_else() {
        let throttled = || StoreError::Throttled { attempts: 8 };
        let busy: [fn(StoreError) -> Error; 5] = [
            |store| LogError::from(store).into(),
            |store| AggregateError::from(store).into(),
            |store| DocumentError::from(store).into(),
            |store| IndexError::Feed(Arc::new(of_index(&store))).into(),
            |store| of_index(&store).into(),
        ];
        for of_log in busy {
            let tries = std::cell::Cell::new(0);
            let work = async || {
                tries.set(tries.get() + 1);
                match tries.get() {
                    ..20 => Err(of_log(throttled())).context("importing it"),
                    20 => Ok(()),
                    _ => Err(of_log(StoreError::Contention { attempts: 8, over: None })),
                }
            };
            paced(work).await.expect("the table takes it");
            paced(work).await.expect_err("others were first");
            assert_eq!(tries.get(), 21);
        }
    }
}
