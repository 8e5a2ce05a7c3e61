//! The vault: seals and opens personal values with the keys of their subjects.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use futures::future::BoxFuture;
use ringfence_aws::{ATTEMPTS_MAX, Clock, Meter, MeteredVault};
use ringfence_core::personal::{FORGOTTEN, Form, MARKED, OF, SEALED, subject, values};
use ringfence_core::storable::{self, CodecError};
use ringfence_core::{KEPT_OPEN_MS, StoreError, Tag, Vault, VaultError};
use serde_json::{Value, json};

use crate::cache::Cache;
use crate::crypto::{SecretKey, place};
use crate::record::{Record, WrappedKey};
use crate::rotation::{Purpose, Rotation};
use crate::stack_keys::StackKeys;
use crate::wrap::wrong_key;
use crate::{KeyTable, Wrap};

/// The field with the number of the key, in a sealed value.
const K: &str = "k";
/// This many subjects are kept at most: some hundred bytes each.
const SUBJECTS_MAX: usize = 10_000;

/// Keeps the keys of subjects in a table, and seals and opens values with them. Clones share what they know.
#[derive(Clone)]
pub struct KeyVault {
    /// Values open in no other stack.
    stack: String,
    table: KeyTable,
    clock: Clock,
    subjects: Arc<Cache<Known>>,
    stack_keys: Arc<StackKeys>,
}

/// A subject with its key.
struct Known {
    record: Record,
    key: Option<(u64, SecretKey)>,
}

type Found = BTreeMap<String, Arc<Known>>;

impl KeyVault {
    /// The vault of the stack of this name.
    #[must_use]
    pub fn new(stack: impl Into<String>, table: KeyTable, wrap: Wrap, clock: Clock) -> Self {
        Self::of(stack.into(), table, Arc::new(wrap), clock)
    }

    fn of(stack: String, table: KeyTable, wrap: Arc<Wrap>, clock: Clock) -> Self {
        let subjects = Arc::new(Cache::new(SUBJECTS_MAX, KEPT_OPEN_MS, clock.clone()));
        let stack_keys = Arc::new(StackKeys::new(stack.clone(), wrap, clock.clone()));
        Self { stack, table, clock, subjects, stack_keys }
    }

    /// Makes a new key of the stack. `None` if the stack has none yet for this purpose: the first command makes one. A
    /// call that comes forty minutes or less after the last new key makes none, so a call that was interrupted can be
    /// repeated.
    ///
    /// A new branch key is used at once, and by a warm function ten minutes later. A new blind key is used forty minutes
    /// later, when every function asks for its tags. A restore of the table to a time before the rotation loses the new
    /// key: its subjects are lost, and decisions do not find what is tagged under it.
    ///
    /// # Errors
    /// The table or KMS fails, or the stack has the most keys.
    pub async fn rotate(&self, purpose: Purpose) -> Result<Option<Rotation>, StoreError> {
        self.stack_keys.rotate(&self.table, purpose).await
    }

    /// The subjects with what is known about them, without new ones. Fresh ones are read from the table in any case.
    async fn find(&self, subjects: BTreeSet<&str>, fresh: bool) -> Result<Found, StoreError> {
        let (mut found, mut asked) = (Found::new(), BTreeSet::new());
        for subject in subjects {
            match self.subjects.get(subject).filter(|_| !fresh) {
                Some(known) => drop(found.insert(subject.to_owned(), known)),
                None => drop(asked.insert(subject)),
            }
        }
        let asked_ms = self.clock.now_ms();
        for (subject, record) in self.table.records(&asked, fresh).await? {
            let known = self.known(&subject, record, asked_ms).await?;
            found.insert(subject, known);
        }
        Ok(found)
    }

    /// Unwraps the key of a subject, and keeps it.
    async fn known(
        &self,
        subject: &str,
        record: Record,
        asked_ms: u64,
    ) -> Result<Arc<Known>, StoreError> {
        let key = match &record.key {
            Some(key) => Some((key.number, self.unwrapped(subject, key).await?)),
            None => None,
        };
        let known = Arc::new(Known { record, key });
        self.subjects.put(subject, asked_ms, known.clone());
        Ok(known)
    }

