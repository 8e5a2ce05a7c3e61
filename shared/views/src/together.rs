//! The views that move together: one reading of the index and one checkpoint for all views that are current.
//!
//! Each view has its own checkpoint. The views that move together have another one in common, which moves past an event
//! once each of them that the event touches has written its rows. Meanwhile the own checkpoints stay where they are,
//! except past an event that removes a row. A view joins when it is current. It leaves, with its own checkpoint where
//! it was, before a row or event of it is parked and before another generation is built, and when it fails or is slow.
//! Then it goes on alone. The readers of lanes move with them: see [`lanes`](crate::lanes).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::replace;
use std::time::Duration;

use futures::StreamExt;
use futures::future::{join, join_all};
use futures::stream::BoxStream;
use ringfence_aws::Retry;
use ringfence_core::chain;
use ringfence_feed::{Checkpoint, FeedError, FeedStep, Reference, Together, Until};
use tokio::time::timeout;

use crate::batch::{Batch, ENTRIES_MAX, HELD_BYTES_MAX, Touched};
use crate::keys::{Keys, of_reader};
use crate::lanes::LANES;
use crate::project::{Projector, Ran, Work, retired};
use crate::warm::Own;
use crate::{Definition, Generation, ViewError};

/// How long the others wait for the rows of one view. After that it goes on alone.
const ROWS_TIME_MAX: Duration = Duration::from_secs(1);

/// A view that moves together with others.
#[derive(Debug)]
pub(crate) struct Member<'a> {
    pub(crate) view: &'a Definition,
    pub(crate) generation: Generation,
    /// The rows that this run has written.
    pub(crate) ran: Ran,
    /// Its own checkpoint, if that is known.
    own: Option<Own>,
}

/// The views that move together, as one run knows them.
pub(crate) struct Group<'a> {
    projector: &'a Projector,
    views: &'a [Definition],
    /// Called for each view that does not move with the others, or no longer.
    is_alone: &'a (dyn Fn(&'static str) + Sync),
    /// How far the next run reads.
    until: Until,
    found: Together,
    /// By their readers.
    pub(crate) members: BTreeMap<String, Member<'a>>,
    /// Why readers of lanes could not be notified.
    pub(crate) unnotified: Option<String>,
    /// The views that left in this run, each with the cause.
    pub(crate) left: BTreeMap<&'static str, String>,
}

/// New events, and what they are to the members.
#[derive(Default)]
struct Chunk {
    events: u64,
    /// The checkpoint after the last one.
    end: Option<Checkpoint>,
    is_last: bool,
    touched: BTreeMap<String, Vec<Touched>>,
    /// Readers that can't read an event, with the cause.
    unable: BTreeMap<String, String>,
    /// The readers of lanes that read one.
    lanes: BTreeSet<&'static str>,
}

type Feed = BoxStream<'static, Result<FeedStep, FeedError>>;

