//! Reads the rows that are served, and can wait until they show an event.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use ringfence_aws::{Clock, Retry, Table};
use ringfence_core::{BoundaryId, Vault};
use ringfence_feed::{Checkpoint, Checkpoints, Index};

use crate::keys::{Keys, reader_of};
use crate::list::{ListPage, Shown, shown};
use crate::project::retired;
use crate::row::{ViewTable, decode, failed};
use crate::{Definition, Generation, Registered, ViewError};

/// An answer waits only for an event at most this many slots after the last indexed one of its partition. A command
/// appends fewer events, and in the longest wait about as many of one partition are indexed.
pub const WAIT_SLOTS_MAX: u64 = 1_000;
/// The most looks of an answer that waits. Each takes at most two strong reads, the first one four, and each three of a
/// view that is being built. One more read, after the fast looks, tells whether the view reads the event.
pub const LOOKS_MAX: u32 = 24;
/// The first looks are at most 200 ms apart. They take about a second, in which nearly every event comes.
const LOOKS_FAST: u32 = 10;
/// After this many looks the pauses stop growing. They go on growing after the fast looks, up to 1.6 s.
const LOOKS_GROWING: u32 = 4;

/// Serves the rows of views.
#[derive(Clone, Debug)]
pub struct ViewReader {
    views: Vec<Definition>,
    pub(crate) index: Index,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) table: ViewTable,
    vault: Option<Arc<dyn Vault>>,
}

/// An event that an answer has to show, and how long to wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The event's partition.
    pub partition: BoundaryId,
    /// Its number there.
    pub slot: u64,
    /// How long to wait at most.
    pub most: Duration,
}

/// Rows of a view.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// The rows.
    pub rows: Vec<Shown>,
    /// The id after which the next page goes on, if there may be one.
    pub next: Option<String>,
    /// The view had come at least to this checkpoint before the rows were read strongly. `None` if the list did not
    /// wait for an event, or for one that the view does not read.
    pub as_of: Option<Checkpoint>,
}

/// The result of a read of a view.
#[derive(Clone, Debug, PartialEq)]
pub enum ViewRead<T> {
    /// The answer.
    Found(T),
    /// There is no view of this name.
    UnknownView,
    /// The view is new, and does not yet show the events that were in the index when it was deployed.
    Building {
        /// The checkpoint from which on it is served.
        until: Checkpoint,
        /// Its checkpoint.
        at: Checkpoint,
    },
    /// The view did not show the event in time.
    Behind {
        /// The checkpoint after the event, for which it waited; `None` as long as the event is not in the
        /// index.
        until: Option<Checkpoint>,
        /// The view's checkpoint; `None` if it was not read.
        at: Option<Checkpoint>,
    },
    /// The event is more than [`WAIT_SLOTS_MAX`] slots ahead of the index, so the reader did not wait.
    Ahead {
        /// The last slot of the partition in the index; `None` if there is none.
        last: Option<u64>,
    },
}

impl<T> ViewRead<T> {
    /// The answer, or why there is none.
    fn found<U>(self) -> Result<T, ViewRead<U>> {
        match self {
            Self::Found(found) => Ok(found),
            Self::UnknownView => Err(ViewRead::UnknownView),
            Self::Building { until, at } => Err(ViewRead::Building { until, at }),
            Self::Behind { until, at } => Err(ViewRead::Behind { until, at }),
            Self::Ahead { last } => Err(ViewRead::Ahead { last }),
        }
    }
}

/// The generation to read.
#[derive(Clone, Copy)]
struct Live {
    generation: Generation,
    /// A checkpoint up to which each of its rows is folded.
    since: Checkpoint,
}

impl From<Registered> for Live {
    fn from(Registered { live, since, .. }: Registered) -> Self {
        Self { generation: live, since }
    }
}

impl Live {
    /// The row as readers see it, with a checkpoint that does not go back: another generation may have folded it in a
    /// larger batch.
    fn show(self, row: Shown) -> Shown {
        Shown { as_of: row.as_of.max(self.since), ..row }
    }
}

/// The generation to read, and how far it has come if the answer waits for an event.
struct Served {
    live: Live,
    /// `None` also if it waited for an event that the view does not read.
    waited: Option<Waited>,
}

/// The result of a wait.
struct Waited {
    /// The checkpoint after the event.
    until: Checkpoint,
    /// The generation's checkpoint.
    at: Checkpoint,
}

