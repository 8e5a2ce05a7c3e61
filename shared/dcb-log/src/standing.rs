//! The current state of a boundary: its next slot, and the counts of its fence.

use ringfence_aws::Retry;
use ringfence_core::{BoundaryId, Counts, LogError};

use crate::fence;
use crate::item::COUNT;
use crate::log::DcbLog;
use crate::partition::last;

/// The current state of a boundary. Decisions never rest on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoundaryStanding {
    /// The last slot of the partition with this name; 0 if it has no events.
    pub last_slot: u64,
    /// The counts of the fence, by type; empty if there is no fence.
    pub counts: Counts,
}

impl DcbLog {
    /// Reads the end of the partition with this name, and its fence, each strongly.
    ///
    /// # Errors
    /// A request fails permanently or too often.
    pub async fn standing(&self, boundary: &BoundaryId) -> Result<BoundaryStanding, LogError> {
        let retry = Retry::default();
        let last = last(self, boundary, true, retry).await?;
        let fence = fence::read(self, retry, std::iter::once(boundary)).await?.pop().flatten();
        let counts = fence.iter().flatten().filter_map(|(name, count)| {
            let count = count.as_n().ok()?.parse().ok()?;
            Some((name.strip_prefix(COUNT)?.to_owned().into(), count))
        });
        Ok(BoundaryStanding {
            last_slot: last.map_or(0, |(slot, _)| slot),
            counts: counts.collect(),
        })
    }
}
