//! The vault: seals and opens personal values with the keys of their subjects.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use futures::future::BoxFuture;
use ringfence_aws::{ATTEMPTS_MAX, Clock};
use ringfence_core::personal::{FORGOTTEN, Form, MARKED, OF, SEALED, subject, values};
use ringfence_core::{KEPT_OPEN_MS, StoreError, Tag, Vault, VaultError, storable};
use serde_json::{Value, json};

use crate::cache::Cache;
use crate::crypto::SecretKey;
use crate::record::{Opening, Record, Sealing};
use crate::stack_keys::StackKeys;
use crate::wrap::wrong_key;
use crate::{KeyTable, Wrap};

/// The field with the number of the key, in a sealed value.
const K: &str = "k";
/// This many subjects are kept at most: some hundred bytes each.
const SUBJECTS_MAX: usize = 10_000;

/// Keeps the keys of subjects in a table, and seals and opens values with them.
pub struct KeyVault {
    /// Values open in no other stack.
    stack: String,
    table: KeyTable,
    clock: Clock,
    subjects: Cache<Known>,
    stack_keys: StackKeys,
}

/// A subject with its keys.
struct Known {
    record: Record,
    keys: BTreeMap<u32, SecretKey>,
}

type Found = BTreeMap<String, Arc<Known>>;

impl KeyVault {
    /// The vault of the stack of this name.
    #[must_use]
    pub fn new(stack: impl Into<String>, table: KeyTable, wrap: Wrap, clock: Clock) -> Self {
        Self::of(stack.into(), table, Arc::new(wrap), clock)
    }

    fn of(stack: String, table: KeyTable, wrap: Arc<Wrap>, clock: Clock) -> Self {
        let subjects = Cache::new(SUBJECTS_MAX, KEPT_OPEN_MS, clock.clone());
        let stack_keys = StackKeys::new(stack.clone(), table.clone(), wrap, clock.clone());
        Self { stack, table, clock, subjects, stack_keys }
    }

