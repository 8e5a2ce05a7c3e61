//! The kit of dues: a case notices each mistake that a due can make.

use std::cell::Cell;
use std::error::Error;
use std::panic::catch_unwind;

use ringfence_core::kit::check_due;
use ringfence_core::{
    BoundaryId, DueRow, Event as _, MemoryLog, OnEvents, SequencedEvent, prelude::*, reaction_key,
};

const HOUR: u64 = 3_600_000;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    None,
    NoClock,
    NoClearingEvent,
    ClearedIsNotRead,
    DueTooEarly,
    WrongCase,
}

thread_local! {
    static MISTAKE: Cell<Mistake> = const { Cell::new(Mistake::None) };
}

fn is(mistake: Mistake) -> bool {
    MISTAKE.get() == mistake
}

/// An offer holds for an hour.
#[derive(Clone, Debug, PartialEq, Event)]
struct OfferMade {
    #[tag(partition)]
    offer_id: String,
}

#[derive(Clone, Debug, PartialEq, Event)]
struct OfferTaken {
    #[tag(partition)]
    offer_id: String,
}

#[derive(Clone, Debug, PartialEq, Event)]
struct OfferEnded {
    #[tag(partition)]
    offer_id: String,
}

#[derive(Reads)]
enum Consumed {
    OfferMade {
        offer_id: String,
        #[time]
        at_ms: u64,
    },
    OfferTaken {
        offer_id: String,
    },
    OfferEnded {
        offer_id: String,
    },
}

#[derive(Default)]
struct Offer(Option<u64>);

impl State for Offer {
    type Reads = Consumed;

    fn evolve(self, event: Consumed) -> Self {
        match event {
            Consumed::OfferMade { at_ms, .. } => Self(Some(at_ms + HOUR)),
            Consumed::OfferTaken { .. } if is(Mistake::ClearedIsNotRead) => self,
            Consumed::OfferTaken { .. } | Consumed::OfferEnded { .. } => Self(None),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Command)]
struct EndOffer {
    #[tag(partition)]
    offer_id: String,
}

struct Offers;

impl Context for Offers {
    const NAME: &'static str = "offers";
    type Log = crate::shop::Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::new(Self::NAME, [OfferMade::SCHEMA, OfferTaken::SCHEMA, OfferEnded::SCHEMA])
    }
}

impl Slice for EndOffer {
    const NAME: &'static str = "end-offer";
    type Context = Offers;
    type State = Offer;
    type Writes = OfferEnded;
    type Rejection = Never;

    fn decide(
        &self,
        Offer(until_ms): &Offer,
        context: &CommandContext,
    ) -> Result<Vec<OfferEnded>, Never> {
        let is_over = until_ms.is_some_and(|until| is(Mistake::NoClock) || until <= context.now_ms);
        let ended = OfferEnded { offer_id: self.offer_id.clone() };
        Ok(if is_over { vec![ended] } else { vec![] })
    }
}

impl Due for EndOffer {
    type Reads = Consumed;
    type Row = u64;

    fn rows(event: &Consumed) -> Vec<String> {
        let (Consumed::OfferMade { offer_id, .. }
        | Consumed::OfferTaken { offer_id }
        | Consumed::OfferEnded { offer_id }) = event;
        vec![offer_id.clone()]
    }

    fn evolve(row: Option<u64>, _: &str, event: &Consumed) -> Option<u64> {
        match event {
            Consumed::OfferMade { at_ms, .. } => Some(at_ms + HOUR),
            Consumed::OfferEnded { .. } if is(Mistake::NoClearingEvent) => row,
            Consumed::OfferTaken { .. } | Consumed::OfferEnded { .. } => None,
        }
    }

    fn due_ms(until_ms: &u64) -> Option<u64> {
        Some(until_ms - u64::from(is(Mistake::DueTooEarly)))
    }

    fn command(id: &str, _: &u64) -> Result<Self, Box<dyn Error + Send + Sync>> {
        Ok(Self { offer_id: id.to_owned() })
    }

