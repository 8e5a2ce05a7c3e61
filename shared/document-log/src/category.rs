//! Typed streams: load, fold, decide, append; and again if another writer was first.

use std::sync::Arc;
use std::time::Duration;

use ringfence::{CommandRecord, Consistency, Envelope, StoreError};

use crate::cache::{Cache, Loaded};
use crate::codec::{encode_readable, types};
use crate::once::Search;
use crate::{
    Access, Append, Appended, Batch, Conflict, DocumentContext, DocumentError, DocumentLog,
    Recorded, Store, StreamName, StreamNameError,
};

/// The streams of one category.
pub struct Category<D: DocumentContext, S> {
    pub(crate) log: DocumentLog<S>,
    pub(crate) access: Access<D>,
    pub(crate) cache: Cache<D::State>,
    /// The types of events that the enum knows.
    pub(crate) types: &'static [&'static str],
}

/// Why a category can't be made.
#[derive(Debug, thiserror::Error)]
pub enum CategoryError {
    /// Events are distinguished by the names of their variants.
    #[error("the events of {0} must be an enum that is tagged by the names of its variants alone")]
    Events(&'static str),
    /// The category's name.
    #[error(transparent)]
    Name(#[from] StreamNameError),
}

/// How the first attempt gets the state. In every case a write takes effect only if its state is the
/// stream's, and a decision that writes nothing is made on a strongly consistent state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Load {
    /// From the store, at half the price of a strong read; of a cached state, only what came after is read.
    #[default]
    Eventual,
    /// From the store, with every acknowledged write.
    Strong,
    /// From the cache, if it was the newest at most this long ago.
    Stale(Duration),
    /// From the cache, if it is there.
    Cached,
    /// The stream is assumed to be empty.
    Empty,
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transacted<E, R> {
    /// Its outcome.
    pub outcome: Outcome<E, R>,
    /// The stream's version after it.
    pub version: u64,
    /// How often it was decided; 1 without conflicts.
    pub attempts: u32,
}

/// The outcome of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<E, R> {
    /// These events are in the stream; empty if there was nothing to change.
    Accepted(Vec<E>),
    /// The command was accepted before, under the same idempotency key; these are its events.
    Repeated(Vec<Recorded>),
    /// Refused by the domain.
    Rejected(R),
}

/// The result of an attempt to write.
enum Synced<E> {
    Written {
        events: Vec<E>,
        version: u64,
    },
    /// The Tip that refused it, if the refusal brought it.
    Conflict(Option<Batch>),
}

impl<D: DocumentContext, S: Store> Category<D, S> {
    /// The streams of `D` in `log`.
    ///
    /// # Errors
    /// `D` can't be stored as it is declared.
    pub fn new(
        log: DocumentLog<S>,
        access: Access<D>,
        cache: Cache<D::State>,
    ) -> Result<Self, CategoryError> {
        StreamName::new(D::NAME, "id")?;
        let types = types::<D::Event>();
        if types.is_empty() {
            return Err(CategoryError::Events(D::NAME));
        }
        Ok(Self { log, access, cache, types })
    }

    /// The log of the streams.
    #[must_use]
    pub fn log(&self) -> &DocumentLog<S> {
        &self.log
    }

    /// The name of a stream of the category.
    ///
    /// # Errors
    /// The id is empty or too long.
    pub fn stream(&self, id: &str) -> Result<StreamName, DocumentError> {
        Ok(StreamName::new(D::NAME, id)?)
    }

    /// The result of `view` for the state of stream `id`, and the stream's version.
    ///
    /// # Errors
    /// The state can't be read.
    pub async fn query<V>(
        &self,
        id: &str,
        load: Load,
        envelope: &Envelope,
        view: impl FnOnce(&D::State) -> V,
    ) -> Result<(V, u64), DocumentError> {
        let stream = self.stream(id)?;
        let (loaded, _) = self.first(&stream, load, envelope).await?;
        Ok((view(&loaded.state), loaded.version()))
    }

    /// Decides on the state of stream `id` and appends the events, if nothing was written in
    /// between; if something was, decides again. It ignores an idempotency key:
    /// [`Category::transact_once`] is for commands with one.
    ///
    /// # Errors
    /// The state can't be read, the events can't be written, others kept writing, or the outcome
    /// can't be known.
    pub async fn transact<R>(
        &self,
        id: &str,
        load: Load,
        envelope: &Envelope,
        decide: impl Fn(&D::State) -> Result<Vec<D::Event>, R>,
    ) -> Result<Transacted<D::Event, R>, DocumentError> {
        self.settle(id, load, envelope, None, decide).await
    }

