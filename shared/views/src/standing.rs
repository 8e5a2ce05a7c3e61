//! How far a view is, for people.

use futures::future::try_join_all;
use ringfence_aws::Meter;
use ringfence_feed::{Checkpoint, Reader};

use crate::keys::reader_of;
use crate::read::ViewReader;
use crate::{Generation, Registered, ViewError};

/// The generations of a view, and the readers that fold them.
#[derive(Clone, Debug)]
pub struct ViewStanding {
    /// The generations.
    pub registered: Registered,
    /// The reader of the generation that is served; `None` before its first checkpoint.
    pub served: Option<Reader>,
    /// The reader of the generation that is being built.
    pub built: Option<Reader>,
}

impl ViewReader {
    /// How far a view is; `None` if no projector has run it yet. Its reads are strong.
    ///
    /// # Errors
    /// As [`ViewReader::row`].
    pub async fn standing(&self, view: &str) -> Result<Option<ViewStanding>, ViewError> {
        let Some(registered) = self.table.registered(view, true).await? else { return Ok(None) };
        let served = self.reader(view, Some(registered.live)).await?;
        let built = self.reader(view, registered.building).await?;
        Ok(Some(ViewStanding { registered, served, built }))
    }

    /// How far the served generation of each of these views is; `None` if no projector has run the view yet. If views
    /// that move together have reached `end`, the end of the index, one read says so for all of them.
    ///
    /// # Errors
    /// As [`ViewReader::row`].
    pub async fn reached(
        &self,
        views: &[&str],
        end: Checkpoint,
    ) -> Result<Vec<Option<(Registered, Checkpoint)>>, ViewError> {
        let together = self.checkpoints.together().await?;
        let reached = async |view: &&str| -> Result<_, ViewError> {
            let Some(registered) = self.table.registered(view, false).await? else {
                return Ok(None);
            };
            let reader = reader_of(view, registered.live);
            if together.checkpoint >= end && together.readers.contains(&reader) {
                return Ok(Some((registered, together.checkpoint)));
            }
            let own = self.checkpoints.load(&reader).await?;
            let at = together.beyond(&reader, own).or(own).unwrap_or_default();
            Ok(Some((registered, at)))
        };
        try_join_all(views.iter().map(reached)).await
    }

    async fn reader(
        &self,
        view: &str,
        generation: Option<Generation>,
    ) -> Result<Option<Reader>, ViewError> {
        let Some(generation) = generation else { return Ok(None) };
        Ok(self.checkpoints.reader(&reader_of(view, generation)).await?)
    }

    /// What its requests cost so far: of the index, of the checkpoints, and of rows and generations.
    #[must_use]
    pub fn meters(&self) -> [&Meter; 3] {
        [self.index.meter(), self.checkpoints.meter(), self.table.0.meter()]
    }
}
