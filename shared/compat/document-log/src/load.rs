//! Loads the state of a stream with as few reads as possible, and never from a torn read.

use std::sync::Arc;
use std::time::Duration;

use ringfence_aws::ms_of_rfc3339;
use ringfence_core::personal::{Form, has};
use ringfence_core::{Consistency, Envelope, Metadata, NewerVersion, Reads, SequencedEvent};
use serde_json::Value;

use crate::cache::Loaded;
use crate::codec::{Payload, whole};
use crate::error::Unreadable;
use crate::read::{Walk, torn_retry};
use crate::{Batch, Body, Category, Document, DocumentError, Load, Store, StreamName};

/// Items of one page while a read looks for its origin.
const PAGE_ITEMS_MAX: u64 = 32;

impl<D: Document, S: Store> Category<D, S> {
    /// The state for the first attempt, and whether it has every acknowledged write.
    pub(crate) async fn first(
        &self,
        stream: &StreamName,
        load: Load,
        envelope: &Envelope,
    ) -> Result<(Arc<Loaded<D>>, bool), DocumentError> {
        let cached = self.cache.get(stream, self.log.clock.machine_ms());
        let age = |at_ms: u64| self.log.clock.machine_ms().saturating_sub(at_ms);
        let state = match (load, &cached) {
            (Load::Empty, _) => {
                return Ok((
                    Arc::new(Loaded { state: D::default(), tip: None, opened_ms: None }),
                    false,
                ));
            }
            (Load::Cached, Some((cached, _))) => return Ok((cached.clone(), false)),
            (Load::Stale(most), Some((cached, at_ms)))
                if Duration::from_millis(age(*at_ms)) <= most =>
            {
                return Ok((cached.clone(), false));
            }
            (_, cached) => cached.as_ref().map(|(cached, _)| cached),
        };
        let consistency =
            if load == Load::Strong { Consistency::Strong } else { Consistency::Eventual };
        let loaded = self.fetch(stream, state, consistency, None, envelope).await?;
        Ok((loaded, consistency == Consistency::Strong))
    }

    /// Loads the state from the store. Starts from the known state, or from `found`, a Tip that was just read.
    pub(crate) async fn fetch(
        &self,
        stream: &StreamName,
        known: Option<&Arc<Loaded<D>>>,
        consistency: Consistency,
        found: Option<Batch>,
        envelope: &Envelope,
    ) -> Result<Arc<Loaded<D>>, DocumentError> {
        let mut attempts = torn_retry(self.log.retry(envelope)).start();
        let (mut consistency, mut found) = (consistency, found);
        let at_ms = self.log.clock.machine_ms();
        loop {
            match self.attempt(stream, known, consistency, found.take(), envelope).await {
                Err(error) if error.is_torn() && attempts.again().await => {
                    consistency = Consistency::Strong
                }
                Err(error) => return Err(error),
                Ok(loaded) => {
                    self.cache.put(stream, &loaded, at_ms);
                    return Ok(loaded);
                }
            }
        }
    }

    async fn attempt(
        &self,
        stream: &StreamName,
        known: Option<&Arc<Loaded<D>>>,
        consistency: Consistency,
        found: Option<Batch>,
        envelope: &Envelope,
    ) -> Result<Arc<Loaded<D>>, DocumentError> {
        let known = known.filter(|known| known.tip.is_some());
        let mut walk = Walk::back(&self.log, stream, consistency, envelope);
        let tip = match found {
            Some(tip) => Some(tip),
            None if known.is_some() || self.access.reads_unfolds() => {
                self.log.tip(stream, consistency, envelope).await?
            }
            None => {
                let tip = walk.next().await?;
                return self.fold(stream, None, tip, walk).await;
            }
        };
        if let (Some(known), tip) = (known, &tip) {
            let version = tip.as_ref().map_or(0, |tip| tip.version);
            let etag = tip.as_ref().and_then(|tip| tip.etag.as_ref());
            // A replica that is behind this program has nothing new either.
            let lags = consistency != Consistency::Strong && version < known.version();
            if lags || (etag.is_some() && etag == known.etag()) {
                return Ok(known.clone());
            }
        }
        let base = tip.as_ref().map_or(0, Batch::base);
        let since = known.map_or(0, |known| known.version());
        let mut walk = walk.behind(base);
        if known.is_some() || self.access.reads_unfolds() {
            // Each calf has at least one event.
            walk = walk.pages_of(base.saturating_sub(since).min(PAGE_ITEMS_MAX));
        }
        self.fold(stream, known, tip, walk).await
    }

