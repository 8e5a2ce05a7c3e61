//! How far a boundary is: its next slot, and what its fence counts.

use ringfence_aws::Retry;
use ringfence_core::{BoundaryId, Counts, LogError};

use crate::fence;
use crate::item::COUNT;
use crate::log::DcbLog;
use crate::partition::last;

/// How far a boundary is. No decision rests on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoundaryStanding {
    /// The last slot of the partition of this name; 0 if it has no events.
    pub last_slot: u64,
    /// What the fence counts, by type; nothing if there is no fence.
    pub counts: Counts,
}

impl DcbLog {
    /// How far a boundary is: the end of the partition of its name, and its fence, each read strongly.
    ///
    /// # Errors
    /// A request that fails for good or too often.
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
