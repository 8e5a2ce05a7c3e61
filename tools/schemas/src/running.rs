//! Runs every reader of the stack on every sample of every version.
//!
//! A comparison of shapes shows the values that a reader may get. Only a run shows whether the reader can read them: it
//! has its own fields, and its own code for them.

use std::collections::BTreeMap;
use std::slice;

use ringfence_core::kit::BEGIN_MS;
use ringfence_core::{
    BoundaryId, Catalog, CurrentError, EventSchema, LogKind, Metadata, SequencedEvent, Tag, Upcasts,
};
use ringfence_stack::Stack;
use serde_json::Value;

use crate::finding::Finding;
use crate::variations::{Variation, seal, variations};
use crate::{LockedType, LockedVersion, Readers, Shape, Unreadable, words, written_words};

/// Ids for the streams of samples, because payloads lack them. Any type of ids takes one of these.
const IDS: [&str; 3] = ["sample", "1", "00000000-0000-4000-8000-000000000000"];

/// The samples of a type of events, and their readers.
pub(crate) struct Samples<'a> {
    stack: &'a Stack,
    readers: &'a Readers,
    context: &'static str,
    log: LogKind,
    schema: &'a EventSchema,
    of: &'a LockedType,
}

impl<'a> Samples<'a> {
    /// The samples of a type; `None` if the context does not declare it.
    pub(crate) fn of(
        stack: &'a Stack,
        readers: &'a Readers,
        context: &str,
        name: &str,
        of: &'a LockedType,
    ) -> Option<Self> {
        let context = stack.context(context)?;
        let declares = |catalog: &&Catalog| catalog.context(name) == Some(context.name);
        let schema = stack.catalogs.0.iter().find(declares)?.schema(name)?;
        Some(Self { stack, readers, context: context.name, log: context.log, schema, of })
    }

    /// The faults of the samples and of payloads like them. Readers run only if shapes and upcasts have no fault.
    pub(crate) fn check(&self) -> Vec<Finding> {
        let versions = || self.of.versions.iter();
        let mut found: Vec<_> = versions().filter_map(|one| self.shape(one)).collect();
        found.extend(versions().filter_map(|one| self.upcast(one)));
        found.extend(self.downcast());
        if found.is_empty() { self.unread() } else { found }
    }

    /// Checks that samples have the shape of their version.
    fn shape(&self, (number, version): (&u32, &LockedVersion)) -> Option<Finding> {
        let wrong = |(sample, data)| Some((sample, version.shape.admits(data).err()?));
        let (sample, why) = (1..).zip(&version.samples).find_map(wrong)?;
        Some(words::sample_wrong(self.context, (&self.schema.name, *number), sample, &why))
    }

    /// Checks that the upcast of a version makes payloads of exactly the next version, and equal results for equal
    /// samples.
    fn upcast(&self, (number, version): (&u32, &LockedVersion)) -> Option<Finding> {
        let (upcasts, next) = (self.schema.upcasts.0, self.of.versions.get(&(number + 1))?);
        // A catalog that ends with the next version.
        let upcasts = Upcasts(upcasts.get(..*number as usize)?);
        let schema = EventSchema { upcasts, ..self.schema.clone() };
        let catalog = Catalog::new(self.context, [schema]).ok()?;
        let upcast = |data: &Value| {
            let current = catalog.current(self.event(*number, data.clone(), IDS[0]));
            match current {
                Ok(event) => Ok(event.into_event().data),
                Err(CurrentError::Upcast { source, .. }) => Err(source.why.to_string()),
                Err(CurrentError::Newer(error)) => Err(error.to_string()),
            }
        };
        each(version).find_map(|(sample, Variation { how, data })| {
            let why = match (upcast(&data), upcast(&data)) {
                (Err(why), _) => why,
                (made, again) if made != again => "it makes something else each time".to_owned(),
                (Ok(made), _) => next.shape.admits(&made).err()?.to_string(),
            };
            let sample = format!("{sample}{how}");
            Some(written_words::upcast_wrong(
                self.context,
                (&self.schema.name, *number),
                &sample,
                &why,
            ))
        })
    }

