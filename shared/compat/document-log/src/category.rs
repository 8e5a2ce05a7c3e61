//! Typed streams: load, fold, decide, append; and again if another writer was first.
//!
//! This is not the decide loop of the event logs. A refused write returns the Tip, so the next attempt needs no read.
//! An append also writes unfolds of the state. With an `EventLog`, a conflict would cost one more read.

use std::sync::Arc;
use std::time::Duration;

use crate::cache::{Cache, Loaded};
use crate::check::{check, declared};
use crate::codec::{Payload, stored};
use crate::once::Search;
use crate::personal::OfCategory;
use crate::{
    AccessStrategy, Batch, CategoryError, Document, DocumentError, DocumentLog, Documents, Store,
    StreamAppend, StreamAppended, StreamConflict, StreamName, StreamNameError, TimelineEvent,
    TipLimits,
};
use ringfence_core::personal::{Form, has};
use ringfence_core::{
    BOUNDARY_BYTES_MAX, Catalog, CommandRecord, Consistency, Context, Envelope, FilingError, Name,
    NewEvent, Reads, Rejected, Slice, Tag, Vault,
};

/// The streams of one category, which are the documents of one context.
pub struct Category<D: Document, S> {
    pub(crate) log: DocumentLog<S>,
    pub(crate) access: AccessStrategy<D>,
    pub(crate) cache: Cache<D>,
    /// The events of the context.
    pub(crate) catalog: Catalog,
    pub(crate) name: &'static str,
    /// The key of the tag that names a stream; empty in a context without events.
    pub(crate) key: Name,
    /// The number of the snapshots that are read.
    pub(crate) version: u32,
    /// Seals and opens the personal data of events and states.
    pub(crate) vault: Option<Arc<dyn Vault>>,
}

/// The way the first attempt gets the state. In every case, a write takes effect only if the stream still has this
/// state. A decision that writes nothing uses a strongly consistent state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Load {
    /// From the store, at half the price of a strong read. With a cached state, it reads only the events after it.
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
#[derive(Clone, Debug, PartialEq)]
pub struct Transacted<R> {
    /// Its outcome.
    pub outcome: Decided<R>,
    /// The stream's version after it.
    pub version: u64,
    /// The number of attempts; 1 without conflicts.
    pub attempts: u32,
}

/// The outcome of a command.
#[derive(Clone, Debug, PartialEq)]
pub enum Decided<R> {
    /// These events are in the stream; empty if there was nothing to change.
    Accepted(Vec<NewEvent>),
    /// The command was accepted before, under the same idempotency key; these are its events.
    Repeated(Vec<TimelineEvent>),
    /// The slice rejects the command.
    Rejected(R),
}

/// The decision on a state.
pub(crate) struct Decision<R> {
    pub(crate) rejection: Option<R>,
    pub(crate) events: Vec<NewEvent>,
    /// The rejection that leaves the events. They carry it as a mark.
    pub(crate) left_by: Option<Rejected>,
}

/// A decision that took effect.
pub(crate) struct Settled<R> {
    pub(crate) rejection: Option<R>,
    pub(crate) events: Events,
    pub(crate) version: u64,
    pub(crate) attempts: u32,
}

/// The events of a command.
pub(crate) enum Events {
    Written(Vec<NewEvent>),
    /// Events of an earlier run under the same idempotency key.
    Found(Vec<TimelineEvent>),
}

impl<R> From<Settled<R>> for Transacted<R> {
    fn from(settled: Settled<R>) -> Self {
        let Settled { rejection, events, version, attempts } = settled;
        let outcome = match (rejection, events) {
            (Some(rejection), _) => Decided::Rejected(rejection),
            (None, Events::Written(events)) => Decided::Accepted(events),
            (None, Events::Found(events)) => Decided::Repeated(events),
        };
        Self { outcome, version, attempts }
    }
}

/// The result of an attempt to write.
enum Synced {
    /// The stream's version after it.
    Written(u64),
    /// Another writer was first. This is its Tip, if the refused write returned it.
    Conflict(Option<Batch>),
}

/// A decision by a caller's function.
fn plain<D, R>(
    decide: impl Fn(&D) -> Result<Vec<NewEvent>, R>,
) -> impl Fn(&Loaded<D>) -> Result<Decision<R>, DocumentError> {
    move |loaded| {
        let (rejection, events) = match decide(&loaded.state) {
            Ok(events) => (None, events),
            Err(rejection) => (Some(rejection), Vec::new()),
        };
        Ok(Decision { rejection, events, left_by: None })
    }
}

