//! How far a view is, for people.

use futures::future::try_join_all;
use ringfence_aws::Meter;
use ringfence_feed::Checkpoint;

use crate::keys::reader_of;
use crate::read::ViewReader;
use crate::{Registered, ViewError};

/// The generations of a view, and how far they are.
#[derive(Clone, Debug)]
pub struct ViewStanding {
    /// The generations.
    pub registered: Registered,
    /// The checkpoint of the generation that is served.
    pub served: Checkpoint,
    /// The checkpoint of the generation that is being built.
    pub built: Option<Checkpoint>,
}

impl ViewReader {
    /// How far each of these views is, at `end` or a moment ago; `None` if no projector has run the view yet. `end` is
    /// the end of the index. It costs half a read unit, half a unit for each view, and half a unit for each generation
    /// that has not reached `end` together with other views.
    ///
    /// # Errors
    /// As [`ViewReader::row`].
    pub async fn standing(
        &self,
        views: &[&str],
        end: Checkpoint,
    ) -> Result<Vec<Option<ViewStanding>>, ViewError> {
        let registered = views.iter().map(|view| self.table.registered(view, false));
        let registered = try_join_all(registered).await?;
        let mut readers = Vec::new();
        for (view, of) in views.iter().zip(&registered) {
            let generations = of.iter().flat_map(|of| [Some(of.live), of.building]);
            readers.extend(generations.flatten().map(|generation| reader_of(view, generation)));
        }
        let mut reached = self.checkpoints.reached(&readers, end).await?.into_iter();
        let mut next = || reached.next().unwrap_or_default();
        let standing = registered.into_iter().map(|registered| {
            let registered = registered?;
            let served = next();
            let built = registered.building.map(|_| next());
            Some(ViewStanding { registered, served, built })
        });
        Ok(standing.collect())
    }

    /// What its requests cost so far: of the index, of the checkpoints, and of rows and generations.
    #[must_use]
    pub fn meters(&self) -> [&Meter; 3] {
        [self.index.meter(), self.checkpoints.meter(), self.table.0.meter()]
    }
}
