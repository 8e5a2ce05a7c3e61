//! `verify` checks that the slots of each partition have no gaps.
//!
//! A scan reads the slots of a partition while writers put others, so it may miss one and find the next. A partition
//! that has fewer events than its last slot says is therefore read again, strongly. This second read begins late
//! enough: the scan's events, and all events before them, have long become visible. A slot that is missing then is
//! lost. The log never deletes events, so a person or a restore has deleted it. Nothing can mend that. This check
//! can't see that the *last* events of a partition are lost; the index remembers the last event that it has.

use std::collections::{BTreeMap, HashMap};
use std::pin::pin;

use futures::TryStreamExt;
use ringfence_aws::Retry;
use ringfence_core::{BoundaryId, LogError};

use crate::item::{event_type, slot};
use crate::log::DcbLog;
use crate::report::VerifyOptions;

/// The number of events of each partition, and its last slot.
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

/// For each partition that has gaps, the first slot without an event.
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
            let mut items = pin!(log.items_in(&partition, 1..=u64::MAX, true, Retry::default()));
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
