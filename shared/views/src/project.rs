//! Projects the index into the rows of one generation.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use futures::StreamExt;
use ringfence_aws::{Clock, Meter, Retry, Table};
use ringfence_core::Catalogs;
use ringfence_feed::{Checkpoint, Checkpoints, FeedStep, Index, Reference, Until};
use ringfence_lambda::Links;

use crate::batch::{Batch, ENTRIES_MAX, Touched};
use crate::keys::Keys;
use crate::lanes::{LaneReader, Lanes, Notify};
use crate::row::ViewTable;
use crate::warm::Warm;
use crate::{Definition, Generation, Parked, Registered, ViewError};

/// The checkpoint of a generation that is no longer served. It lies after every event and never moves, so a projector
/// that has not noticed the change writes nothing more.
pub(crate) fn retired() -> Checkpoint {
    Checkpoint::try_from(i64::MAX).expect("it is not negative")
}

/// Folds views from the index. Any number may run at once, each on any view: the checkpoint moves after the rows, and
/// both change only if they are as they were read.
#[derive(Clone, Debug)]
pub struct Projector {
    pub(crate) index: Index,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) table: ViewTable,
    /// The catalogs that upcast the events.
    pub(crate) catalogs: Catalogs,
    pub(crate) clock: Clock,
    /// The readers of lanes that it notifies.
    pub(crate) lanes: Option<Lanes>,
    pub(crate) warm: Arc<Warm>,
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// The checkpoint that it has reached; `None` if no event is applied yet.
    pub checkpoint: Option<Checkpoint>,
    /// Whether it applied every event that was there.
    pub present: bool,
    /// Events read, whether or not they touch a row.
    pub events: u64,
    /// Rows written or deleted, each time counted.
    pub rows: u64,
    /// Batches written.
    pub batches: u64,
    /// Batches given up because another projector had written them.
    pub overtaken: u64,
    /// How many rows were parked.
    pub parked: u64,
    /// Some of them, in the order of their ids.
    pub examples: Vec<(String, Parked)>,
    /// The events that were parked.
    pub unread: Vec<Parked>,
    /// The commands of the first events that were read.
    pub links: Links,
}

/// One generation of a view, and the function that is called after each batch.
pub(crate) struct Work<'a> {
    pub(crate) view: &'a Definition,
    pub(crate) generation: Generation,
    pub(crate) keys: Keys,
    /// Whether the view goes alone. If it moves together with others, it parks no row, and its own checkpoint moves
    /// only if a row is removed.
    pub(crate) alone: bool,
    pub(crate) report: &'a (dyn Fn(&Ran) + Send + Sync),
}

impl<'a> Work<'a> {
    /// The work of a view that goes alone.
    pub(crate) fn alone(
        view: &'a Definition,
        generation: Generation,
        report: &'a (dyn Fn(&Ran) + Send + Sync),
    ) -> Self {
        let keys = Keys::of(view, generation);
        Self { view, generation, keys, alone: true, report }
    }
}

enum Followed {
    Present,
    Overtaken,
}

impl Projector {
    /// A projector from an index of events that `catalogs` declare to a view table.
    pub fn new(
        client: Client,
        index: Index,
        view_table: impl Into<String>,
        catalogs: Catalogs,
        clock: Clock,
    ) -> Self {
        let name = view_table.into();
        let checkpoints = Checkpoints::new(client.clone(), name.clone());
        Self {
            index,
            checkpoints,
            table: ViewTable(Table::new(client, name, &clock)),
            catalogs,
            clock,
            lanes: None,
            warm: Arc::default(),
        }
    }

    /// With readers of lanes, which it notifies of the events that they read.
    #[must_use]
    pub fn notifying(self, readers: Vec<LaneReader>, notify: Notify) -> Self {
        let lanes = Some(Lanes { readers, notify }).filter(|lanes| !lanes.readers.is_empty());
        Self { lanes, ..self }
    }