impl ViewReader {
    /// A reader of these views. The index tells it where events are.
    pub fn new(
        client: Client,
        index: Index,
        view_table: impl Into<String>,
        views: &[Definition],
    ) -> Self {
        let name = view_table.into();
        let checkpoints = Checkpoints::new(client.clone(), name.clone());
        let table = ViewTable(Table::new(client, name, &Clock::system()));
        Self { views: views.to_vec(), index, checkpoints, table, vault: None }
    }

    /// The same reader with a vault. Its rows stay sealed; [`answer`](crate::query_views::answer) opens them.
    #[must_use]
    pub fn with_vault(self, vault: Option<Arc<dyn Vault>>) -> Self {
        Self { vault, ..self }
    }

    /// The vault.
    #[must_use]
    pub fn vault(&self) -> Option<&dyn Vault> {
        self.vault.as_deref()
    }

    /// The view of this name.
    pub(crate) fn view(&self, name: &str) -> Option<&Definition> {
        self.views.iter().find(|view| view.name == name)
    }

    /// One row; `None` if the view has no row of this id. The read is eventually consistent unless it
    /// waits for an event.
    ///
    /// # Errors
    /// A table does not answer, or holds an item that this crate did not write.
    pub async fn row(
        &self,
        view: &str,
        id: &str,
        wait: Option<&Wait>,
    ) -> Result<ViewRead<Option<Shown>>, ViewError> {
        let Some(definition) = self.view(view) else { return Ok(ViewRead::UnknownView) };
        let Served { mut live, waited } = match self.served(definition, wait).await?.found() {
            Ok(served) => served,
            Err(other) => return Ok(other),
        };
        loop {
            let keys = Keys::of(definition, live.generation);
            let item = self.table.item(keys.key(id), wait.is_some()).await?;
            let mut found = item.map(decode).transpose()?;
            let older = |until| found.as_ref().is_none_or(|(_, found)| found.was.as_of < until);
            let mut served = found.is_some();
            if waited.as_ref().is_some_and(|waited| older(waited.until)) {
                // Either the event does not touch the row, or it removes or parks the row, and that is not visible yet
                // though the checkpoint of the same transaction is. One transaction reads both as of one moment.
                let both = [keys.key(id), Checkpoints::key(&keys.reader)];
                let [row, checkpoint] = self.table.snapshot(both).await?;
                let at = checkpoint.as_ref().map(Checkpoints::decode).transpose()?;
                served = at != Some(retired());
                found = row.map(decode).transpose()?;
            }
            if served {
                return Ok(ViewRead::Found(found.and_then(shown).map(|row| live.show(row))));
            }
            match self.still_served(view, live).await? {
                None if waited.is_none() => return Ok(ViewRead::Found(None)),
                now => live = now.unwrap_or(live),
            }
        }
    }

    /// Some rows of a view or a due, as they are now, by their ids, and the checkpoint that all rows showed before;
    /// `None` if it is not served yet. The reads of the view and its rows are
    /// eventually consistent: half a read unit for the view, and for each 4 KB of a row. The checkpoint takes one.
    ///
    /// # Errors
    /// As [`ViewReader::row`].
    pub async fn some(
        &self,
        view: &Definition,
        ids: &BTreeSet<&str>,
    ) -> Result<Option<(Checkpoint, BTreeMap<String, Shown>)>, ViewError> {
        let registered = self.table.registered(view.name, false).await?;
        let Some(registered) = registered.filter(|it| it.until.is_none()) else { return Ok(None) };
        let live = Live::from(registered);
        let keys = Keys::of(view, live.generation);
        let at = self.checkpoints.load(&keys.reader).await?.unwrap_or(Checkpoint::START);
        let keys = ids.iter().map(|id| keys.key(id)).collect();
        let items = self.table.0.get_all(Retry::default(), keys, false).await;
        let mut rows = BTreeMap::new();
        for item in items.map_err(failed("reading rows"))? {
            let row = shown(decode(item)?).map(|row| live.show(row));
            rows.extend(row.map(|row| (row.id.clone(), row)));
        }
        Ok(Some((at, rows)))
    }

    /// A page of rows.
    ///
    /// # Errors
    /// As [`ViewReader::row`].
    pub async fn list(
        &self,
        view: &str,
        page: &ListPage,
        wait: Option<&Wait>,
    ) -> Result<ViewRead<Listed>, ViewError> {
        let Some(definition) = self.view(view) else { return Ok(ViewRead::UnknownView) };
        let Served { mut live, waited } = match self.served(definition, wait).await?.found() {
            Ok(served) => served,
            Err(other) => return Ok(other),
        };
        loop {
            let keys = Keys::of(definition, live.generation);
            let (found, next) = self.table.list(&keys, page, wait.is_some()).await?;
            if let Some(now) = self.still_served(view, live).await? {
                live = now;
                continue;
            }
            let rows = found.into_iter().map(|row| live.show(row)).collect();
            let as_of = waited.map(|waited| waited.at);
            return Ok(ViewRead::Found(Listed { rows, next, as_of }));
        }
    }

