//! Reads the items of some events at the lowest price.
//!
//! A batch rounds the bytes of each item up to 4 KB, a query the sum of all. So events that follow one another in a
//! partition are queried, and the others are read in batches.

use std::collections::BTreeSet;

use futures::stream::{StreamExt, TryStreamExt, iter};
use ringfence_aws::Item;

use crate::news::{Run, Single, StreamError};
use crate::source::OpenSource;

/// Requests under way at once.
const AT_ONCE: usize = 16;

impl OpenSource {
    /// The items of events, in no order; those that are missing are left out.
    ///
    /// # Errors
    /// The table can't be read.
    pub async fn items(
        &self,
        places: BTreeSet<Single<'_>>,
        strong: bool,
    ) -> Result<Vec<Item>, StreamError> {
        let (singles, runs) = split(places);
        let singles = (!singles.is_empty()).then(|| self.table.singles(singles, strong));
        let reads = runs.into_iter().map(|run| self.table.run(run, strong)).chain(singles);
        let read: Vec<_> =
            iter(reads.collect::<Vec<_>>()).buffer_unordered(AT_ONCE).try_collect().await?;
        Ok(read.concat())
    }
}

fn split(places: BTreeSet<Single<'_>>) -> (Vec<Single<'_>>, Vec<Run<'_>>) {
    let mut runs: Vec<Run<'_>> = Vec::new();
    for (partition, slot) in places {
        match runs.last_mut() {
            Some((of, slots)) if *of == partition && slots.end() + 1 == slot => {
                *slots = *slots.start()..=slot;
            }
            _ => runs.push((partition, slot..=slot)),
        }
    }
    let (singles, runs): (Vec<_>, Vec<_>) =
        runs.into_iter().partition(|(_, slots)| slots.start() == slots.end());
    (singles.into_iter().map(|(partition, slots)| (partition, *slots.start())).collect(), runs)
}