impl<'a> Group<'a> {
    pub(crate) fn new(
        projector: &'a Projector,
        views: &'a [Definition],
        is_alone: &'a (dyn Fn(&'static str) + Sync),
        until: Until,
    ) -> Self {
        let (found, members, left) = (Together::default(), BTreeMap::new(), BTreeMap::new());
        Self { projector, views, is_alone, until, found, members, unnotified: None, left }
    }

    /// Applies new events to the rows of all members: first as far as the notification says, because each page brings
    /// one, and in a further run until no event is left.
    ///
    /// # Errors
    /// The index can't be read, or the view table can't be written. What is applied stays.
    pub(crate) async fn run(&mut self, ran: &mut Ran) -> Result<(), ViewError> {
        let mut attempts = Retry::default().start();
        let until = replace(&mut self.until, Until::Present);
        if self.projector.warm.has_read(until) {
            ran.present = true;
            return Ok(());
        }
        loop {
            let was = self.found.clone();
            self.find().await?;
            ran.checkpoint = Some(self.found.checkpoint);
            let is_present = match self.follow(until, ran).await {
                // Each of them reads only its own events when it goes alone.
                Err(ViewError::Feed(error @ FeedError::Body(_))) if !self.members.is_empty() => {
                    let cause = chain(&error);
                    let all = self.members.keys().map(|reader| (reader.clone(), cause.clone()));
                    self.part(all.collect()).await?;
                    false
                }
                followed => followed?,
            };
            if self.found.readers.is_empty() || is_present {
                ran.present = true;
                self.keep();
                return Ok(());
            }
            // Others have changed the item. If not, a condition does not hold that should.
            if was != self.found {
                attempts = Retry::default().start();
            } else if !attempts.again().await {
                let at = Some(self.found.checkpoint);
                let reader = Vec::from_iter(self.found.readers.clone()).join(", ");
                return Err(FeedError::Moved { reader, expected: at, found: at }.into());
            }
        }
    }

    /// Remembers the readers that move together, if all do.
    fn keep(&self) {
        let all = self.views.len() + usize::from(self.projector.lanes.is_some());
        if self.members.len() == self.views.len() && self.found.readers.len() == all {
            let own = |(reader, it): (&String, &Member<'_>)| Some((reader.clone(), it.own?));
            let owns = self.members.iter().filter_map(own).collect();
            self.projector.warm.keep((self.found.clone(), owns));
        }
    }

    /// Looks which views move together, unless that is remembered. Those that this program does not have leave.
    async fn find(&mut self) -> Result<(), ViewError> {
        let mut owns = BTreeMap::new();
        match self.projector.warm.take() {
            Some(remembered) => (self.found, owns) = remembered,
            None => self.found = self.projector.checkpoints.together().await?,
        }
        self.join_lanes().await?;
        let mut members = BTreeMap::new();
        for reader in self.found.readers.clone() {
            if reader == LANES && self.projector.lanes.is_some() {
                continue;
            }
            let known = of_reader(&reader).and_then(|(name, generation)| {
                let view = self.views.iter().find(|view| view.name == name)?;
                let ran = self.members.remove(&reader).map(|member| member.ran).unwrap_or_default();
                Some(Member { view, generation, ran, own: owns.remove(&reader) })
            });
            match known {
                Some(member) => drop(members.insert(reader, member)),
                None => self.leave(&reader).await?,
            }
        }
        self.members = members;
        let is_member =
            |view: &Definition| self.members.values().any(|it| it.view.name == view.name);
        self.views
            .iter()
            .filter(|view| !is_member(view))
            .for_each(|view| (self.is_alone)(view.name));
        Ok(())
    }

    /// Lets the readers of lanes move with the views. Nobody has looked which of them read the events before that, so
    /// all are notified first.
    async fn join_lanes(&mut self) -> Result<(), ViewError> {
        let Projector { lanes, index, checkpoints, table, clock, .. } = self.projector;
        let Some(lanes) = lanes.as_ref().filter(|_| !self.found.readers.contains(LANES)) else {
            return Ok(());
        };
        let at = match self.found.readers.is_empty() {
            true => index.end().await?,
            false => self.found.checkpoint,
        };
        self.unnotified = lanes.notify(lanes.names()).await.err();
        if self.unnotified.is_none() {
            let join = checkpoints.join(&self.found, at, &[LANES.to_owned()].into());
            let token = clock.uuid().to_string();
            table.transact("moving together", vec![join], &token).await?;
            self.found = checkpoints.together().await?;
        }
        Ok(())
    }

    /// Applies the events after the checkpoint. False if another run has moved it, or changed who moves.
    async fn follow(&mut self, until: Until, ran: &mut Ran) -> Result<bool, ViewError> {
        let views: Vec<_> = self.members.values().map(|member| *member.view).collect();
        let wants = move |it: &Reference| views.iter().any(|view| view.wants(&it.event_type));
        let from = self.found.checkpoint;
        let mut feed = self.projector.index.read_where(from, until, wants);
        loop {
            let chunk = self.read(&mut feed, ran).await?;
            let Some(end) = chunk.end else { return Ok(true) };
            let mut unable = chunk.unable;
            let projector = self.projector;
            let notify = async {
                match &projector.lanes {
                    Some(lanes) => lanes.notify(chunk.lanes).await,
                    None => Ok(()),
                }
            };
            let (late, notified) = join(self.write(chunk.touched, end), notify).await;
            unable.extend(late);
            if let Err(cause) = notified {
                self.unnotified = Some(cause.clone());
                unable.insert(LANES.to_owned(), cause);
            }
            self.part(unable).await?;
            if self.found.readers.is_empty() {
                return Ok(true);
            }
            if !self.projector.checkpoints.advance_together(&self.found, end).await? {
                return Ok(false);
            }
            self.found.checkpoint = end;
            ran.checkpoint = Some(end);
            ran.events += chunk.events;
            if chunk.is_last {
                return Ok(true);
            }
        }
    }

    /// Reads as many events as are held at once.
    async fn read(&self, feed: &mut Feed, ran: &mut Ran) -> Result<Chunk, ViewError> {
        let (mut chunk, mut held) = (Chunk::default(), 0);
        let lanes = self.projector.lanes.as_ref().filter(|_| self.found.readers.contains(LANES));
        while chunk.events < ENTRIES_MAX as u64 && held < HELD_BYTES_MAX {
            let Some(step) = feed.next().await else {
                chunk.is_last = true;
                break;
            };
            if let Some(lanes) = lanes {
                let event_type = match &step {
                    Ok(step) => step.event_type(),
                    Err(FeedError::Undecodable { known, .. }) => &known.event.event_type,
                    Err(_) => "",
                };
                chunk.lanes.extend(lanes.of(event_type));
            }
            let (checkpoint, known) = FeedStep::or_known(step)?;
            chunk.events += 1;
            chunk.end = Some(checkpoint);
            let Some((entry, undecodable)) = known else { continue };
            ran.links.add(&entry.event.metadata);
            for (reader, member) in &self.members {
                let (catalogs, entry) = (&self.projector.catalogs, Cow::Borrowed(&entry));
                let cause = match Touched::of(member.view, catalogs, entry, undecodable.as_deref())
                {
                    Ok(touched) => match touched.unread() {
                        None => {
                            if !touched.rows().is_empty() {
                                held += touched.held();
                                chunk.touched.entry(reader.clone()).or_default().push(touched);
                            }
                            continue;
                        }
                        Some(unread) => format!("event {}: {}", unread.event, unread.cause),
                    },
                    Err(error) => chain(&error),
                };
                chunk.unable.entry(reader.clone()).or_insert(cause);
            }
        }
        chunk.touched.retain(|reader, _| !chunk.unable.contains_key(reader));
        Ok(chunk)
    }

    /// Writes the rows of each member. Returns the readers that have not written theirs in time, with the cause.
    async fn write(
        &mut self,
        mut touched: BTreeMap<String, Vec<Touched>>,
        end: Checkpoint,
    ) -> Vec<(String, String)> {
        let projector = self.projector;
        let writes = self.members.iter_mut().filter_map(|(reader, member)| {
            let touched = touched.remove(reader)?;
            Some(async move {
                let wrote = projector.apply(member, reader, touched, end);
                let cause = match timeout(ROWS_TIME_MAX, wrote).await {
                    Ok(Ok(true)) => return None,
                    Ok(Ok(false)) => "another run was first, or a row has to be parked".to_owned(),
                    Ok(Err(error)) => chain(&error),
                    Err(_) => format!("its rows took longer than {ROWS_TIME_MAX:?}"),
                };
                Some((reader.clone(), cause))
            })
        });
        join_all(writes).await.into_iter().flatten().collect()
    }

    /// Readers leave, each with the cause. Views among them go on alone.
    async fn part(&mut self, readers: BTreeMap<String, String>) -> Result<(), ViewError> {
        for (reader, cause) in readers {
            self.leave(&reader).await?;
            if let Some(member) = self.members.remove(&reader) {
                (self.is_alone)(member.view.name);
                self.left.insert(member.view.name, cause);
            }
        }
        Ok(())
    }

    async fn leave(&mut self, reader: &str) -> Result<(), ViewError> {
        self.projector.leave(reader).await?;
        self.found.readers.remove(reader);
        Ok(())
    }
}