    /// Checks that the older version that is still written can hold each payload of the newest one, and that its own
    /// payloads keep their meaning.
    fn downcast(&self) -> Option<Finding> {
        let (number, newest) = (self.schema.write?.number, self.schema.upcasts.version());
        let (older, of_newest) = (self.of.versions.get(&number)?, self.of.versions.get(&newest)?);
        let is_known = |field: &str| match &older.shape {
            Shape::Object(members) => members.contains_key(field),
            _ => true,
        };
        let lost = each(of_newest).find_map(|(sample, Variation { how, mut data })| {
            seal(&of_newest.shape, &mut data);
            let why = match self.schema.stored(data) {
                Err(error) => error.why,
                // As for every change, readers of the base read only samples.
                Ok((_, data)) if how.is_empty() => older.shape.reads(&data).err()?.to_string(),
                Ok(_) => return None,
            };
            Some((newest, format!("{sample}{how}"), why))
        });
        let changed = || {
            each(older).find_map(|(sample, Variation { how, data })| {
                let why = self.schema.check_downcast(&data, is_known).err()?.why;
                Some((number, format!("{sample}{how}"), why))
            })
        };
        let (of, sample, why) = lost.or_else(changed)?;
        Some(written_words::downcast_wrong(
            self.context,
            (&self.schema.name, of, number),
            &sample,
            &why,
        ))
    }

    /// The readers that can't read a sample.
    fn unread(&self) -> Vec<Finding> {
        let mut unread: BTreeMap<_, (String, String, usize)> = BTreeMap::new();
        let newest = self.schema.upcasts.version();
        for (number, version) in self.of.versions.range(..=newest) {
            for (sample, Variation { how, data }) in each(version) {
                for of in self.unreadable(*number, &data) {
                    let why = of.to_string();
                    let first = || (format!("{sample}{how}"), why.clone(), 0);
                    // One line for each field that a reader can't read.
                    let what = of.field.unwrap_or_else(|| why.clone());
                    let by = (of.reader, of.audience, *number, what);
                    unread.entry(by).or_insert_with(first).2 += 1;
                }
            }
        }
        let mut found = Vec::new();
        for ((reader, audience, number, _), (mut sample, why, count)) in unread {
            if count > 1 {
                sample += &format!(", and {} more", count - 1);
            }
            let version = (&*self.schema.name, number);
            found.push(words::unread(self.context, version, (reader, audience), &sample, &why));
        }
        found
    }

    fn unreadable(&self, number: u32, data: &Value) -> Vec<Unreadable> {
        let unreadable = |id| {
            let event = self.event(number, data.clone(), id);
            self.readers.unreadable(&self.stack.catalogs, &event)
        };
        let mut fewest = unreadable(IDS[0]);
        // On a log of streams, a reader may refuse only the made-up id.
        if self.log != LogKind::Dcb && !fewest.is_empty() {
            let others = IDS[1..].iter().map(|id| unreadable(id));
            fewest = others.chain([fewest]).min_by_key(Vec::len).unwrap_or_default();
        }
        fewest
    }

    /// An event with this payload, as it is stored.
    fn event(&self, version: u32, data: Value, id: &str) -> SequencedEvent {
        let tags: Vec<Tag> = self.of.tags.iter().flat_map(|tag| tags(&tag.key, &data)).collect();
        SequencedEvent {
            partition: partition(self.log, id),
            slot: 1,
            at: BEGIN_MS,
            rest: 0,
            event_type: self.schema.name.to_string(),
            context: self.context.to_owned(),
            tags,
            version,
            data,
            metadata: Metadata::default(),
        }
    }
}

/// A partition on a log.
pub(crate) fn partition(log: LogKind, id: &str) -> BoundaryId {
    match log {
        LogKind::Dcb => BoundaryId::tag("sample", id),
        LogKind::Aggregates => BoundaryId::stored(format!("sample#{id}")),
        LogKind::Documents => BoundaryId::stored(format!("Sample-{id}")),
    }
}

/// The samples of a version by their numbers, and payloads like them.
fn each(version: &LockedVersion) -> impl Iterator<Item = (usize, Variation)> {
    (1..).zip(&version.samples).flat_map(|(number, sample)| {
        variations(&version.shape, sample).into_iter().map(move |one| (number, one))
    })
}

/// The tags of a payload that are its fields.
fn tags(key: &str, data: &Value) -> Vec<Tag> {
    let values = match &data[key] {
        Value::Array(values) => &values[..],
        value => slice::from_ref(value),
    };
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    values.iter().filter_map(text).map(|value| Tag::new(key.to_owned(), value)).collect()
}
