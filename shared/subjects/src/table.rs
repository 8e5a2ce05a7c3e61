//! The requests to the table of keys.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::Client;
use ringfence_aws::{
    ATTEMPTS_MAX, Clock, Failure, GaveUp, Item, Meter, Retry, Table, item_bytes, write_units,
};
use ringfence_core::{KEPT_OPEN_MS, StoreError, rfc3339};

use crate::item::{
    WrongItem, key, put, stack_item, stack_record_of, subject_item, subject_key, subject_of,
};
use crate::record::{Fence, Record};
use crate::rotation::StackRecord;

/// The most bytes of the reason for which a subject is forgotten.
pub const WHY_BYTES_MAX: usize = 1_024;

/// Functions can read values for so long after a fence was put, in milliseconds. Half a minute is for a put that was
/// sent again, and for reads that lag behind it.
pub const READABLE_MS: u64 = 2 * KEPT_OPEN_MS + 30_000;

const STANDINGS_TOGETHER: usize = 1_000;
const READING: &str = "reading the table of keys";
const WRITING: &str = "writing the table of keys";

/// The table of keys.
#[derive(Clone, Debug)]
pub struct KeyTable {
    table: Table,
    clock: Clock,
    is_dry: bool,
}

/// What the table knows about a subject.
#[derive(Clone, Debug)]
pub struct Standing(Record);

impl Standing {
    /// The fence, if the subject was forgotten.
    #[must_use]
    pub fn fence(&self) -> Option<&Fence> {
        self.0.fence.as_ref()
    }

    /// Whether there is a key, so that new values can be sealed.
    #[must_use]
    pub fn has_key(&self) -> bool {
        self.0.key.is_some()
    }

    /// Whether the key of this number is missing although nobody has destroyed it: a restore has lost it.
    #[must_use]
    pub fn has_lost(&self, number: u64) -> bool {
        !self.0.opens(number) && !self.0.is_forgotten(number)
    }
}