impl<D: Document, S: Store> Category<D, S> {
    /// The documents of a slice's context in `log`. Their state sets the access, the sizes of Tips and the encoding
    /// ([`Document`]).
    ///
    /// # Errors
    /// A command of the slice or an event of its context does not name exactly one document.
    pub fn of<C: Slice<State = D, Context: Context<Log = Documents<D>>>>(
        log: DocumentLog<S>,
        cache: Cache<D>,
    ) -> Result<Self, CategoryError> {
        check::<C, D>()?;
        let log = log.with_limits(D::TIP).with_encoding(D::ENCODING);
        Self::new::<C::Context>(log, D::ACCESS, cache)
    }

    /// The documents of the context `C` in `log`.
    ///
    /// # Errors
    /// An event of `C` does not name exactly one document.
    pub fn new<C: Context<Log = Documents<D>>>(
        log: DocumentLog<S>,
        access: AccessStrategy<D>,
        cache: Cache<D>,
    ) -> Result<Self, CategoryError> {
        let (catalog, key) = declared::<C, D>()?;
        let version = access.own().map_or(1, |snapshot| snapshot.number(&catalog));
        let key = key.unwrap_or_default();
        Ok(Self { log, access, cache, catalog, name: C::NAME, key, version, vault: None })
    }

    /// The same category, with Tips that calve at these sizes.
    #[must_use]
    pub fn with_limits(self, limits: TipLimits) -> Self {
        Self { log: self.log.with_limits(limits), ..self }
    }

    /// The same category, with a vault for personal data.
    #[must_use]
    pub fn with_vault(self, vault: Option<Arc<dyn Vault>>) -> Self {
        Self { vault, ..self }
    }