    /// The same for a command that takes effect once: the record's marks go into the metadata of its
    /// events, and if the stream has events with these marks, nothing is decided.
    ///
    /// # Errors
    /// As [`Category::transact`]; or the key is another command's; or only the state is kept, which says
    /// nothing about commands.
    pub async fn transact_once<R>(
        &self,
        id: &str,
        load: Load,
        envelope: &Envelope,
        record: &CommandRecord,
        decide: impl Fn(&D::State) -> Result<Vec<D::Event>, R>,
    ) -> Result<Transacted<D::Event, R>, DocumentError> {
        if !self.access.keeps_events() {
            return Err(DocumentError::KeyWithoutEvents { category: D::NAME });
        }
        let (marked, search) = (envelope.marked(record), Search::new(record));
        self.settle(id, load, &marked, Some(search), decide).await
    }

    async fn settle<R>(
        &self,
        id: &str,
        load: Load,
        envelope: &Envelope,
        mut search: Option<Search<'_>>,
        decide: impl Fn(&D::State) -> Result<Vec<D::Event>, R>,
    ) -> Result<Transacted<D::Event, R>, DocumentError> {
        let stream = self.stream(id)?;
        let mut attempts = self.log.retry(envelope).start();
        let (mut loaded, mut strong) = self.first(&stream, load, envelope).await?;
        loop {
            if let (Some(search), Some(tip)) = (&mut search, &loaded.tip) {
                let found = search.find(&self.log, tip, envelope).await?;
                if !found.is_empty() {
                    let (outcome, version) = (Outcome::Repeated(found), loaded.version());
                    return Ok(Transacted { outcome, version, attempts: attempts.made() });
                }
            }
            let outcome = match decide(&loaded.state) {
                Ok(events) if !events.is_empty() => {
                    let found = match self.sync(&stream, &loaded, events, envelope).await? {
                        Synced::Written { events, version } => {
                            let (outcome, attempts) = (Outcome::Accepted(events), attempts.made());
                            return Ok(Transacted { outcome, version, attempts });
                        }
                        Synced::Conflict(found) => found,
                    };
                    if !attempts.again().await {
                        let (seen, found) = (loaded.version(), found.map(|found| found.version));
                        let over = Some(Conflict { stream, seen, found }.into());
                        let attempts = attempts.made();
                        return Err(StoreError::Contention { attempts, over }.into());
                    }
                    loaded = self
                        .fetch(&stream, Some(&loaded), Consistency::Strong, found, envelope)
                        .await?;
                    strong = true;
                    continue;
                }
                Ok(_) => Outcome::Accepted(Vec::new()),
                Err(rejection) => Outcome::Rejected(rejection),
            };
            // An old state shows when a write is refused. Nothing is written here, so the store is asked.
            if !strong {
                let fresh =
                    self.fetch(&stream, Some(&loaded), Consistency::Strong, None, envelope).await?;
                strong = true;
                if fresh.tip != loaded.tip {
                    loaded = fresh;
                    continue;
                }
            }
            let (version, attempts) = (loaded.version(), attempts.made());
            return Ok(Transacted { outcome, version, attempts });
        }
    }

    /// Appends the events, if the stream is still as it was loaded.
    async fn sync(
        &self,
        stream: &StreamName,
        loaded: &Loaded<D::State>,
        events: Vec<D::Event>,
        envelope: &Envelope,
    ) -> Result<Synced<D::Event>, DocumentError> {
        let state = events.iter().cloned().fold(loaded.state.clone(), D::evolve);
        let (written, unfolds) = self.access.written(events.clone(), &state);
        let encoded = |all: &[D::Event]| {
            let all = all.iter().map(encode_readable).collect::<Result<Vec<_>, _>>();
            let stream = stream.clone();
            all.map_err(|source| DocumentError::Unencodable { stream, source })
        };
        let append = Append {
            stream,
            known: loaded.tip.as_ref(),
            by_etag: self.access.by_etag(),
            events: encoded(&written)?,
            unfolds: encoded(&unfolds)?,
            envelope,
        };
        let at_ms = self.log.clock.now_ms();
        Ok(match self.log.append(append).await? {
            Appended::Conflict(found) => Synced::Conflict(found),
            Appended::Written(tip) => {
                let version = tip.version;
                let loaded = Arc::new(Loaded { state, tip: Some(tip) });
                self.cache.put(stream, &loaded, at_ms);
                Synced::Written { events, version }
            }
        })
    }
}