    /// The cost of rows and generations, without checkpoints and index.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        self.table.0.meter()
    }

    /// The generations of the view. A view without any gets its first, which is served once it shows
    /// everything that is in the index now.
    ///
    /// # Errors
    /// A table can't be read or written.
    pub async fn register(&self, view: &Definition) -> Result<Registered, ViewError> {
        loop {
            if let Some(registered) = self.table.registered(view.name, true).await? {
                return Ok(registered);
            }
            let until = self.index.end().await?;
            if let Some(registered) = self.table.begin_first(view, until).await? {
                return Ok(registered);
            }
        }
    }

    /// Serves the first generation if it shows everything that was there when it was begun.
    ///
    /// # Errors
    /// The view table can't be written.
    pub async fn serve(
        &self,
        view: &Definition,
        registered: &Registered,
        ran: &Ran,
    ) -> Result<(), ViewError> {
        match registered.until {
            // A run that has reached the present has reached `until` too: its checkpoint may be at the end
            // of an epoch, and `until` at the beginning of the next.
            Some(until) if ran.present || ran.checkpoint.unwrap_or_default() >= until => {
                self.table.serve(view.name, registered.live).await
            }
            _ => Ok(()),
        }
    }

    /// Applies new events to a generation, until no event is left or the time is over. Wherever it stops, only whole
    /// batches are applied. A row that can't be written is parked, and so is an event that can't be read.
    ///
    /// # Errors
    /// An event is of a newer version, too many are parked, or a table does not answer. The events before that are
    /// applied, and `ran` says how far.
    pub async fn run(
        &self,
        view: &Definition,
        generation: Generation,
        time: Duration,
        ran: &mut Ran,
    ) -> Result<(), ViewError> {
        let work = Work::alone(view, generation, &|_| {});
        // A request that is cut off may have taken effect: the checkpoint shows it.
        tokio::time::timeout(time, self.follow(&work, ran)).await.unwrap_or(Ok(()))
    }

    pub(crate) async fn follow(&self, work: &Work<'_>, ran: &mut Ran) -> Result<(), ViewError> {
        let reader = &work.keys.reader;
        let mut attempts = Retry::default().start();
        let mut at = ran.checkpoint;
        loop {
            let from_ms = self.clock.machine_ms();
            let from = self.checkpoints.load(reader).await?;
            if from == Some(retired()) {
                ran.present = true;
                return Ok(());
            }
            // If the checkpoint has not moved, no projector can have overtaken this one.
            let moved = from != at;
            let batches = ran.batches;
            (ran.checkpoint, at) = (from, from);
            match self.follow_from(work, Batch::behind(from, from_ms), ran).await? {
                Followed::Present => {
                    ran.present = true;
                    return Ok(());
                }
                Followed::Overtaken if moved || ran.batches != batches => {
                    attempts = Retry::default().start();
                }
                Followed::Overtaken if attempts.again().await => {}
                Followed::Overtaken => {
                    let (view, attempts) = (work.view.name, attempts.made());
                    return Err(ViewError::Contention { view, attempts });
                }
            }
            ran.overtaken += 1;
        }
    }

    async fn follow_from(
        &self,
        work: &Work<'_>,
        mut batch: Batch,
        ran: &mut Ran,
    ) -> Result<Followed, ViewError> {
        let (start, view) = (batch.from.unwrap_or_default(), *work.view);
        let wants = move |it: &Reference| view.wants(&it.event_type);
        let mut feed = self.index.read_where(start, Until::Present, wants);
        loop {
            let next = match feed.next().await {
                None => Ok(None),
                Some(step) => {
                    if let Ok(FeedStep::Event(entry)) = &step {
                        ran.links.add(&entry.event.metadata);
                    }
                    Touched::new(work.view, &self.catalogs, step).map(Some)
                }
            };
            // The events before an error are applied.
            let fits = matches!(&next, Ok(Some(touched)) if batch.fits(touched));
            if !fits && !self.write(work, &mut batch, ran).await? {
                return Ok(Followed::Overtaken);
            }
            let Some(touched) = next? else { return Ok(Followed::Present) };
            match touched.unread() {
                None => batch.push(touched),
                Some(unread) => {
                    let unread = (touched.checkpoint(), unread);
                    if !self.park(work, &mut batch, unread, ran).await? {
                        return Ok(Followed::Overtaken);
                    }
                }
            }
        }
    }

    /// The checkpoint after the last event of the index.
    ///
    /// # Errors
    /// The index can't be read.
    pub async fn end(&self) -> Result<Checkpoint, ViewError> {
        Ok(self.index.end().await?)
    }

    /// How many events of the index lie after a checkpoint, up to `end`.
    ///
    /// # Errors
    /// The index can't be read.
    pub async fn events_after(
        &self,
        checkpoint: Option<Checkpoint>,
        end: Checkpoint,
    ) -> Result<u64, ViewError> {
        Ok(self.index.count(checkpoint.unwrap_or(Checkpoint::START), end).await?)
    }

    /// The time of the first event after a checkpoint that one of the views reads, in milliseconds since 1970; `None`
    /// if there is none. It looks at a thousand events: then the last of them counts.
    ///
    /// # Errors
    /// The index can't be read.
    pub(crate) async fn next_ms(
        &self,
        views: &[&Definition],
        checkpoint: Option<Checkpoint>,
    ) -> Result<Option<u64>, ViewError> {
        let from = checkpoint.unwrap_or(Checkpoint::START);
        let mut feed = self.index.read_where(from, Until::Present, |_| false);
        for left in (0..ENTRIES_MAX).rev() {
            let Some(step) = feed.next().await.transpose()? else { return Ok(None) };
            if left == 0 || views.iter().any(|view| view.wants(step.event_type())) {
                return Ok(Some(step.at()));
            }
        }
        Ok(None)
    }
}