    /// In front of a wrapped key is the number of its branch key.
    async fn unwrapped(&self, subject: &str, key: &WrappedKey) -> Result<SecretKey, StoreError> {
        let wrong = || wrong_key(&format!("subject#{subject}"));
        let (branch, wrapped) = key.wrapped.split_first_chunk().ok_or_else(wrong)?;
        let branch = self.stack_keys.branch(&self.table, u32::from_be_bytes(*branch)).await?;
        let plain = branch.open(&self.place(subject, key.number), wrapped);
        plain.ok().and_then(|plain| SecretKey::of(&plain)).ok_or_else(wrong)
    }

    async fn new_key(&self, subject: &str, number: u64) -> Result<WrappedKey, StoreError> {
        let (branch_number, branch) = self.stack_keys.newest_branch(&self.table).await?;
        let wrapped = branch.seal(&self.place(subject, number), SecretKey::random().bytes());
        let wrapped = [&branch_number.to_be_bytes(), &*wrapped].concat();
        Ok(WrappedKey { number, wrapped, made_at_ms: self.clock.now_ms() })
    }

    /// Where a value of the subject opens, and its key of this number.
    fn place(&self, subject: &str, number: u64) -> Vec<u8> {
        place(&[&self.stack, subject, &number.to_string()])
    }

    /// The subject with a key. A new subject gets one; if another writer was first, that one counts.
    async fn with_key(
        &self,
        subject: &str,
        mut known: Option<Arc<Known>>,
    ) -> Result<Arc<Known>, VaultError> {
        let mut is_fresh = false;
        for _ in 0..ATTEMPTS_MAX {
            if let Some(known) = known.take_if(|known| known.key.is_some()) {
                return Ok(known);
            }
            let found = known.as_ref().map(|known| &known.record);
            let asked_ms = self.clock.now_ms();
            let Some(number) = Record::next_key(found, asked_ms) else {
                // What is kept, or was read without consistency, may be older than a new key.
                if is_fresh {
                    return Err(VaultError::Forgotten(subject.to_owned()));
                }
                known = self.find(BTreeSet::from([subject]), true).await?.remove(subject);
                is_fresh = true;
                continue;
            };
            let record = Record::with_key(found, self.new_key(subject, number).await?);
            known = match self.table.put(subject, found, record).await? {
                Some(there) => Some(self.known(subject, there, asked_ms).await?),
                None => None,
            };
        }
        Err(StoreError::Contention { attempts: ATTEMPTS_MAX, over: None }.into())
    }

    async fn seal_all(&self, payloads: Vec<&mut Value>) -> Result<(), VaultError> {
        let marked: Vec<_> =
            payloads.into_iter().flat_map(|payload| values(payload, Form::Marked)).collect();
        let subjects = marked.iter().map(|value| of(value)).collect::<Result<_, _>>()?;
        let mut found = self.find(subjects, false).await?;
        for value in marked {
            let subject = of(value)?.to_owned();
            let known = self.with_key(&subject, found.remove(&subject)).await?;
            let (number, key) = known.key.as_ref().ok_or_else(|| wrong_key(&subject))?;
            storable::check("a personal value", &value[MARKED]).map_err(unstorable)?;
            let plain = value[MARKED].to_string();
            let sealed = key.seal(&self.place(&subject, *number), plain.as_bytes());
            *value = json!({ SEALED: URL_SAFE_NO_PAD.encode(sealed), OF: subject, K: number });
            found.insert(subject, known);
        }
        Ok(())
    }

    async fn open_all(&self, payloads: Vec<&mut Value>) -> Result<(), VaultError> {
        let sealed: Vec<_> =
            payloads.into_iter().flat_map(|payload| values(payload, Form::Sealed)).collect();
        let named = sealed.iter().filter_map(|value| Some((of(value).ok()?, number(value).ok()?)));
        let named: BTreeSet<(&str, u64)> = named.collect();
        let mut found =
            self.find(named.iter().map(|(subject, _)| *subject).collect(), false).await?;
        // What is kept, or was read without consistency, may be older than the value.
        let is_settled = |(subject, number): &&(&str, u64)| {
            let known = found.get(*subject).map(|known| &known.record);
            known.is_some_and(|record| record.is_forgotten(*number) || record.opens(*number))
        };
        let unsettled = named.iter().filter(|named| !is_settled(named));
        let unsettled: BTreeSet<_> = unsettled.map(|(subject, _)| *subject).collect();
        if !unsettled.is_empty() {
            found.append(&mut self.find(unsettled, true).await?);
        }
        // All that can be opened is open, also if another value is damaged.
        let opened = sealed.into_iter().map(|value| self.open_one(value, &found));
        opened.fold(Ok(()), Result::and)
    }

