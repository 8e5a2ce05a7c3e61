//! The process of docs/processes.md, with its messages in every possible order.

use std::collections::BTreeSet;

use futures::executor::block_on;
use inventory::release_stock::ReleaseStock;
use inventory::reserve_stock::ReserveStock;
use inventory::{Inventory, KEPT_MINUTES, StockReceived};
use ordering::cancel_order::CancelOrder;
use ordering::{CatalogProductSynced, Money, OrderPlaced};
use payments::record_payment::RecordPayment;
use payments::refund_payment::RefundPayment;
use payments::request_payment::RequestPayment;
use ringfence_core::kit::{BEGIN_MS, catalog, id};
use ringfence_core::{
    Append, Cause, CommandContext, Decisions, Due, Envelope, EventLog, MemoryLog, NewEvent, Reads,
    SequencedEvent, Slice, TopicEvent, events, handle,
};

/// A slice that reacts: its causes, and its action.
struct Automation {
    causes: &'static [Cause],
    react: fn(&World, &TopicEvent) -> World,
}

impl Automation {
    const fn of<S: Slice>() -> Self {
        let react = |world: &World, event: &TopicEvent| {
            let cause = S::REACTS_TO.iter().find(|cause| cause.event_type == event.event_type);
            let event = cause.unwrap().current(event).unwrap();
            let commands = S::react(&event).unwrap();
            commands.iter().fold(world.clone(), |world, command| world.carry_out(command))
        };
        Self { causes: S::REACTS_TO, react }
    }
}

const AUTOMATIONS: [Automation; 5] = [
    Automation::of::<ReserveStock>(),
    Automation::of::<RequestPayment>(),
    Automation::of::<ReleaseStock>(),
    Automation::of::<RefundPayment>(),
    Automation::of::<CancelOrder>(),
];

/// An event from outside.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outside {
    CustomerPays,
    CustomerCancels,
    TimeIsOver,
}

/// The events of the log, in the order of their appends, and the messages that are under way.
#[derive(Clone)]
struct World {
    events: Vec<SequencedEvent>,
    now_ms: u64,
    /// Which automation has not received which event.
    undelivered: Vec<(usize, usize)>,
    outside: Vec<Outside>,
}

impl World {
    /// An order of two lamps, and so many lamps in stock.
    fn with_lamps(units: &str) -> Self {
        let outside = vec![Outside::CustomerPays, Outside::CustomerCancels, Outside::TimeIsOver];
        let world = Self { events: Vec::new(), now_ms: BEGIN_MS, undelivered: Vec::new(), outside };
        world.add(events![
            CatalogProductSynced {
                product_id: id("lamp"),
                name: "Lamp".to_owned(),
                price: Money::new(1_250, "EUR"),
            },
            StockReceived { delivery_id: id("d1"), product_id: id("lamp"), units: id(units) },
            OrderPlaced {
                order_id: id("o1"),
                customer_id: id("ada"),
                product_ids: vec![id("lamp"), id("lamp")],
                quantities: [].into(),
            },
        ])
    }

    fn envelope(&self) -> Envelope {
        let context = CommandContext { now_ms: self.now_ms, ..CommandContext::default() };
        Envelope { context, ..Envelope::default() }
    }

    fn log(&self) -> MemoryLog {
        MemoryLog::of(catalog::<Inventory>(), self.events.clone()).unwrap()
    }

    fn add(&self, events: Vec<NewEvent>) -> Self {
        let (log, envelope) = (self.log(), self.envelope());
        block_on(log.append(Append { events, seen: None, record: None, envelope: &envelope }))
            .unwrap();
        self.after(&log)
    }

    fn carry_out<S: Slice>(&self, command: &S) -> Self {
        let (log, catalog) = (self.log(), catalog::<S::Context>());
        block_on(handle(&log, &catalog, &Decisions::new(0), command, &self.envelope())).unwrap();
        self.after(&log)
    }

    /// Adds the new events of the log, which no automation has received.
    fn after(&self, log: &MemoryLog) -> Self {
        let mut next = self.clone();
        let known: BTreeSet<_> = self.events.iter().map(SequencedEvent::id).collect();
        for event in log.events().into_iter().filter(|event| !known.contains(&event.id())) {
            let is_of = |cause: &Cause| {
                (cause.context, cause.event_type) == (&event.context, &event.event_type)
            };
            let hear = (0..AUTOMATIONS.len()).filter(|n| AUTOMATIONS[*n].causes.iter().any(is_of));
            next.undelivered.extend(hear.map(|n| (n, next.events.len())));
            next.events.push(event);
        }
        next
    }