/// A subject can't be forgotten, or made known again.
#[derive(Debug, thiserror::Error)]
pub enum ForgetError {
    /// The reason is missing or too long.
    #[error(
        "`why` has {0} bytes; give a reason of 1 to {WHY_BYTES_MAX} bytes, without personal data"
    )]
    Why(usize),
    /// There is no fence above which a key could be made.
    #[error("the subject {0} is not forgotten, so there is nothing to allow")]
    NotForgotten(String),
    /// A function may still have the destroyed key, and what it seals with it is lost.
    #[error("functions may still seal values of {0} with the old key, so they would be lost; allow it from {from} on", from = rfc3339(*.1))]
    TooEarly(String, u64),
    /// The table can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl KeyTable {
    /// The table of this name. The client's own retries must be off.
    #[must_use]
    pub fn new(client: Client, name: impl Into<String>, clock: Clock) -> Self {
        Self { table: Table::new(client, name, &clock), clock, is_dry: false }
    }

    /// The cost of the requests so far.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        self.table.meter()
    }

    /// The same table, whose requests count on another meter.
    pub(crate) fn on(&self, meter: &Meter) -> Self {
        Self { table: self.table.on(meter), ..self.clone() }
    }

    /// The same table for a dry run: nothing is written.
    pub(crate) fn dry(&self) -> Self {
        Self { is_dry: true, ..self.clone() }
    }

    /// Replaces the keys of a subject by a fence. `at_ms` is the time of the event `SubjectForgotten`, which is in the
    /// log already. So a second call changes nothing, and a restored table gets the fence again. It needs no key.
    ///
    /// # Errors
    /// The reason has the wrong length, or the table can't be written.
    pub async fn forget(&self, subject: &str, at_ms: u64, why: &str) -> Result<Fence, ForgetError> {
        if !(1..=WHY_BYTES_MAX).contains(&why.len()) {
            return Err(ForgetError::Why(why.len()));
        }
        let now_ms = self.clock.now_ms();
        let forget = |found: Option<&Record>| Record::forgotten(found, at_ms, now_ms, why);
        let record = self.change(subject, forget).await?;
        Ok(record.and_then(|record| record.fence).expect("a forgotten subject has a fence"))
    }

    /// Lets a writer make a new key for a forgotten subject. Its old values stay forgotten.
    ///
    /// # Errors
    /// The subject is not forgotten, or was just now, or the table can't be written.
    pub async fn allow_again(&self, subject: &str) -> Result<(), ForgetError> {
        let now_ms = self.clock.now_ms();
        let from_ms = |fence: &Fence| fence.put_at_ms.saturating_add(READABLE_MS);
        let again = |found: Option<&Record>| {
            let is_early =
                found.and_then(|it| it.fence.as_ref()).is_some_and(|it| now_ms < from_ms(it));
            if is_early { None } else { Record::again(found) }
        };
        match self.change(subject, again).await? {
            Some(Record { key: None, fence: Some(fence) }) if !fence.again => {
                Err(ForgetError::TooEarly(subject.to_owned(), from_ms(&fence)))
            }
            Some(Record { fence: Some(_), .. }) => Ok(()),
            _ => Err(ForgetError::NotForgotten(subject.to_owned())),
        }
    }

    /// What the table knows about some subjects. Of new ones there is nothing.
    ///
    /// # Errors
    /// The table can't be read.
    pub async fn standings(
        &self,
        subjects: &BTreeSet<&str>,
    ) -> Result<BTreeMap<String, Standing>, StoreError> {
        let (all, mut standings) = (Vec::from_iter(subjects.iter().copied()), BTreeMap::new());
        // So only so many items are in memory at once.
        for some in all.chunks(STANDINGS_TOGETHER) {
            let found = self.records(&some.iter().copied().collect(), true).await?.into_iter();
            standings.extend(found.map(|(subject, record)| (subject, Standing(record))));
        }
        Ok(standings)
    }

    /// The records of some subjects. Of new ones there is none.
    pub(crate) async fn records(
        &self,
        subjects: &BTreeSet<&str>,
        strong: bool,
    ) -> Result<BTreeMap<String, Record>, StoreError> {
        let keys = subjects.iter().map(|subject| subject_key(subject)).collect();
        let items = self.table.get_all(Retry::default(), keys, strong).await;
        let items = items.map_err(|error| error.during(READING))?;
        items.iter().map(|item| subject_of(item).map_err(wrong)).collect()
    }

    /// Writes a subject that was read as `found`. Returns what is in the table then, which another writer may have put.
    pub(crate) async fn put(
        &self,
        subject: &str,
        found: Option<&Record>,
        record: Record,
    ) -> Result<Option<Record>, StoreError> {
        let read = found.map(|found| subject_item(subject, found));
        match self.write(subject_item(subject, &record), read.as_ref()).await? {
            Written::Ours => Ok(Some(record)),
            Written::Other(item) => {
                let other = item.map(|item| subject_of(&item).map_err(wrong)).transpose()?;
                Ok(other.map(|(_, record)| record))
            }
        }
    }

    async fn change(
        &self,
        subject: &str,
        change: impl Fn(Option<&Record>) -> Option<Record>,
    ) -> Result<Option<Record>, StoreError> {
        let mut found = self.records(&BTreeSet::from([subject]), true).await?.remove(subject);
        for _ in 0..ATTEMPTS_MAX {
            let Some(changed) = change(found.as_ref()) else { return Ok(found) };
            let there = self.put(subject, found.as_ref(), changed.clone()).await?;
            if there.as_ref() == Some(&changed) {
                return Ok(there);
            }
            found = there;
        }
        Err(StoreError::Contention { attempts: ATTEMPTS_MAX, over: None })
    }

    /// The keys of the stack of this name.
    pub(crate) async fn stack_record(&self, name: &str) -> Result<StackRecord, StoreError> {
        let item = Retry::default().run(|| self.table.get(key(name), true)).await;
        match item.map_err(|error| error.during(READING))? {
            Some(item) => Ok(stack_record_of(&item).map_err(wrong)?),
            None => Ok(StackRecord::default()),
        }
    }

    /// Writes the keys of the stack that were read as `found`. Returns those that are in the table then.
    pub(crate) async fn put_stack_record(
        &self,
        name: &str,
        found: &StackRecord,
        record: StackRecord,
    ) -> Result<StackRecord, StoreError> {
        let read = (!found.0.is_empty()).then(|| stack_item(name, found));
        match self.write(stack_item(name, &record), read.as_ref()).await? {
            Written::Ours => Ok(record),
            Written::Other(item) => Ok(stack_record_of(&item.unwrap_or_default()).map_err(wrong)?),
        }
    }

    /// A refusal after a lost answer can be about our own item, which the failure has.
    async fn write(&self, item: Item, read: Option<&Item>) -> Result<Written, StoreError> {
        if self.is_dry {
            self.meter().planned(write_units(item_bytes(&item)));
            return Ok(Written::Ours);
        }
        let put = put(self.table.name(), item, read);
        match Retry::default().run(|| self.table.put(put.clone())).await {
            Ok(()) => Ok(Written::Ours),
            Err(GaveUp { failure: Failure::Condition(other), .. }) => Ok(Written::Other(other)),
            Err(error) => Err(error.writing(WRITING)),
        }
    }
}

enum Written {
    Ours,
    /// What is in its place.
    Other(Option<Item>),
}

fn wrong(error: WrongItem) -> StoreError {
    StoreError::Failed { operation: READING, source: error.into() }
}