    fn open_one(&self, value: &mut Value, found: &Found) -> Result<(), VaultError> {
        let (subject, number) = (of(value)?.to_owned(), number(value)?);
        let damaged = |why| damaged(&subject, why);
        let known = found.get(&subject).ok_or_else(|| damaged(NO_KEY))?;
        let key = known.key.as_ref().filter(|_| known.record.opens(number));
        let Some((_, key)) = key else {
            if !known.record.is_forgotten(number) {
                tracing::error!(subject, number, "{LOST}");
            }
            *value = json!({ FORGOTTEN: true, OF: subject });
            return Ok(());
        };
        let text = value[SEALED].as_str().and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
        let text = text.ok_or_else(|| damaged("it is not base64url"))?;
        let plain = key.open(&self.place(&subject, number), &text);
        let plain = plain.map_err(|broken| damaged(broken.why()))?;
        let plain: Value = serde_json::from_slice(&plain).map_err(|_| damaged("it is not JSON"))?;
        *value = json!({ MARKED: plain, OF: subject });
        Ok(())
    }

    async fn mark(&self, subject: &str, text: &str) -> Result<String, VaultError> {
        let mut found = self.find(BTreeSet::from([subject]), false).await?;
        let known = self.with_key(subject, found.remove(subject)).await?;
        let (_, key) = known.key.as_ref().ok_or_else(|| wrong_key(subject))?;
        Ok(key.mark(text))
    }
}

/// The table knows nothing of the subject. It may be the wrong table, or one that is being restored, so its values are
/// not read as forgotten: a decision would write that into new events.
const NO_KEY: &str =
    "its subject is not in the table of keys: restore the table, or forget the subject";
/// The subject has a fence, or a newer key. So the table is in use, and the old key will not come back: the value is
/// read as forgotten, because decisions about the subject would fail for ever. Those who run the stack see this line.
const LOST: &str =
    "a value's key was lost by a restore of the table of keys; it is read as forgotten";

/// The subject of a marked or sealed value.
fn of(value: &Value) -> Result<&str, VaultError> {
    subject(value).ok_or_else(|| damaged("nobody", "it names no subject"))
}

/// The number of the key of a sealed value.
fn number(value: &Value) -> Result<u64, VaultError> {
    value[K].as_u64().ok_or_else(|| damaged(subject(value).unwrap_or("nobody"), "it names no key"))
}

fn damaged(subject: &str, why: &'static str) -> VaultError {
    VaultError::Damaged { subject: subject.to_owned(), why }
}

/// A log sees no depth and no number of a sealed value, so the vault refuses them.
fn unstorable(CodecError { path, problem }: CodecError) -> VaultError {
    VaultError::Unstorable { field: path, reason: problem.to_string() }
}

impl fmt::Debug for KeyVault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyVault({})", self.stack)
    }
}

impl Vault for KeyVault {
    fn seal<'a>(&'a self, payloads: Vec<&'a mut Value>) -> BoxFuture<'a, Result<(), VaultError>> {
        Box::pin(self.seal_all(payloads))
    }

    fn open<'a>(&'a self, payloads: Vec<&'a mut Value>) -> BoxFuture<'a, Result<(), VaultError>> {
        Box::pin(self.open_all(payloads))
    }

    fn fingerprint<'a>(
        &'a self,
        subject: &'a str,
        text: &'a str,
    ) -> BoxFuture<'a, Result<String, VaultError>> {
        Box::pin(self.mark(subject, text))
    }

    fn blind<'a>(&'a self, tags: &'a [Tag]) -> BoxFuture<'a, Result<Vec<Vec<String>>, VaultError>> {
        Box::pin(async move {
            let keys = self.stack_keys.blind(&self.table).await?;
            let under = |(number, key): (u32, Arc<SecretKey>)| {
                let value = |tag: &Tag| format!("b{number}.{}", key.blind(&tag.key, &tag.value));
                tags.iter().map(value).collect()
            };
            Ok(keys.into_iter().map(under).collect())
        })
    }

    fn dry(self: Arc<Self>) -> Arc<dyn Vault> {
        let (stack, wrap) = (self.stack.clone(), self.stack_keys.wrap.clone());
        Arc::new(Self::of(stack, self.table.dry(), wrap, self.clock.clone()))
    }
}

impl MeteredVault for KeyVault {
    fn on(&self, meter: &Meter) -> Arc<dyn Vault> {
        Arc::new(Self { table: self.table.on(meter), ..self.clone() })
    }
}