    fn deliver(&self, (automation, event): (usize, usize)) -> Self {
        let event = TopicEvent::new(self.events[event].clone());
        (AUTOMATIONS[automation].react)(self, &event)
    }

    fn has(&self, event_type: &str) -> bool {
        self.events.iter().any(|event| event.event_type == event_type)
    }

    /// Whether it can happen now.
    fn can(&self, outside: Outside) -> bool {
        match outside {
            Outside::CustomerPays => self.has("PaymentRequested"),
            Outside::CustomerCancels => true,
            Outside::TimeIsOver => self.has("StockReserved"),
        }
    }

    fn happens(&self, outside: Outside) -> Self {
        let order_id = id("o1");
        match outside {
            Outside::CustomerPays => self.carry_out(&RecordPayment { order_id }),
            Outside::CustomerCancels => self.carry_out(&CancelOrder { order_id }),
            // The sweep may have read the row before the payment.
            Outside::TimeIsOver => {
                let now_ms = self.now_ms + u64::from(KEPT_MINUTES) * 60_000;
                Self { now_ms, ..self.clone() }.carry_out(&ReleaseStock { order_id })
            }
        }
    }

    /// The worlds that can follow.
    fn next(&self) -> Vec<Self> {
        let delivered = (0..self.undelivered.len()).map(|n| {
            let mut rest = self.clone();
            let delivery = rest.undelivered.remove(n);
            rest.deliver(delivery)
        });
        let happened = (0..self.outside.len()).filter(|n| self.can(self.outside[*n])).map(|n| {
            let mut rest = self.clone();
            let outside = rest.outside.remove(n);
            rest.happens(outside)
        });
        delivered.chain(happened).collect()
    }

    /// Whether the release will be due, if nothing else happens.
    fn is_due(&self) -> bool {
        let (catalog, mut row) = (catalog::<Inventory>(), None);
        for event in &self.events {
            if <ReleaseStock as Due>::Reads::TYPES.contains(&&*event.event_type) {
                let event = catalog.current(event).unwrap();
                let read = <ReleaseStock as Due>::Reads::decode(&event).unwrap();
                row = <ReleaseStock as Due>::evolve(row, "o1", &read);
            }
        }
        row.and_then(|row| ReleaseStock::due_ms(&row)).is_some()
    }

    /// Whether nothing is under way, and nothing will be due.
    fn is_at_rest(&self) -> bool {
        self.undelivered.is_empty() && !self.is_due()
    }

    /// A text of the final state.
    fn end(&self) -> String {
        let is = |holds: bool, word: &'static str| holds.then_some(word);
        let keeps = self.has("StockReserved") && !self.has("StockReleased");
        let words = [
            is(self.has("OrderCancelled"), "cancelled"),
            is(keeps, "reserved"),
            is(self.has("PaymentReceived"), "paid"),
            is(self.has("PaymentRefunded"), "refunded"),
        ];
        words.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    fn name(&self) -> String {
        let types: Vec<_> = self.events.iter().map(|event| &*event.event_type).collect();
        format!("{types:?} {:?} {:?}", self.undelivered, self.outside)
    }
}

/// All ends of the process, over all orders of its messages.
fn ends(begin: World) -> BTreeSet<String> {
    let (mut ends, mut seen, mut open) = (BTreeSet::new(), BTreeSet::new(), vec![begin]);
    while let Some(world) = open.pop() {
        if !seen.insert(world.name()) {
            continue;
        }
        if world.is_at_rest() {
            ends.insert(world.end());
            // The bus delivers an event at least once.
            for again in (0..AUTOMATIONS.len())
                .flat_map(|n| (0..world.events.len()).map(move |event| (n, event)))
                .filter(|(n, event)| {
                    let of = &world.events[*event].event_type;
                    AUTOMATIONS[*n].causes.iter().any(|cause| cause.event_type == of)
                })
            {
                let after = world.deliver(again);
                assert_eq!(after.name(), world.name(), "{again:?} is delivered again");
            }
        }
        open.extend(world.next());
    }
    ends
}

#[test]
fn an_order_ends_paid_and_reserved_or_cancelled_with_units_free_and_money_back() {
    let expected = ["cancelled", "cancelled, paid, refunded", "reserved, paid"];
    assert_eq!(ends(World::with_lamps("2")), expected.map(str::to_owned).into());
    assert_eq!(ends(World::with_lamps("1")), ["cancelled".to_owned()].into());
}