impl Projector {
    /// Applies the events that touch rows of a member. No other event up to `end` touches one. False if the view can't
    /// go on with the others.
    async fn apply(
        &self,
        Member { view, generation, ran, own: known }: &mut Member<'_>,
        reader: &str,
        touched: Vec<Touched>,
        end: Checkpoint,
    ) -> Result<bool, ViewError> {
        let own = Own::of(reader, known.take(), &self.checkpoints, &self.clock).await?;
        let Own { checkpoint: own, from_ms } = own;
        let keys = Keys::of(view, *generation);
        let work = Work { view, generation: *generation, keys, alone: false, report: &|_| {} };
        let mut batch = Batch::behind(own, from_ms);
        let last = touched.last().map(Touched::checkpoint);
        for next in touched.into_iter().filter(|touched| Some(touched.checkpoint()) > own) {
            if !batch.fits(&next) && !self.write(&work, &mut batch, ran).await? {
                return self.is_past(reader, last).await;
            }
            batch.push(next);
        }
        if own < last {
            batch.reaches(end);
            if !self.write(&work, &mut batch, ran).await? {
                return self.is_past(reader, last).await;
            }
        }
        let is_served = own != Some(retired());
        *known = is_served.then_some(Own { checkpoint: batch.from, from_ms: batch.from_ms });
        Ok(is_served)
    }

    /// Whether another run has applied the events up to this checkpoint.
    async fn is_past(&self, reader: &str, last: Option<Checkpoint>) -> Result<bool, ViewError> {
        let own = self.checkpoints.load(reader).await?;
        Ok(own >= last && own != Some(retired()))
    }
}
