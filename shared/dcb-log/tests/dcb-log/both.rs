//! The promises of a log with dynamic consistency boundaries, for the log on DynamoDB and the log in memory. Every
//! read and append here runs on both logs, and both must answer the same.

use futures::TryStreamExt;
use ringfence_aws::Clock;
use ringfence_core::{
    AHEAD_MAX_MS, Append, Appended, BoundaryId, Catalog, CommandContext, Consistency, Context,
    Envelope, Event, EventLog, Extent, MemoryLog, NewEvent, Plan, Query, QueryItem, Seen,
    SequencedEvent, Tag, kit::id,
};
use ringfence_dcb_log::DcbLog;
use serde_json::{Value, json};

use crate::items::{self, Shut, moved};
use crate::shop::{OrderPlaced, ProductAdded, ProductOrdered, ProductStocked, Shop};
use crate::stack::{NOW_MS, Stack, append, committed, envelope};

/// A month, in milliseconds.
const MONTH: u64 = 30 * 24 * 3_600_000;

struct Both {
    stack: Stack,
    dcb: DcbLog,
    memory: MemoryLog,
}

impl Both {
    /// Both logs with the same events. Each append is by a writer whose clock is this many milliseconds ahead.
    async fn of(stack: Stack, given: Vec<(u64, Vec<NewEvent>)>) -> Self {
        for (ahead_ms, events) in given {
            let log = stack.log_at(&Clock::fixed(NOW_MS + ahead_ms));
            committed(append(&log, events, &envelope()).await);
        }
        let events: Vec<_> = stack.log().scan().try_collect().await.expect("every event");
        let memory = MemoryLog::of(stack.catalog.clone(), events).expect("the same events");
        stack.wire.forget();
        Self { dcb: stack.log(), stack, memory }
    }

    async fn start(given: Vec<(u64, Vec<NewEvent>)>) -> Self {
        Self::of(Stack::start(Shop::catalog()).await, given).await
    }

    /// Reads these types by these tags, as a decision does.
    async fn read(
        &self,
        clauses: &[(&'static str, &str, &'static str)],
    ) -> (Vec<SequencedEvent>, Seen) {
        let item = |(key, value, event_type): &(&'static str, &str, &'static str)| QueryItem {
            tags: vec![Tag::new(*key, *value)],
            types: vec![(*event_type).into()],
        };
        let query = Query { items: clauses.iter().map(item).collect() };
        let plan = Plan::new(&query, &self.stack.catalog).expect("a route for each clause");
        let envelope = envelope();
        let logs: [&dyn EventLog; 2] = [&self.dcb, &self.memory];
        let mut all = Vec::new();
        for log in logs {
            let read = log.read(&plan, Consistency::Strong, &envelope).try_collect().await;
            let read: Vec<SequencedEvent> = read.expect("a read");
            let seen = log.read_with_seen(&plan, Consistency::Strong, &envelope).await;
            all.push((read, seen.expect("a read").1));
        }
        let memory = all.pop().expect("two logs");
        assert_eq!(all[0], memory, "in memory");
        memory
    }

    /// Returns the times of the appended events, or the error.
    async fn append(
        &self,
        seen: Option<&Seen>,
        events: Vec<NewEvent>,
        cause_ms: Option<u64>,
    ) -> Result<Vec<u64>, String> {
        let context = CommandContext { now_ms: NOW_MS, ..CommandContext::default() };
        let envelope = &Envelope { context, cause_ms, ..envelope() };
        let append = || Append { events: events.clone(), seen, record: None, envelope };
        let dcb = self.dcb.append(append()).await.map_err(|error| error.to_string());
        let memory = self.memory.append(append()).await.map_err(|error| error.to_string());
        assert_eq!(dcb, memory, "in memory");
        match memory? {
            Appended::Committed(events) => Ok(events.iter().map(|event| event.at).collect()),
            repeated => panic!("{repeated:?}"),
        }
    }
}

fn added(product: &str) -> NewEvent {
    ProductAdded { product_id: id(product), name: "Mug".to_owned() }.into()
}

fn stocked(product: &str) -> NewEvent {
    ProductStocked { product_id: id(product) }.into()
}

fn placed(order: &str) -> NewEvent {
    OrderPlaced { order_id: id(order), product_ids: vec![] }.into()
}