    /// Makes a new branch key. It wraps the keys that are made from then on; functions know it ten minutes later.
    ///
    /// # Errors
    /// The table or KMS fails.
    pub async fn rotate(&self) -> Result<(), StoreError> {
        self.stack_keys.rotate().await
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

    /// Unwraps the keys of a subject, and keeps them.
    async fn known(
        &self,
        subject: &str,
        record: Record,
        asked_ms: u64,
    ) -> Result<Arc<Known>, StoreError> {
        let mut keys = BTreeMap::new();
        for (number, wrapped) in record.keys.iter().flat_map(|keys| &keys.wrapped) {
            keys.insert(*number, self.unwrapped(subject, *number, wrapped).await?);
        }
        let known = Arc::new(Known { record, keys });
        self.subjects.put(subject, asked_ms, known.clone());
        Ok(known)
    }

    /// The number of the branch key is in front of a key that it has wrapped.
    async fn unwrapped(
        &self,
        subject: &str,
        number: u32,
        wrapped: &[u8],
    ) -> Result<SecretKey, StoreError> {
        let wrong = || wrong_key(&format!("subject#{subject}"));
        let (branch, wrapped) = wrapped.split_first_chunk().ok_or_else(wrong)?;
        let branch = u32::from_be_bytes(*branch);
        let (_, key) = &*self.stack_keys.branch(branch).await?;
        let key = key.open(&self.place(subject, number, Some(branch)), wrapped);
        key.ok().and_then(|key| SecretKey::of(&key)).ok_or_else(wrong)
    }

    async fn wrapped(&self, subject: &str, number: u32) -> Result<Vec<u8>, StoreError> {
        let (branch, key) = &*self.stack_keys.newest_branch().await?;
        let place = self.place(subject, number, Some(*branch));
        let wrapped = key.seal(&place, SecretKey::random().bytes());
        Ok([&branch.to_be_bytes(), &*wrapped].concat())
    }

    /// Where a text opens: of a value, or of a key that a branch key has wrapped.
    fn place(&self, subject: &str, number: u32, branch: Option<u32>) -> Vec<String> {
        let numbers = [Some(number), branch].into_iter().flatten();
        let texts = [self.stack.clone(), subject.to_owned()].into_iter();
        texts.chain(numbers.map(|number| number.to_string())).collect()
    }

    /// A subject with a key that seals, and the key's number. A new subject gets a key. If another writer was first, its
    /// key counts.
    async fn sealing(
        &self,
        subject: &str,
        mut known: Option<Arc<Known>>,
    ) -> Result<(u32, Arc<Known>), VaultError> {
        for _ in 0..ATTEMPTS_MAX {
            let found = known.as_ref().map(|known| &known.record);
            let number = match (Record::sealing(found), &known) {
                (Sealing::With(number), Some(known)) => return Ok((number, known.clone())),
                (Sealing::WithNew(number), _) => number,
                _ => return Err(VaultError::Forgotten(subject.to_owned())),
            };
            let asked_ms = self.clock.now_ms();
            let wrapped = self.wrapped(subject, number).await?;
            let record = Record::with_key(found, number, wrapped, asked_ms);
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
            let (number, known) = self.sealing(&subject, found.get(&subject).cloned()).await?;
            let key = known.keys.get(&number).ok_or_else(|| wrong_key(&subject))?;
            let sealed = self.seal_one(key, &subject, number, &value[MARKED])?;
            *value = json!({ SEALED: sealed, OF: subject, K: number });
            found.insert(subject, known);
        }
        Ok(())
    }

    /// A log sees no depth and no number in a sealed text, so they are checked here.
    fn seal_one(
        &self,
        key: &SecretKey,
        subject: &str,
        number: u32,
        value: &Value,
    ) -> Result<String, StoreError> {
        storable::check(MARKED, value).map_err(|error| StoreError::Failed {
            operation: "sealing a value",
            source: error.into(),
        })?;
        let sealed = key.seal(&self.place(subject, number, None), value.to_string().as_bytes());
        Ok(URL_SAFE_NO_PAD.encode(sealed))
    }

    async fn open_all(&self, payloads: Vec<&mut Value>) -> Result<(), VaultError> {
        let sealed: Vec<_> =
            payloads.into_iter().flat_map(|payload| values(payload, Form::Sealed)).collect();
        let named = sealed.iter().map(|value| Ok((of(value)?, number(value)?)));
        let named: BTreeSet<(&str, u32)> = named.collect::<Result<_, VaultError>>()?;
        let mut found =
            self.find(named.iter().map(|(subject, _)| *subject).collect(), false).await?;
        // What is kept, or was read without consistency, may be older than the value.
        let is_missing = |(subject, number): &&(&str, u32)| {
            Record::opening(found.get(*subject).map(|known| &known.record), *number)
                == Opening::Missing
        };
        let missing: BTreeSet<_> =
            named.iter().filter(is_missing).map(|(subject, _)| *subject).collect();
        if !missing.is_empty() {
            found.append(&mut self.find(missing, true).await?);
        }
        sealed.into_iter().try_for_each(|value| self.open_one(value, &found))
    }

    fn open_one(&self, value: &mut Value, found: &Found) -> Result<(), VaultError> {
        let (subject, number) = (of(value)?.to_owned(), number(value)?);
        let known = found.get(&subject);
        let damaged = |why| VaultError::Damaged { subject: subject.clone(), why };
        *value = match Record::opening(known.map(|known| &known.record), number) {
            Opening::Forgotten => json!({ FORGOTTEN: true, OF: subject }),
            Opening::Missing => {
                return Err(damaged(
                    "its key is not in the table of keys, which an older copy has replaced",
                ));
            }
            Opening::Known => {
                let key = known.and_then(|known| known.keys.get(&number));
                let key = key.ok_or_else(|| damaged("its key is missing"))?;
                let text = value[SEALED].as_str().map(|text| URL_SAFE_NO_PAD.decode(text));
                let text =
                    text.and_then(Result::ok).ok_or_else(|| damaged("it is not base64url"))?;
                let plain = key.open(&self.place(&subject, number, None), &text);
                let plain = plain.map_err(|broken| damaged(broken.why()))?;
                let plain: Value =
                    serde_json::from_slice(&plain).map_err(|_| damaged("it is not JSON"))?;
                json!({ MARKED: plain, OF: subject })
            }
        };
        Ok(())
    }

    async fn mark(&self, subject: &str, text: &str) -> Result<String, VaultError> {
        let mut found = self.find(BTreeSet::from([subject]), false).await?;
        let (number, known) = self.sealing(subject, found.remove(subject)).await?;
        let key = known.keys.get(&number).ok_or_else(|| wrong_key(subject))?;
        Ok(key.mark(text))
    }
}

/// The subject of a marked or sealed value.
fn of(value: &Value) -> Result<&str, VaultError> {
    let damaged = || VaultError::Damaged { subject: String::new(), why: "it names no subject" };
    subject(value).ok_or_else(damaged)
}

/// The number of the key of a sealed value.
fn number(value: &Value) -> Result<u32, VaultError> {
    let number = value[K].as_u64().and_then(|number| number.try_into().ok());
    let damaged =
        |subject: &str| VaultError::Damaged { subject: subject.to_owned(), why: "it names no key" };
    number.ok_or_else(|| damaged(subject(value).unwrap_or_default()))
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

    fn blind<'a>(&'a self, tags: Vec<&'a mut Tag>) -> BoxFuture<'a, Result<(), VaultError>> {
        Box::pin(async move {
            let (number, key) = &*self.stack_keys.blind().await?;
            for tag in tags {
                tag.value = format!("b{number}.{}", key.blind(&tag.key, &tag.value));
            }
            Ok(())
        })
    }

    fn dry(self: Arc<Self>) -> Arc<dyn Vault> {
        let (stack, wrap) = (self.stack.clone(), self.stack_keys.wrap.clone());
        Arc::new(Self::of(stack, self.table.dry(), wrap, self.clock.clone()))
    }
}
