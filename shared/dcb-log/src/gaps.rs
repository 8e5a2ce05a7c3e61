//! `verify` checks that the slots of each partition have no gaps.
//!
//! A scan meets the slots of a partition while others are put, so it may miss one and find the next. A
//! partition that has fewer events than its last slot says is therefore read again, strongly, once every
//! event that the scan found has long been visible together with those before it. A slot that is missing
//! then is lost: events are never deleted, so a person has deleted it, or a restore has. Nothing can mend
//! that. Whether the *last* events of a partition were lost can't be seen here; the index remembers the
//! last one that it has.

use std::collections::{BTreeMap, HashMap};
use std::pin::pin;

use futures::TryStreamExt;
use ringfence_aws::Retry;
use ringfence_core::{BoundaryId, LogError};

use crate::item::{event_type, slot};
use crate::log::DcbLog;
use crate::report::VerifyOptions;

/// How many events each partition has, and its last slot.
#[derive(Default)]
pub(crate) struct Slots(HashMap<BoundaryId, (u64, u64)>);

impl Slots {
    pub(crate) fn add(&mut self, partition: BoundaryId, slot: u64) {
        let (events, last) = self.0.entry(partition).or_default();
        *events += 1;
        *last = slot.max(*last);
    }

    /// The partitions that seem to have gaps, each with its last slot.
    pub(crate) fn torn(self) -> BTreeMap<BoundaryId, u64> {
        let torn = self.0.into_iter().filter(|(_, (events, last))| events != last);
        torn.map(|(partition, (_, last))| (partition, last)).collect()
    }
}

/// The first slot without an event of each of the partitions that have gaps.
pub(crate) async fn gaps(
    log: &DcbLog,
    options: &VerifyOptions<'_>,
    torn: BTreeMap<BoundaryId, u64>,
) -> Result<BTreeMap<BoundaryId, u64>, LogError> {
    if !torn.is_empty() {
        tokio::time::sleep(options.settle).await;
    }
    let mut gaps = BTreeMap::new();
    for (partition, last) in torn {
        let mut wanted = 1;
        {
            let mut items = pin!(log.items_after(&partition, 0, Retry::default()));
            while wanted <= last
                && let Some(item) = items.try_next().await?
                && slot(&item) == Some(wanted)
                && event_type(&item).is_some()
            {
                wanted += 1;
            }
        }
        if wanted <= last {
            gaps.insert(partition, wanted);
        }
    }
    Ok(gaps)
}