fn ordered(order: &str, customer: &str) -> NewEvent {
    let (order_id, customer_id) = (id(order), id(customer));
    ProductOrdered { order_id, customer_id, product_id: id("p"), quantity: 1 }.into()
}

#[tokio::test]
async fn an_event_that_only_an_index_shows_has_neither_metadata_nor_rest() {
    let given = || vec![(0, vec![ordered("o1", "c"), ordered("o1", "c"), ordered("o2", "c")])];
    let of_index = json!({ "ProjectionType": "KEYS_ONLY" });
    let whole = json!({ "ProjectionType": "ALL" });
    for stack in [
        Stack::start(Shop::catalog()).await,
        Stack::projecting(Shop::catalog(), &of_index).await,
        Stack::projecting(Shop::catalog(), &whole).await,
    ] {
        let both = Both::of(stack, given()).await;
        let shown = |read: Vec<SequencedEvent>| -> Vec<_> {
            read.iter().map(|e| (e.id(), e.rest, e.metadata.iter().count())).collect()
        };
        let name = |id: &str| id.to_owned();
        let (read, _) = both.read(&[("customerId", "c", "ProductOrdered")]).await;
        assert!(read.iter().all(|event| event.context == "shop" && event.data["quantity"] == 1));
        let all = ["orderId:o1/1", "orderId:o1/2", "orderId:o2/1"].map(|id| (name(id), 0, 0));
        assert_eq!(shown(read), all);
        // Events of a partition that is read come from that read.
        let of_order = ("orderId", "o1", "ProductOrdered");
        let (read, _) = both.read(&[("customerId", "c", "ProductOrdered"), of_order]).await;
        let [first, second, third] = all;
        assert_eq!(shown(read), [(first.0, 1, 4), (second.0, 0, 4), third]);
    }
}

#[tokio::test]
async fn an_event_outside_the_plan_takes_its_slot_and_shows_no_content() {
    let both = Both::start(vec![(0, vec![added("p"), stocked("p")])]).await;
    let (read, seen) = both.read(&[("productId", "p", "ProductStocked")]).await;
    let [added, stocked] = &read[..] else { panic!("{read:?}") };
    assert_eq!(
        (&*added.event_type, &added.data, &added.tags[..]),
        ("ProductAdded", &Value::Null, &[][..])
    );
    // The marks of a repeated command, and the context that declares the type.
    let marks: Vec<_> = added.metadata.iter().map(|(key, _)| key).collect();
    assert_eq!((marks, &*added.context, added.rest), (vec!["commandId"], "shop", 1));
    assert_eq!((&stocked.data["productId"], stocked.tags.len()), (&json!("p"), 1));
    assert_eq!(seen.prefix(&BoundaryId::tag("productId", "p")).map(|it| it.slot), Some(2));
}

#[tokio::test]
async fn index_items_show_events_outside_the_plan_without_content() {
    let shut = |depot: &str| NewEvent::from(Shut { depot: depot.to_owned() });
    let given = vec![(0, vec![shut("x"), moved("p", "x", "y"), moved("p", "x", "z"), shut("y")])];
    let both = Both::of(Stack::start(items::catalog()).await, given).await;
    let (read, _) = both.read(&[("depot", "x", "Shut")]).await;
    let shown: Vec<_> = read.iter().map(|e| (e.id(), e.data.is_null(), e.rest)).collect();
    let id = |id: &str| id.to_owned();
    assert_eq!(
        shown,
        [(id("depot:x/1"), false, 0), (id("parcelId:p/1"), true, 1), (id("parcelId:p/2"), true, 0)]
    );
    let contexts: Vec<_> = read.iter().map(|event| (&*event.context, event.tags.len())).collect();
    assert_eq!(contexts, [("parcels", 1); 3]);
}

