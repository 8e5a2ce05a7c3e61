//! Builds a new generation beside the live one.

use futures::future::try_join;
use ringfence_feed::Checkpoint;

use crate::fill::FILL_BYTES_MAX;
use crate::keys::{Keys, reader_of};
use crate::project::{Projector, Ran, Work, retired};
use crate::unread::events_of;
use crate::{Definition, Generation, Registered, ViewError};

/// How far a rebuild has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The new generation has come to this checkpoint.
    Built(Generation, Checkpoint),
    /// The new generation is served.
    Flipped(Generation),
    /// This many rows of the old generation are deleted.
    Deleted(Generation, u64),
}

impl Projector {
    /// Folds a new generation of the view from the first event on, beside the one that is served. Serves it as soon as
    /// it has caught up, and then deletes the old one's rows. If it is interrupted before all rows are written, the
    /// next call begins again. Writes and reads of the view go on meanwhile.
    ///
    /// # Errors
    /// As [`Projector::run`], and [`ViewError::GivenUp`]; the old generation is still served.
    pub async fn rebuild(
        &self,
        view: &Definition,
        report: &(dyn Fn(Step) + Send + Sync),
    ) -> Result<Generation, ViewError> {
        let (mut begun, mut mine) = (None, None);
        loop {
            let registered = self.register(view).await?;
            match registered {
                Registered { live, building, retiring: Some(old), .. } => {
                    self.delete(view, old, report).await?;
                    if building.is_none() {
                        // The rows are of this rebuild, or of an earlier one that ended here.
                        return self.catch_up(view, live).await;
                    }
                }
                Registered { live, building: None, .. } if begun.is_some() => {
                    return self.catch_up(view, live).await;
                }
                Registered { live, building: None, .. } => {
                    // A projector that had not noticed the flip may have put rows after they were deleted.
                    for old in self.table.earlier(view.name, live).await? {
                        while self.table.delete_some(&Keys::of(view, old)).await? > 0 {}
                    }
                    let next = live.next(view);
                    let mut actions = vec![self.table.begin(view.name, live, next)];
                    actions.extend(self.checkpoints.leave_here(&reader_of(view.name, live)).await?);
                    let token = self.clock.uuid().to_string();
                    let is_mine =
                        self.table.transact("beginning a generation", actions, &token).await?;
                    mine = is_mine.then_some(next);
                }
                Registered { live, building: Some(next), .. } => {
                    let generation = *begun.get_or_insert(next);
                    if generation != next {
                        return Err(ViewError::GivenUp { view: view.name, generation, next });
                    }
                    let built = |ran: &Ran| {
                        if let Some(checkpoint) = ran.checkpoint {
                            report(Step::Built(next, checkpoint));
                        }
                    };
                    let work = Work::alone(view, next, &built);
                    let own = self.checkpoints.load(&work.keys.reader).await?;
                    if own.is_none() && mine != Some(next) {
                        // Its rows are those of a run that broke off, or of one that fills it now.
                        mine = self.abandon(view, report).await?;
                        begun = mine;
                        continue;
                    }
                    if own.is_none() && !self.fill(&work, FILL_BYTES_MAX).await? {
                        // It was given up, or an answer was lost. Then it is not filled a second time.
                        mine = None;
                        continue;
                    }
                    self.follow(&work, &mut Ran::default()).await?;
                    if self.flip(view, live, next).await? {
                        report(Step::Flipped(next));
                    }
                }
            }
        }
    }

    /// Gives up the generation that is being built, if there is one, so that the next
    /// [`Projector::rebuild`] begins with the first event. That rebuild deletes its rows.
    ///
    /// # Errors
    /// A table can't be read or written. The generation may be given up or not.
    pub async fn abandon(
        &self,
        view: &Definition,
        report: &(dyn Fn(Step) + Send + Sync),
    ) -> Result<Option<Generation>, ViewError> {
        while let Registered { building: Some(half), retiring, .. } = self.register(view).await? {
            if let Some(old) = retiring {
                self.delete(view, old, report).await?;
                continue;
            }
            let (reader, next) = (reader_of(view.name, half), half.next(view));
            let at = self.checkpoints.load(&reader).await?;
            // A projector that still builds it can't write rows any more.
            let actions = vec![
                self.table.begin_after(view.name, half, next),
                self.checkpoints.action(&reader, at, retired()),
            ];
            let token = self.clock.uuid().to_string();
            if self.table.transact("giving up a generation", actions, &token).await? {
                return Ok(Some(next));
            }
        }
        Ok(None)
    }

    /// Applies what has come until the flip: the last notification of it may have found the old generation.
    async fn catch_up(&self, view: &Definition, live: Generation) -> Result<Generation, ViewError> {
        let work = Work::alone(view, live, &|_| {});
        self.follow(&work, &mut Ran::default()).await?;
        Ok(live)
    }

    /// Serves `next`, which has come to the present, if it shows all events that there are. From then on the checkpoint
    /// of `live` does not move.
    async fn flip(
        &self,
        view: &Definition,
        live: Generation,
        next: Generation,
    ) -> Result<bool, ViewError> {
        let (old, new) = (reader_of(view.name, live), reader_of(view.name, next));
        let (served, built) =
            try_join(self.checkpoints.load(&old), self.checkpoints.load(&new)).await?;
        // Rows of the old generation may show events that its checkpoint has not reached. So the new one shows all
        // events that there are.
        if built < served || self.next_ms(&[view], built).await?.is_some() {
            return Ok(false);
        }
        // The new generation's checkpoint may grow meanwhile; it never goes back.
        let since = built.unwrap_or_default();
        let actions = vec![
            self.table.flip(view.name, (live, next), since),
            self.checkpoints.action(&old, served, retired()),
        ];
        let token = self.clock.uuid().to_string();
        self.table.transact("changing over to a new generation", actions, &token).await
    }

    async fn delete(
        &self,
        view: &Definition,
        old: Generation,
        report: &(dyn Fn(Step) + Send + Sync),
    ) -> Result<(), ViewError> {
        while self.table.delete_some(&events_of(view.name, old)).await? > 0 {}
        let rows = Keys::of(view, old);
        let mut deleted = 0;
        loop {
            match self.table.delete_some(&rows).await? {
                0 => break,
                some => deleted += some,
            }
            report(Step::Deleted(old, deleted));
        }
        self.table.retired(view.name, old).await
    }
}