    fn due_cases() -> Vec<DueCase<Self>> {
        let made = || given(events![OfferMade { offer_id: "o".to_owned() }]);
        let end = || EndOffer { offer_id: "o".to_owned() };
        let wait = if is(Mistake::WrongCase) { HOUR - 1 } else { HOUR };
        vec![
            made().wait(wait).then_due([end()]),
            made()
                .wait(1)
                .and(events![OfferTaken { offer_id: "o".to_owned() }])
                .wait(HOUR)
                .then_none_due(),
        ]
    }
}

#[test]
fn a_due_that_fires_early_late_or_for_ever_fails_its_cases() {
    for (mistake, said) in [
        (Mistake::None, ""),
        (Mistake::WrongCase, "what is due"),
        (Mistake::NoClock, "takes effect a millisecond before o is due"),
        (Mistake::DueTooEarly, "has nothing to do for o when it is due"),
        (Mistake::NoClearingEvent, "is still due after the events of end-offer"),
        (Mistake::ClearedIsNotRead, "although OfferTaken has cleared or moved it"),
    ] {
        let failed = catch_unwind(|| {
            MISTAKE.set(mistake);
            let catalog = Offers::catalog().unwrap();
            let open = || OnEvents::new(MemoryLog::new(catalog.clone()), catalog.clone(), 0);
            check_due::<EndOffer, _>(open, |_| {});
        });
        let message = failed.err().map(|panic| *panic.downcast::<String>().unwrap());
        let message = message.unwrap_or_default();
        assert!(
            message.contains(said) && message.is_empty() == said.is_empty(),
            "{mistake:?}: {message}"
        );
    }
}

/// The fold of a row, whose cause gives its command a key.
#[test]
fn a_row_that_changes_has_another_cause_and_one_that_stays_keeps_its_own() {
    let catalog = Offers::catalog().unwrap();
    let event = |slot, at, metadata: serde_json::Value| SequencedEvent {
        partition: BoundaryId::tag("offerId", "o"),
        slot,
        at,
        rest: 0,
        event_type: "OfferMade".to_owned(),
        context: "offers".to_owned(),
        tags: vec![],
        version: 1,
        data: serde_json::json!({ "offerId": "o" }),
        metadata: serde_json::from_value(metadata).unwrap(),
    };
    let fold = |old, event| {
        let current = catalog.current(event).unwrap();
        DueRow::fold::<EndOffer>(old, "o", &current).unwrap().unwrap()
    };
    let metadata = serde_json::json!({ "correlationId": "c", "principal": "jwt:main:ada" });
    let set = fold(None, event(1, 5, metadata));
    assert_eq!((set.due, &*set.cause, set.cause_ms), (Some(5 + HOUR), "offerId:o/1", 5));
    let same = fold(Some(set.clone()), event(2, 5, serde_json::json!({})));
    assert_eq!(same, set);
    let moved = fold(Some(set.clone()), event(3, 6, serde_json::json!({})));
    assert_eq!((moved.due, &*moved.cause), (Some(6 + HOUR), "offerId:o/3"));

    let envelope = set.envelope::<EndOffer>("o", 9);
    let text = |key| envelope.metadata.text(key);
    assert_eq!(text("causationId"), Some("offerId:o/1"));
    assert_eq!((text("correlationId"), text("by")), (Some("c"), Some("end-offer")));
    assert_eq!(envelope.context.principal.unwrap().to_string(), "jwt:main:ada");
    assert_eq!((envelope.context.now_ms, envelope.cause_ms), (9, Some(5)));
    let key = |row: &DueRow<u64>, id| row.envelope::<EndOffer>(id, 9).idempotency_key.unwrap();
    assert_eq!(key(&set, "o"), key(&same, "o"));
    assert_ne!(key(&set, "o"), key(&moved, "o"));
    assert_ne!(key(&set, "o"), key(&set, "p"));
    assert_ne!(key(&set, "o"), reaction_key(&set.cause, "o"), "a reaction to the same event");
}