#[tokio::test]
async fn an_index_shows_the_slots_of_the_partition_of_its_name_without_marks_and_rest() {
    #[derive(Event)]
    struct Joined {
        #[tag(partition, cross_partition)]
        member_id: String,
    }
    #[derive(Event)]
    struct Paid {
        #[tag(partition, cross_partition)]
        member_id: String,
    }
    let catalog = Catalog::new("members", [Joined::SCHEMA, Paid::SCHEMA]);
    let stack = Stack::projecting(catalog, &json!({ "ProjectionType": "ALL" })).await;
    let (joined, paid) = (Joined { member_id: "m".to_owned() }, Paid { member_id: "m".to_owned() });
    let given = vec![(0, vec![joined.into(), NewEvent::new(&paid).expect("JSON"), paid.into()])];
    let both = Both::of(stack, given).await;
    let (read, seen) = both.read(&[("memberId", "m", "Joined")]).await;
    let marks = |e: &SequencedEvent| (e.slot, e.rest, e.metadata.iter().count(), e.data.is_null());
    let shown: Vec<_> = read.iter().map(marks).collect();
    assert_eq!(shown, [(1, 0, 0, false), (2, 0, 0, true), (3, 0, 0, true)]);
    let hint = seen.of(&BoundaryId::tag("memberId", "m"));
    assert!(matches!(hint, Some(Extent::Fence { slot: 3, .. })), "{hint:?}");
}

#[tokio::test]
async fn an_append_without_events_is_an_error_and_sends_nothing() {
    let both = Both::start(vec![(0, vec![stocked("p")])]).await;
    let (_, seen) = both.read(&[("productId", "p", "ProductStocked")]).await;
    both.stack.wire.forget();
    let error = "an append has at least one event; whether what was seen is still everything, `verify` says";
    for seen in [None, Some(&seen)] {
        assert_eq!(both.append(seen, vec![], None).await, Err(error.to_owned()));
    }
    assert_eq!(both.stack.wire.take().len(), 0);
}

#[tokio::test]
async fn a_cause_more_than_a_minute_ahead_of_the_clock_is_ignored() {
    for (ahead, expected) in [(AHEAD_MAX_MS, NOW_MS + AHEAD_MAX_MS + 1), (AHEAD_MAX_MS + 1, NOW_MS)]
    {
        let both = Both::start(vec![]).await;
        assert_eq!(
            both.append(None, vec![placed("o")], Some(NOW_MS + ahead)).await,
            Ok(vec![expected])
        );
    }
}

/// One event by a writer whose clock was a month ahead, and the events that it moves.
#[tokio::test]
async fn an_event_far_ahead_moves_its_own_boundaries_and_no_other() {
    let given = || {
        let customers = ordered("o1", "far");
        vec![(MONTH, vec![stocked("far"), customers]), (AHEAD_MAX_MS - 1, vec![stocked("near")])]
    };
    let (far, near) = (NOW_MS + MONTH, NOW_MS + AHEAD_MAX_MS - 1);
    let stocked_type = "ProductStocked";
    let of_far = ("productId", "far", stocked_type);
    let of_near = ("productId", "near", stocked_type);
    let of_customer = ("customerId", "far", "ProductOrdered");
    for (reads, event, expected) in [
        // A boundary that is only read elsewhere is followed for a minute.
        (&[of_far][..], placed("o"), NOW_MS),
        (&[of_near], placed("o"), near + 1),
        (&[of_far, of_near], placed("o"), near + 1),
        (&[of_customer], placed("o"), NOW_MS),
        // A partition and a fence keep their order, even if they were not read.
        (&[of_far], stocked("far"), far + 1),
        (&[], stocked("far"), far + 1),
        (&[of_customer], ordered("o2", "far"), far + 2),
        (&[], ordered("o2", "far"), far + 2),
    ] {
        let both = Both::start(given()).await;
        let (_, seen) = both.read(reads).await;
        let seen = (!reads.is_empty()).then_some(&seen);
        let case = format!("{reads:?}, then {event:?}");
        assert_eq!(both.append(seen, vec![event], None).await, Ok(vec![expected]), "{case}");
        // The same writer appends elsewhere. If its last event was near, the next one follows it. Otherwise the next
        // one has the time of the writer's clock.
        let next = both.append(None, vec![placed("other")], None).await;
        let after = if expected > far { NOW_MS } else { expected + 1 };
        assert_eq!(next, Ok(vec![after]), "{case}");
        if expected > far {
            // Another far event does not make the writer forget this one.
            both.append(None, vec![stocked("far")], None).await.expect("it is appended");
            let last = both.append(None, vec![placed("last")], None).await;
            assert_eq!(last, Ok(vec![NOW_MS + 1]), "{case}");
        }
        both.stack.check_fences().await;
    }
}
