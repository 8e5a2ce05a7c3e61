//! The vault seals personal values before a log stores them, and opens what a log returns.

use std::{fmt, mem::take, sync::Arc};

use futures::{
    FutureExt, StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use serde_json::Value;

use crate::{
    Append, Appended, Catalog, CommandRecord, Conflict, Consistency, Envelope, EventLog, EventRef,
    LogError, NewEvent, Plan, Reads, Seen, SequencedEvent, Tag, TagSchema, VaultError,
    personal::{MARKED, SEALED},
};

/// Keeps the keys of subjects. [`personal`](crate::personal) has the forms of a value.
pub trait Vault: fmt::Debug + Send + Sync {
    /// Replaces each marked value by its sealed form. A new subject gets a key.
    ///
    /// # Errors
    /// A subject is forgotten, or the keys can't be had. The payloads may be half sealed.
    fn seal<'a>(&'a self, payloads: Vec<&'a mut Value>) -> BoxFuture<'a, Result<(), VaultError>>;

    /// Replaces each sealed value by its marked form, or by the forgotten one.
    ///
    /// # Errors
    /// The keys can't be had, or a value was changed: all others are open then.
    fn open<'a>(&'a self, payloads: Vec<&'a mut Value>) -> BoxFuture<'a, Result<(), VaultError>>;

    /// The HMAC of a text under the subject's key, in hexadecimal. A new subject gets a key.
    ///
    /// # Errors
    /// The subject is forgotten, or the key can't be had.
    fn fingerprint<'a>(
        &'a self,
        subject: &'a str,
        text: &'a str,
    ) -> BoxFuture<'a, Result<String, VaultError>>;

    /// The values of blind tags, `b<number of the key>.<26 letters>`: their HMACs under each blind key of the stack. The
    /// first list is for new events. Events from before a rotation have values of the others, so a decision asks for
    /// all.
    ///
    /// # Errors
    /// The keys can't be had.
    fn blind<'a>(&'a self, tags: &'a [Tag]) -> BoxFuture<'a, Result<Vec<Vec<String>>, VaultError>>;

    /// The same vault for a dry run: keys that it makes stay in memory.
    fn dry(self: Arc<Self>) -> Arc<dyn Vault>;
}

/// The tags of a command or an event of this shape, under each blind key; the first are for new events. An empty value
/// makes no boundary, so it stays.
pub(crate) async fn blind(
    log: &dyn EventLog,
    shape: &[TagSchema],
    tags: Vec<Tag>,
) -> Result<Vec<Vec<Tag>>, LogError> {
    let is_blind =
        |tag: &Tag| !tag.value.is_empty() && shape.iter().any(|of| of.blind && of.key == tag.key);
    let blind: Vec<_> = tags.iter().filter(|tag| is_blind(tag)).cloned().collect();
    if blind.is_empty() {
        return Ok(vec![tags]);
    }
    let under = |values: Vec<String>| {
        let (mut tags, mut values) = (tags.clone(), values.into_iter());
        for tag in tags.iter_mut().filter(|tag| is_blind(tag)) {
            tag.value = values.next().expect("a value for each tag");
        }
        tags
    };
    Ok(log.blind(&blind).await?.into_iter().map(under).collect())
}

/// Replaces the values of the events' blind tags.
pub(crate) async fn blind_events(
    log: &dyn EventLog,
    catalog: &Catalog,
    events: &mut [NewEvent],
) -> Result<(), LogError> {
    for NewEvent { event_type, tags, .. } in events {
        if let Some(schema) = catalog.schema(event_type) {
            *tags = blind(log, &schema.tags, take(tags)).await?.swap_remove(0);
        }
    }
    Ok(())
}

/// A vault keeps a key in memory for this long, in milliseconds, and a warm handler a state with opened values. So
/// nobody can read a forgotten subject's values after twice that time, five minutes.
pub const KEPT_OPEN_MS: u64 = 150_000;

/// Whether values that were opened at one time are to be forgotten at another, also if the clock was set back since.
#[must_use]
pub fn is_open_too_long(opened_ms: u64, now_ms: u64) -> bool {
    now_ms.checked_sub(opened_ms).is_none_or(|age| age > KEPT_OPEN_MS)
}

/// A log whose personal values are sealed. What it returns is open.
pub struct Vaulted<L> {
    log: L,
    vault: Arc<dyn Vault>,
    /// The types whose events are opened.
    opens: &'static [&'static str],
}

/// Up to this many events are opened at once, so their keys come in one request.
const OPENED_TOGETHER: usize = 100;

