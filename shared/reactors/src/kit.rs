//! Cases of a reactor: an event, and the effects that it plans.
//! `when(OrderPaid { … }).then([Mail { … }])`, or `.then_nothing()`.

use std::panic::Location;

use ringfence_core::kit::{BEGIN_MS, assert_same, fail};
use ringfence_core::{
    BoundaryId, Catalogs, Context, LogKind, LogName, Metadata, NewEvent, Reads, SequencedEvent,
};

pub use crate::case::ReactorCase;

use crate::Reactor;

/// An event of a case; its effects follow.
pub struct WhenEvent(SequencedEvent);

/// The event under test.
#[must_use]
pub fn when(event: impl Into<NewEvent>) -> WhenEvent {
    let event: NewEvent = event.into();
    WhenEvent(SequencedEvent {
        partition: BoundaryId::composite(&event.tags),
        slot: 1,
        at: BEGIN_MS,
        rest: 0,
        event_type: event.event_type.into_owned(),
        context: String::new(),
        tags: event.tags,
        version: 1,
        data: event.data,
        metadata: Metadata::default(),
    })
}

impl WhenEvent {
    /// It has exactly these effects, in this order.
    #[must_use]
    #[track_caller]
    pub fn then<E>(self, effects: impl IntoIterator<Item = E>) -> ReactorCase<E> {
        let then = effects.into_iter().collect();
        ReactorCase { event: self.0, then, at: Location::caller() }
    }

    /// It has no effect.
    #[must_use]
    #[track_caller]
    pub fn then_nothing<E>(self) -> ReactorCase<E> {
        self.then([])
    }
}

/// Runs the cases of a reactor. Panics with the place of a case that fails. Panics too if there are no cases, or if a
/// type of events that it reads is in no case.
///
/// # Panics
/// See above.
pub fn check_reactor<R: Reactor>() {
    let cases = R::cases();
    assert!(
        !cases.is_empty(),
        "{} has no cases: show in `cases` the effects of each event",
        R::NAME
    );
    for name in R::Reads::TYPES {
        let shown = cases.iter().any(|case| case.event.event_type == *name);
        assert!(shown, "{} reads {name}, but none of its cases has such an event", R::NAME);
    }
    for case in cases {
        let at = format!("{}, {}", R::NAME, case.at);
        assert!(
            R::Reads::TYPES.contains(&&*case.event.event_type),
            "{at}: it does not read {}",
            case.event.event_type
        );
        // A fact has the newest shape of its type, so no catalog is needed.
        let event = Catalogs::default()
            .current(stored::<R>(case.event))
            .unwrap_or_else(|error| fail(&at, error));
        let read = R::Reads::decode(&event).unwrap_or_else(|error| fail(&at, error));
        let lines = |effects: &[R::Effect]| {
            effects.iter().map(|effect| format!("{effect:#?}")).collect::<Vec<_>>()
        };
        let planned = R::plan(&read);
        if planned != case.then {
            assert_same(format!("{at}: the effects"), &lines(&case.then), &lines(&planned));
            panic!("{at}: the effects differ, but look the same when printed");
        }
    }
}

/// The event as the log of the context stores it: on a log of streams without the field that names the stream.
fn stored<R: Reactor>(mut event: SequencedEvent) -> SequencedEvent {
    R::Context::NAME.clone_into(&mut event.context);
    let kind = <R::Context as Context>::Log::KIND;
    let catalog = ringfence_core::kit::catalog::<R::Context>();
    if let (Some(schema), LogKind::Aggregates | LogKind::Documents) =
        (catalog.schema(&event.event_type), kind)
    {
        let id = event.tags.first().map(|tag| tag.value.clone()).unwrap_or_default();
        schema.leave_out_id(&id, &mut event.data);
        let name = match kind {
            LogKind::Aggregates => format!("{}#{id}", R::Context::NAME),
            _ => ringfence_core::escape(&format!("{}-{id}", R::Context::NAME)),
        };
        event.partition = BoundaryId::stored(name);
    }
    event
}
