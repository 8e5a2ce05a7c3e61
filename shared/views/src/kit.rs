//! Given/then for views: `given(events![…]).then::<Orders>([("o1", …)])`.

use std::{collections::BTreeMap, fmt::Debug};

use ringfence::{BoundaryId, FedEvent, NewEvent, kit::BEGIN_MS};

use crate::{Definition, View};

/// Facts, and when each became one.
#[derive(Debug)]
pub struct Given {
    events: Vec<(u64, NewEvent)>,
    now_ms: u64,
}

/// Starts a case with events, in the order of the index.
pub fn given(events: impl IntoIterator<Item = NewEvent>) -> Given {
    Given { events: Vec::new(), now_ms: BEGIN_MS }.and(events)
}

impl Given {
    /// Further events, now.
    #[must_use]
    pub fn and(mut self, events: impl IntoIterator<Item = NewEvent>) -> Self {
        self.events.extend(events.into_iter().map(|event| (self.now_ms, event)));
        self
    }

    /// Lets time pass before what follows, in milliseconds.
    #[must_use]
    pub fn wait(self, ms: u64) -> Self {
        Self { now_ms: self.now_ms + ms, ..self }
    }

    /// The view has exactly these rows; panics otherwise.
    #[track_caller]
    pub fn then<V: View<Row: Debug>>(self, rows: impl IntoIterator<Item = (&'static str, V::Row)>) {
        let view = Definition::of::<V>();
        let mut found = BTreeMap::new();
        for (n, (ms, event)) in self.events.into_iter().enumerate() {
            let event = sequenced(n, ms, event);
            for id in view.touch(&event).expect("the payload is its type's") {
                let row = view.evolve(found.remove(&id), &id, &event).expect("its own row");
                found.extend(row.map(|row| (id, row)));
            }
        }
        let expected = rows.into_iter().map(|(id, row)| {
            (id.to_owned(), serde_json::to_value(row).expect("rows are maps with text keys"))
        });
        assert_eq!(found, expected.collect());
    }
}

/// The event as the log would have stored it: number `n`, at `ms` since 1970.
///
/// # Panics
/// When `ms` lies behind the year 2286.
#[must_use]
pub fn sequenced(n: usize, ms: u64, event: NewEvent) -> FedEvent {
    let position = format!("{ms:013}-{n:08}");
    FedEvent {
        position: position.parse().expect("13 digits and a hyphen"),
        partition: BoundaryId::tagless(),
        event_type: event.event_type.to_owned(),
        context: "case".to_owned(),
        tags: event.tags,
        data: event.data,
        metadata: ringfence::Metadata::default(),
        recorded_at: ringfence_dynamo::rfc3339(ms),
    }
}