    /// Its vault, for what is personal.
    pub(crate) fn personal(&self) -> OfCategory<'_> {
        OfCategory { category: self.name, vault: self.vault.as_deref() }
    }

    /// The log of the streams.
    #[must_use]
    pub fn log(&self) -> &DocumentLog<S> {
        &self.log
    }

    /// The name of a stream of the category.
    ///
    /// # Errors
    /// The id is empty, or too long for the stream's name to be a partition of the index.
    pub fn stream(&self, id: &str) -> Result<StreamName, DocumentError> {
        let stream = StreamName::new(self.name, id);
        let bytes = match &stream {
            Ok(stream) => stream.partition().as_str().len(),
            Err(StreamNameError::TooLong(bytes)) => *bytes,
            Err(_) => 0,
        };
        if bytes > BOUNDARY_BYTES_MAX {
            return Err(FilingError::BoundaryTooLong { key: self.key.to_string(), bytes }.into());
        }
        Ok(stream?)
    }

    /// The id of the stream that a command or an event with these tags names; empty if they name none.
    #[must_use]
    pub fn id(&self, tags: &[Tag]) -> String {
        let named = tags.iter().find(|tag| tag.key == self.key);
        named.map(|tag| tag.value.clone()).unwrap_or_default()
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
        view: impl FnOnce(&D) -> V,
    ) -> Result<(V, u64), DocumentError> {
        let stream = self.stream(id)?;
        let (loaded, _) = self.first(&stream, load, envelope).await?;
        Ok((view(&loaded.state), loaded.version()))
    }

    /// Decides on the state of stream `id` and appends the events. If another writer was first, decides again. It
    /// ignores an idempotency key: use [`Category::transact_once`] for commands with a key.
    ///
    /// # Errors
    /// The state can't be read, the events can't be written, others kept writing, or the outcome
    /// can't be known.
    pub async fn transact<R>(
        &self,
        id: &str,
        load: Load,
        envelope: &Envelope,
        decide: impl Fn(&D) -> Result<Vec<NewEvent>, R>,
    ) -> Result<Transacted<R>, DocumentError> {
        Ok(self.settle(id, load, envelope, None, plain(decide), |_| true).await?.into())
    }

    /// As [`Category::transact`], for a command that takes effect once. The metadata of its events gets the record's
    /// marks. If the stream has events with these marks, nothing is decided.
    ///
    /// # Errors
    /// As [`Category::transact`]; or another command used the key; or the category keeps only the state, which has no
    /// record of commands.
    pub async fn transact_once<R>(
        &self,
        id: &str,
        load: Load,
        envelope: &Envelope,
        record: &CommandRecord,
        decide: impl Fn(&D) -> Result<Vec<NewEvent>, R>,
    ) -> Result<Transacted<R>, DocumentError> {
        Ok(self.settle(id, load, envelope, Some(record), plain(decide), |_| true).await?.into())
    }

    /// Carries a command out, once if it has a record.
    pub(crate) async fn settle<R>(
        &self,
        id: &str,
        load: Load,
        envelope: &Envelope,
        record: Option<&CommandRecord>,
        decide: impl Fn(&Loaded<D>) -> Result<Decision<R>, DocumentError>,
        refuses: impl Fn(&str) -> bool,
    ) -> Result<Settled<R>, DocumentError> {
        if record.is_some() && !self.access.keeps_events() {
            return Err(DocumentError::KeyWithoutEvents { category: self.name });
        }
        let marked = record.map(|record| envelope.marked(record));
        let envelope = marked.as_ref().unwrap_or(envelope);
        let (mut search, stream) = (record.map(Search::new), self.stream(id)?);
        let mut attempts = self.log.retry(envelope).start();
        let (mut loaded, mut strong) = self.first(&stream, load, envelope).await?;
        loop {
            if let (Some(search), Some(tip)) = (&mut search, &loaded.tip) {
                let found = search.find(&self.log, tip, envelope).await?;
                if !found.is_empty() {
                    let (events, version) = (Events::Found(found), loaded.version());
                    let attempts = attempts.made();
                    return Ok(Settled { rejection: None, events, version, attempts });
                }
            }
            let Decision { rejection, events, left_by } = decide(&loaded)?;
            if !events.is_empty() {
                let rejected = left_by.map(|rejected| envelope.rejected(&rejected));
                let of_events = rejected.as_ref().unwrap_or(envelope);
                let found =
                    match self.sync(&stream, id, &loaded, &events, of_events, &refuses).await? {
                        Synced::Written(version) => {
                            let (events, attempts) = (Events::Written(events), attempts.made());
                            return Ok(Settled { rejection, events, version, attempts });
                        }
                        Synced::Conflict(found) => found,
                    };
                let over = StreamConflict {
                    stream: stream.clone(),
                    seen: loaded.version(),
                    found: found.as_ref().map(|found| found.version),
                };
                attempts.contend(Some(over.into())).await?;
                loaded = self
                    .fetch(&stream, Some(&loaded), Consistency::Strong, found, envelope)
                    .await?;
                strong = true;
                continue;
            }
            // A refused write would show that the state is old. This decision writes nothing, so it reads the store
            // again.
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
            return Ok(Settled { rejection, events: Events::Written(events), version, attempts });
        }
    }

    /// Appends the events, if the stream has not changed since the load.
    async fn sync(
        &self,
        stream: &StreamName,
        id: &str,
        loaded: &Loaded<D>,
        events: &[NewEvent],
        envelope: &Envelope,
        refuses: impl Fn(&str) -> bool,
    ) -> Result<Synced, DocumentError> {
        let unencodable = |source| DocumentError::Unencodable { stream: stream.clone(), source };
        let clock = &self.log.clock;
        let (now_ms, read_ms, mut state) =
            (clock.now_ms(), clock.machine_ms(), loaded.state.clone());
        let at_ms = loaded.next_ms(now_ms, self.log.clock.follow(envelope.cause_ms));
        // As on the other logs, a downcast gets sealed values: it can't store one in another form.
        let mut events = events.to_vec();
        let personal = self.personal();
        personal.seal(events.iter_mut().map(|event| &mut event.data).collect(), refuses).await?;
        let (mut encoded, mut read): (Vec<Payload>, Vec<_>) = <_>::default();
        for (index, event) in (loaded.version()..).zip(&events) {
            let event_type = event.event_type.clone().into_owned();
            let Some(schema) = self.catalog.schema(&event_type) else {
                return Err(DocumentError::Undeclared { stream: stream.clone(), event_type });
            };
            let named = self.id(&event.tags);
            if named != id {
                return Err(DocumentError::OtherStream {
                    stream: stream.clone(),
                    event_type,
                    named,
                });
            }
            let payload = stored(event, schema, id)?;
            read.push(self.sequenced(stream, index, at_ms, payload.clone()));
            encoded.push(payload);
        }
        personal.open(&mut read, |event_type| D::Reads::PERSONAL.contains(&event_type)).await?;
        let is_open = read.iter().any(|event| has(&event.data, Form::Marked));
        for event in read {
            let evolved = self.evolve(state, event, id);
            state = evolved.map_err(|error| unencodable(error.into()))?;
        }
        let written = self.access.written(encoded, &state, &self.catalog);
        let (events, mut unfolds) = written.map_err(unencodable)?;
        let opened_ms = loaded.opened_ms.or_else(|| is_open.then_some(read_ms));
        let states = unfolds.iter_mut().filter_map(|unfold| unfold.data.as_mut());
        personal.seal(states.collect(), |_| false).await?;
        let append = StreamAppend {
            stream,
            known: loaded.tip.as_ref(),
            by_etag: self.access.by_etag(),
            events,
            unfolds,
            envelope,
        };
        Ok(match self.log.append_at(append, at_ms).await? {
            StreamAppended::Conflict(found) => Synced::Conflict(found),
            StreamAppended::Written(tip) => {
                let version = tip.version;
                let loaded = Arc::new(Loaded { state, tip: Some(tip), opened_ms });
                self.cache.put(stream, &loaded, read_ms);
                Synced::Written(version)
            }
        })
    }
}
