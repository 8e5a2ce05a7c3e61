//! Given/then for views: `given(events![…]).then::<Orders>([("o1", …)])`.

use std::fmt::Debug;

use ringfence::kit::{BEGIN_MS, assert_same, fail};
use ringfence::{BoundaryId, LogKind, Metadata, NewEvent, SequencedEvent, escape};
use serde_json::Value;

use crate::{View, fold};

/// Facts, in the order of the index.
#[derive(Debug)]
pub struct GivenEvents {
    events: Vec<SequencedEvent>,
    now_ms: u64,
}

/// Starts a case with events, in the order of the index.
pub fn given(events: impl IntoIterator<Item = NewEvent>) -> GivenEvents {
    GivenEvents { events: Vec::new(), now_ms: BEGIN_MS }.and(events)
}

impl GivenEvents {
    /// Further events, now.
    #[must_use]
    pub fn and(mut self, events: impl IntoIterator<Item = NewEvent>) -> Self {
        for event in events {
            self.events.push(sequenced(self.events.len(), self.now_ms, event));
        }
        self
    }

    /// Further events of a stream, now: of an aggregate `<context>#<id>`, or of a document `<context>-<id>`. As in the
    /// tables, a payload does not repeat the field that names the stream.
    #[must_use]
    #[track_caller]
    pub fn of_stream(mut self, name: &str, events: impl IntoIterator<Item = NewEvent>) -> Self {
        let (kind, partition, of) = match (name.split_once('#'), name.split_once('-')) {
            (Some((context, _)), _) => (LogKind::Aggregates, name.to_owned(), context),
            (None, Some((context, _))) => (LogKind::Documents, escape(name), context),
            (None, None) => panic!("{name:?} is neither <context>#<id> nor <context>-<id>"),
        };
        let partition = BoundaryId::stored(partition);
        for mut event in events {
            if let (Value::Object(fields), [tag]) = (&mut event.data, &event.tags[..]) {
                fields.remove(&*tag.key);
            }
            let before = self.events.iter().filter(|event| event.partition == partition).count();
            self.events.push(SequencedEvent {
                partition: partition.clone(),
                slot: kind.first_slot() + before as u64,
                context: of.to_owned(),
                tags: Vec::new(),
                ..sequenced(before, self.now_ms, event)
            });
        }
        self
    }

    /// Lets this many milliseconds pass before what follows.
    #[must_use]
    pub fn wait(self, ms: u64) -> Self {
        Self { now_ms: self.now_ms + ms, ..self }
    }

    /// The view has exactly these rows; panics otherwise.
    #[track_caller]
    pub fn then<V: View<Row: Debug>>(self, rows: impl IntoIterator<Item = (&'static str, V::Row)>) {
        let mut found = Value::Object(Default::default());
        for event in self.events {
            // A row is read back before each event, as a stored one is.
            let mut rows = serde_json::from_value(found).expect("rows can be read back");
            fold::<V>(&mut rows, &event).unwrap_or_else(|error| fail(V::NAME, error));
            found = serde_json::to_value(rows).expect("rows are maps with text keys");
        }
        let expected = rows.into_iter().map(|(id, row)| {
            (id.to_owned(), serde_json::to_value(row).expect("rows are maps with text keys"))
        });
        assert_same(format!("the rows of {}", V::NAME), &expected.collect::<Value>(), &found);
    }
}

/// The event as the log would have stored it: number `n`, from 0, at `ms` since 1970.
#[must_use]
pub fn sequenced(n: usize, ms: u64, event: NewEvent) -> SequencedEvent {
    SequencedEvent {
        partition: BoundaryId::tagless(),
        slot: n as u64 + 1,
        at: ms,
        rest: 0,
        event_type: event.event_type.into_owned(),
        context: "case".to_owned(),
        tags: event.tags,
        data: event.data,
        metadata: Metadata::default(),
    }
}