    /// Goes back from `tip` to an origin or to the known state, and folds the events after it.
    async fn fold(
        &self,
        stream: &StreamName,
        known: Option<&Arc<Loaded<D>>>,
        tip: Option<Batch>,
        mut walk: Walk<'_, S>,
    ) -> Result<Arc<Loaded<D>>, DocumentError> {
        let since = known.map_or(0, |known| known.version());
        let mut newest_first = Vec::new();
        // The newest snapshot of other versions of the events, and the number of events after it.
        let (mut origin, mut other) = (false, None);
        let Some(tip) = tip else {
            return Ok(Arc::new(Loaded { state: D::default(), tip: None, opened_ms: None }));
        };
        // An unfold of another type belongs to another version of the program.
        let newest = tip.unfolds.iter().rfind(|unfold| {
            unfold.version == tip.version && self.access.is_origin(&unfold.event_type)
        });
        if let Some(unfold) = newest {
            let (event_type, time) = (&unfold.event_type, &unfold.time);
            let bodies = (&unfold.data, &unfold.meta);
            // The unfold is a copy of the last event, or the state after it.
            let is_event = self.access.snapshot(event_type).is_none();
            let index = unfold.version - u64::from(is_event && unfold.version > 0);
            let found = self.found(stream, index, event_type, time, bodies)?;
            origin = self.begins_with(&found);
            match origin {
                true => newest_first.push(found),
                false => other = Some((found, 0)),
            }
        }
        let mut batch = Some(tip.clone());
        let mut reached = tip.version;
        while let Some(events) = batch.take().filter(|_| !origin && reached > since) {
            let indexed = (events.base()..).zip(&events.events).collect::<Vec<_>>();
            for (index, event) in indexed.into_iter().rev().filter(|(index, _)| *index >= since) {
                let event_type = &event.event_type;
                let is_origin = self.access.is_origin(event_type);
                if is_origin || D::Reads::TYPES.contains(&&**event_type) {
                    let (time, bodies) = (&event.time, (&event.data, &event.meta));
                    let found = self.found(stream, index, event_type, time, bodies)?;
                    origin = is_origin && self.begins_with(&found);
                    match is_origin && !origin {
                        true => drop(other.get_or_insert((found, newest_first.len()))),
                        false => newest_first.push(found),
                    }
                } else if self.catalog.schema(event_type).is_none() {
                    let (stream, event_type) = (stream.clone(), event_type.clone());
                    return Err(DocumentError::UnknownType { stream, index, event_type });
                }
                if origin {
                    break;
                }
            }
            reached = events.base();
            if !origin && reached > since {
                batch = walk.next().await?;
            }
        }
        if !origin && reached > since {
            let (snapshot, after) = other.unzip();
            let snapshot = self.instead(stream, since, reached, snapshot)?;
            newest_first.truncate(after.unwrap_or_default());
            newest_first.push(snapshot);
            origin = true;
        }
        let is_read = |event_type: &str| {
            D::Reads::PERSONAL.contains(&event_type) || self.access.snapshot(event_type).is_some()
        };
        self.personal().open(&mut newest_first, is_read).await?;
        let known = known.filter(|_| !origin);
        let is_open = newest_first.iter().any(|event| has(&event.data, Form::Marked));
        let opened_ms = known.and_then(|known| known.opened_ms);
        let opened_ms = opened_ms.or_else(|| is_open.then(|| self.log.clock.machine_ms()));
        let begin = known.map(|known| known.state.clone());
        let mut oldest_first = newest_first.into_iter().rev();
        let state = oldest_first.try_fold(begin.unwrap_or_default(), |state, event| {
            let (index, event_type) = (event.slot, event.event_type.clone());
            self.evolve(state, event, stream.id()).map_err(|error| match error {
                Unreadable::Newer(newer) => newer.into(),
                Unreadable::Shape(source) => {
                    let stream = stream.clone();
                    DocumentError::Undecodable { stream, index, event_type, source }
                }
            })
        })?;
        Ok(Arc::new(Loaded { state, tip: Some(tip), opened_ms }))
    }