    /// The generation that is served, once it shows the event of the wait. The last look is when the time is over.
    async fn served(
        &self,
        definition: &Definition,
        wait: Option<&Wait>,
    ) -> Result<ViewRead<Served>, ViewError> {
        let view = definition.name;
        let retry = Retry::default().within(wait.map_or(Duration::ZERO, |wait| wait.most));
        let mut until = None;
        // The generation, once one is served.
        let mut served = None;
        let (mut look, mut is_read) = (0, None);
        loop {
            look += 1;
            let (live, due) = match served {
                Some(live) => (live, None),
                None => match self.table.registered(view, wait.is_some()).await? {
                    Some(registered) => (registered.into(), registered.until),
                    // No projector has run it yet.
                    None => {
                        let generation = Generation::first(definition);
                        let live = Live { generation, since: Checkpoint::START };
                        (live, Some(self.index.end().await?))
                    }
                },
            };
            if let (Some(Wait { partition, slot, .. }), None) = (wait, until) {
                let last = self.index.last_of(partition).await?;
                until = last.filter(|(last, _)| last >= slot).map(|(_, checkpoint)| checkpoint);
                let last = last.map(|(last, _)| last);
                if slot.saturating_sub(last.unwrap_or_default()) > WAIT_SLOTS_MAX {
                    return Ok(ViewRead::Ahead { last });
                }
            }
            let reader = reader_of(view, live.generation);
            let own = match due.max(until) {
                None => None,
                Some(_) => self.checkpoints.load(&reader).await?,
            };
            // The checkpoint of a generation that is no longer served says nothing about its rows.
            let is_retired = own == Some(retired());
            served = Some(live).filter(|_| due.is_none() && !is_retired);
            let own = own.filter(|_| !is_retired);
            let at = match until {
                // The event may be none of the view's.
                Some(until) if due.is_none() && !is_retired && own.unwrap_or_default() < until => {
                    self.checkpoints.together().await?.beyond(&reader, own).or(own)
                }
                _ => own,
            };
            let shows = |place| at.unwrap_or_default() >= place;
            let left = match (due, until) {
                (Some(due), _) if !shows(due) => {
                    ViewRead::Building { until: due, at: at.unwrap_or_default() }
                }
                (_, Some(until)) if shows(until) => {
                    let at = at.unwrap_or_default();
                    return Ok(ViewRead::Found(Served {
                        live,
                        waited: Some(Waited { until, at }),
                    }));
                }
                _ if wait.is_none() => {
                    return Ok(ViewRead::Found(Served { live, waited: None }));
                }
                _ => ViewRead::Behind { until, at },
            };
            let pause = LOOKS_GROWING.min(look) + look.saturating_sub(LOOKS_FAST);
            let is_over = look + 1 >= LOOKS_MAX || !retry.pause(pause).await;
            let rest = retry.left().filter(|rest| is_over && !rest.is_zero());
            let is_last = is_over && rest.is_none();
            // Most events are shown before that.
            if let (ViewRead::Behind { until: Some(until), .. }, Some(wait), None) =
                (&left, wait, is_read)
                && served.is_some()
                && (is_last || look >= LOOKS_FAST)
            {
                let reads = self.reads(definition, wait, *until).await?;
                if !reads {
                    return Ok(ViewRead::Found(Served { live, waited: None }));
                }
                is_read = Some(reads);
            }
            match rest {
                Some(rest) => tokio::time::sleep(rest).await,
                None if is_last => return Ok(left),
                None => {}
            }
        }
    }

    /// Whether a view may read the event of a wait. The event before `until` is that one, or a later one of its
    /// partition.
    async fn reads(
        &self,
        view: &Definition,
        wait: &Wait,
        until: Checkpoint,
    ) -> Result<bool, ViewError> {
        let entry = self.index.last_before(until).await?;
        Ok(entry.is_none_or(|entry| entry.slot != wait.slot || view.wants(&entry.event_type)))
    }

    /// The generation that is served instead of `live`, whose rows may be deleted; `None` if `live` is still served. A
    /// row that was not found is certainly missing only if the generation was still served after the look.
    async fn still_served(&self, view: &str, live: Live) -> Result<Option<Live>, ViewError> {
        let registered = self.table.registered(view, true).await?;
        let now = registered.map(Live::from);
        Ok(now.filter(|now| now.generation != live.generation))
    }
}
