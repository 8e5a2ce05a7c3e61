//! Given/then for views: `given(events![…]).then::<Orders>([("o1", …)])`.

use std::fmt::Debug;

use ringfence_core::kit::{BEGIN_MS, assert_same, catalog, fail};
use ringfence_core::personal::show;
use ringfence_core::{
    BoundaryId, Catalogs, Context, LogKind, LogName, Metadata, NewEvent, Principal, SequencedEvent,
    escape,
};
use serde_json::Value;

use crate::{Definition, View, fold};

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

    /// Further events of the stream with this id of the context `C`, now. Their payloads are as the log stores them: without
    /// the field that names the stream. Panics if the context has no streams.
    #[must_use]
    #[track_caller]
    pub fn of_stream<C: Context>(
        self,
        id: &str,
        events: impl IntoIterator<Item = NewEvent>,
    ) -> Self {
        let name = match C::Log::KIND {
            LogKind::Dcb => panic!("{} is on the DCB log, which has no streams: use and", C::NAME),
            LogKind::Aggregates => format!("{}#{id}", C::NAME),
            LogKind::Documents => format!("{}-{id}", C::NAME),
        };
        let catalog = catalog::<C>();
        let stored = events.into_iter().map(|mut event| {
            if let Some(schema) = catalog.schema(&event.event_type) {
                schema.leave_out_id(id, &mut event.data);
            }
            event
        });
        self.stored(&name, stored)
    }

    /// Further events of a stream, now, with payloads as they are stored: of an aggregate `<context>#<id>`, or of a
    /// document `<context>-<id>`.
    #[must_use]
    #[track_caller]
    pub fn stored(mut self, name: &str, events: impl IntoIterator<Item = NewEvent>) -> Self {
        let (kind, partition, of) = match (name.split_once('#'), name.split_once('-')) {
            (Some((context, _)), _) => (LogKind::Aggregates, name.to_owned(), context),
            (None, Some((context, _))) => (LogKind::Documents, escape(name), context),
            (None, None) => panic!("{name:?} is neither <context>#<id> nor <context>-<id>"),
        };
        let partition = BoundaryId::stored(partition);
        for event in events {
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

    /// The view has exactly these rows, with personal values as a page shows them; panics otherwise.
    #[track_caller]
    pub fn then<V: View<Row: Debug>>(self, rows: impl IntoIterator<Item = (&'static str, V::Row)>) {
        let expected = rows.into_iter().map(|(id, row)| {
            (id.to_owned(), serde_json::to_value(row).expect("rows are maps with text keys"))
        });
        let [expected, found] = [expected.collect(), self.rows::<V>()].map(|mut rows| {
            show(&mut rows);
            rows
        });
        assert_same(format!("the rows of {}", V::NAME), &expected, &found);
    }

    /// This principal sees exactly the rows of the view with these ids; panics otherwise. The text of a principal,
    /// `"jwt:main:ada"`, has no scopes; [`Principal::with_scopes`] adds those that the view's rule looks at.
    #[track_caller]
    pub fn then_visible<V: View>(
        self,
        principal: impl Into<Principal>,
        ids: impl IntoIterator<Item = &'static str>,
    ) {
        let (view, principal) = (Definition::of::<V>(), principal.into());
        let rows = self.rows::<V>();
        let rows = rows.as_object().expect("an object").iter();
        let visible = rows.filter(|(id, row)| view.sees(&principal, id, Some(row)));
        let found = Value::from_iter(visible.map(|(id, _)| id.as_str()));
        let what = format!("the rows of {} that {principal} sees", V::NAME);
        assert_same(what, &Value::from_iter(ids), &found);
    }

    /// The rows of the view, by id.
    #[track_caller]
    fn rows<V: View>(self) -> Value {
        let mut found = Value::Object(Default::default());
        // A fact has the newest shape of its type, so no catalog is needed.
        let catalogs = Catalogs::default();
        for event in self.events {
            // A row is read back before each event, as a stored one is.
            let mut rows = serde_json::from_value(found).expect("rows can be read back");
            let event = catalogs.current(event).unwrap_or_else(|error| fail(V::NAME, error));
            fold::<V>(&mut rows, &event).unwrap_or_else(|error| fail(V::NAME, error));
            found = serde_json::to_value(rows).expect("rows are maps with text keys");
        }
        found
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
        version: 1,
        data: event.data,
        metadata: Metadata::default(),
    }
}

#[cfg(test)]
mod tests {
    use ringfence_core::{Event as _, prelude::*};
    use serde_json::json;

    use super::GivenEvents;

    struct Carts;

    impl Context for Carts {
        const NAME: &'static str = "carts";
        type Log = ringfence_aggregate_log::Aggregates;

        fn catalog() -> Result<Catalog, CatalogError> {
            Catalog::of_streams(Self::NAME, [ItemAdded::SCHEMA, CheckedOut::SCHEMA])
        }
    }

    #[derive(Clone, Debug, PartialEq, Event)]
    struct ItemAdded {
        #[tag(partition)]
        cart_id: String,
        quantity: u32,
    }

    /// Its readers need the cart's id.
    #[derive(Clone, Debug, PartialEq, Event)]
    #[tag(partition, key = "cartId", value = cart_id)]
    struct CheckedOut {
        #[tag(skip)]
        cart_id: String,
    }

    #[test]
    fn a_payload_of_a_stream_lacks_the_field_that_names_it_as_in_the_log() {
        let cart_id = || "a".to_owned();
        let events = events![
            ItemAdded { cart_id: cart_id(), quantity: 2 },
            CheckedOut { cart_id: cart_id() }
        ];
        let GivenEvents { events, .. } = super::given([]).of_stream::<Carts>("a", events);
        let found: Vec<_> = events.iter().map(|event| (event.id(), event.data.clone())).collect();
        let expected = [
            ("carts#a/1".to_owned(), json!({ "quantity": 2 })),
            ("carts#a/2".to_owned(), json!({ "cartId": "a" })),
        ];
        assert_eq!(found, expected);
    }
}
