//! How views leave those that move together, and join them.

use std::collections::BTreeSet;

use ringfence_aws::Retry;
use ringfence_feed::{Checkpoint, FeedError};

use crate::batch::ACTIONS_MAX;
use crate::keys::reader_of;
use crate::lanes::LANES;
use crate::project::Projector;
use crate::{Generation, ViewError};

impl Projector {
    /// Takes a reader from those that move together. Its own checkpoint is then where it was with them.
    pub(crate) async fn leave(&self, reader: &str) -> Result<(), ViewError> {
        let mut attempts = Retry::default().start();
        loop {
            let actions = match reader {
                LANES => vec![self.checkpoints.leave(reader)],
                _ => self.checkpoints.leave_here(reader).await?,
            };
            let token = self.clock.uuid().to_string();
            if self.table.transact("going on alone", actions, &token).await? {
                return Ok(());
            }
            if !attempts.again().await {
                let reader = reader.to_owned();
                return Err(FeedError::Moved { reader, expected: None, found: None }.into());
            }
        }
    }

    /// Lets views move together from now on, each with its served generation and the checkpoint that it has reached by
    /// itself. A view that is behind the others, or no longer current, stays alone for now.
    pub(crate) async fn join(
        &self,
        views: &[(&'static str, Generation, Checkpoint)],
    ) -> Result<(), ViewError> {
        let Some(least) = views.iter().map(|(.., own)| *own).min() else { return Ok(()) };
        let found = self.checkpoints.together().await?;
        let at = if found.readers.is_empty() { least } else { found.checkpoint };
        let (mut readers, mut checks) = (BTreeSet::new(), Vec::new());
        for (view, generation, own) in views {
            let reader = reader_of(view, *generation);
            if *own >= at && !found.readers.contains(&reader) && checks.len() < ACTIONS_MAX - 1 {
                readers.insert(reader);
                checks.push(self.table.is_current(view, *generation));
            }
        }
        if readers.is_empty() {
            return Ok(());
        }
        let actions = [self.checkpoints.join(&found, at, &readers)].into_iter().chain(checks);
        let token = self.clock.uuid().to_string();
        // If another run was first, the next notification does it.
        self.table.transact("moving together", actions.collect(), &token).await.map(drop)
    }
}