    /// Whether a state begins with this event, unfold or snapshot, even if there are events before it. A snapshot of
    /// other versions of the events counts only if the category keeps no events: then the state can't be folded again.
    fn begins_with(&self, found: &SequencedEvent) -> bool {
        let is_snapshot = self.access.snapshot(&found.event_type).is_some();
        !is_snapshot || !self.access.keeps_events() || found.version == self.version
    }

    /// The state to use if events from `wanted` on were pruned: a snapshot of older versions of the events.
    fn instead(
        &self,
        stream: &StreamName,
        wanted: u64,
        first: u64,
        snapshot: Option<SequencedEvent>,
    ) -> Result<SequencedEvent, DocumentError> {
        match snapshot {
            Some(older) if older.version < self.version => Ok(older),
            Some(newer) => {
                let (event, known) = (newer.id(), self.version);
                let SequencedEvent { event_type, version, .. } = newer;
                Err(NewerVersion { event, event_type, version, known }.into())
            }
            None => Err(DocumentError::Pruned { stream: stream.clone(), wanted, first }),
        }
    }

    fn found(
        &self,
        stream: &StreamName,
        index: u64,
        event_type: &str,
        time: &str,
        (data, meta): (&Body, &Body),
    ) -> Result<SequencedEvent, DocumentError> {
        let json = |body: &Body| {
            body.json().map_err(|source| {
                let (stream, event_type) = (stream.clone(), event_type.to_owned());
                DocumentError::Body { stream, index, event_type, source }
            })
        };
        let (_, version) = Metadata::foreign(json(meta)?.unwrap_or_default(), event_type);
        let payload = Payload { event_type: event_type.to_owned(), version, data: json(data)? };
        let at = ms_of_rfc3339(time).unwrap_or(0);
        Ok(self.sequenced(stream, index, at, payload))
    }

    /// An event of a stream, or an unfold in the place of an event, in the form that a fold reads.
    pub(crate) fn sequenced(
        &self,
        stream: &StreamName,
        slot: u64,
        at: u64,
        payload: Payload,
    ) -> SequencedEvent {
        let Payload { event_type, version, data } = payload;
        SequencedEvent {
            partition: stream.partition(),
            slot,
            at,
            rest: 0,
            event_type,
            context: self.name.to_owned(),
            tags: Vec::new(),
            version,
            data: data.unwrap_or(Value::Null),
            metadata: Metadata::default(),
        }
    }

    /// The state after an event of the stream with this id, or after a snapshot.
    pub(crate) fn evolve(
        &self,
        state: D,
        event: SequencedEvent,
        id: &str,
    ) -> Result<D, Unreadable> {
        let event_type = event.event_type.as_str();
        if let Some(snapshot) = self.access.snapshot(event_type) {
            return Ok(snapshot.read(event.data)?);
        }
        match D::Reads::TYPES.contains(&event_type) {
            true => {
                let current = self.catalog.current(whole(event, &self.key, id))?;
                Ok(state.evolve(D::Reads::decode(&current)?))
            }
            false => Ok(state),
        }
    }
}