impl<L: EventLog> Vaulted<L> {
    /// The log with a vault, for readers of these events.
    pub fn new<R: Reads>(log: L, vault: Arc<dyn Vault>) -> Self {
        Self { log, vault, opens: R::PERSONAL }
    }

    /// The log as it stores events.
    pub fn log(&self) -> &L {
        &self.log
    }

    async fn open(&self, events: &mut [SequencedEvent]) -> Result<(), LogError> {
        let opened = events.iter_mut().filter(|event| self.opens.contains(&&*event.event_type));
        let payloads: Vec<_> = opened.map(|event| &mut event.data).collect();
        match payloads.is_empty() {
            true => Ok(()),
            false => Ok(self.vault.open(payloads).await?),
        }
    }
}

impl<L: EventLog> EventLog for Vaulted<L> {
    fn read<'a>(
        &'a self,
        plan: &'a Plan,
        consistency: Consistency,
        envelope: &'a Envelope,
    ) -> BoxStream<'a, Result<SequencedEvent, LogError>> {
        let chunks = self.log.read(plan, consistency, envelope).ready_chunks(OPENED_TOGETHER);
        let opened = chunks.then(move |chunk| async move {
            let (mut events, mut failed) = (Vec::with_capacity(chunk.len()), None);
            for event in chunk {
                match event {
                    Ok(event) => events.push(event),
                    Err(error) => failed = Some(Err(error)),
                }
            }
            let opened = self.open(&mut events).await;
            let events = match opened {
                Ok(()) => events.into_iter().map(Ok).chain(failed).collect(),
                Err(error) => vec![Err(error)],
            };
            stream::iter(events)
        });
        opened.flatten().boxed()
    }

    fn reads_strongly(&self) -> bool {
        self.log.reads_strongly()
    }

    /// The values are sealed once, so each request of the append has the same.
    fn append<'a>(&'a self, append: Append<'a>) -> BoxFuture<'a, Result<Appended, LogError>> {
        Box::pin(async move {
            let Append { mut events, .. } = append;
            let payloads: Vec<_> = events.iter_mut().map(|event| &mut event.data).collect();
            self.vault.seal(payloads).await?;
            match self.log.append(Append { events, ..append }).await? {
                Appended::Committed(mut events) => {
                    // The commit stands in any case. Without the keys, which are in memory now, the handler can't fold
                    // the events, and reads them again.
                    let payloads = events.iter_mut().map(|event| &mut event.data);
                    drop(self.vault.open(payloads.collect()).await);
                    Ok(Appended::Committed(events))
                }
                repeated @ Appended::Repeated(_) => Ok(repeated),
            }
        })
    }

    fn verify<'a>(
        &'a self,
        seen: &'a Seen,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Conflict>, LogError>> {
        self.log.verify(seen, envelope)
    }

    fn recorded<'a>(
        &'a self,
        record: &'a CommandRecord,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Vec<EventRef>>, LogError>> {
        self.log.recorded(record, envelope)
    }

    fn snapshot<'a>(
        &'a self,
        id: &'a str,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<String>, LogError>> {
        Box::pin(async move {
            let Some(text) = self.log.snapshot(id, envelope).await? else { return Ok(None) };
            if !text.contains(SEALED) {
                return Ok(Some(text));
            }
            // A text that can't be read is no snapshot.
            let Ok(mut value) = serde_json::from_str(&text) else { return Ok(None) };
            self.vault.open(vec![&mut value]).await?;
            Ok(Some(value.to_string()))
        })
    }

    /// The keys of values that were just read are in memory. If one is not, there is no snapshot.
    fn keep_snapshot(&self, id: String, text: String) {
        if !text.contains(MARKED) {
            return self.log.keep_snapshot(id, text);
        }
        let Ok(mut value) = serde_json::from_str::<Value>(&text) else { return };
        let sealed = self.vault.seal(vec![&mut value]).now_or_never();
        if let Some(Ok(())) = sealed {
            self.log.keep_snapshot(id, value.to_string());
        }
    }

    fn fingerprint<'a>(
        &'a self,
        subject: &'a str,
        text: &'a str,
    ) -> BoxFuture<'a, Result<String, LogError>> {
        Box::pin(async move { Ok(self.vault.fingerprint(subject, text).await?) })
    }

    fn blind<'a>(&'a self, tags: &'a [Tag]) -> BoxFuture<'a, Result<Vec<Vec<String>>, LogError>> {
        Box::pin(async move { Ok(self.vault.blind(tags).await?) })
    }

    fn pause<'a>(&'a self, attempt: u32, envelope: &'a Envelope) -> BoxFuture<'a, bool> {
        self.log.pause(attempt, envelope)
    }
}
