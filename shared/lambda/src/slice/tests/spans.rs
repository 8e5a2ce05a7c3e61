//! The line of a command as a span, and the span in its events.

use std::collections::BTreeMap;

use ringfence_core::{
    Callers, Cause, Command, CommandContext, Current, Never, Reads, SequencedEvent, Slice, State,
    TopicEvent, Traceparent,
};
use serde_json::{Value, json};

use super::shop::{PriceChanged, ProductId, RecordDemand, Shop, euros};
use super::{NOW_MS, events, function, invoke, order, request, shop};
use crate::slice::telemetry::Line;

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// An automation: what is in demand costs a cent.
#[derive(Clone, Debug, PartialEq, Command)]
pub(super) struct Discount {
    #[tag(partition)]
    product_id: ProductId,
}

#[derive(Reads)]
pub(super) enum Discounts {
    PriceChanged,
}

#[derive(Default)]
pub(super) struct Discounted(bool);

impl State for Discounted {
    type Reads = Discounts;

    fn evolve(self, _: Discounts) -> Self {
        Self(true)
    }
}

impl Slice for Discount {
    const NAME: &'static str = "discount";
    const REACTS_TO: &'static [Cause] = &[Cause::named("shop", "DemandRecorded")];
    const CALLERS: Callers = Callers::Nobody;
    type Context = Shop;
    type State = Discounted;
    type Writes = PriceChanged;
    type Rejection = Never;

    fn decide(&self, state: &Discounted, _: &CommandContext) -> Result<Vec<PriceChanged>, Never> {
        let price = PriceChanged { product_id: self.product_id.clone(), price: euros(1) };
        Ok(if state.0 { vec![] } else { vec![price] })
    }

    fn react(event: &Current<'_, TopicEvent>) -> Result<Vec<Self>, serde_json::Error> {
        serde_json::from_value(event.data["productId"].clone())
            .map(|product_id| vec![Self { product_id }])
    }
}

/// An event in the form of the EventTopic.
fn entry(source: &str, event: &SequencedEvent) -> Value {
    json!({
        "detail-type": event.event_type,
        "source": source,
        "detail": {
            "id": event.id(),
            "type": event.event_type,
            "partition": event.partition.as_str(),
            "slot": event.slot,
            "recordedAt": event.recorded_at(),
            "tags": event.tags,
            "data": event.data,
            "meta": event.metadata,
        },
    })
}

/// The lines and the events of one flow: a caller's order, the demand of its two products, and their discounts.
fn flow() -> (Vec<Value>, Vec<SequencedEvent>) {
    let (place, demand) = (shop(), function::<RecordDemand>(vec![]));
    let discount = function::<Discount>(vec![]);
    demand.clock().set(NOW_MS + 100);
    discount.clock().set(NOW_MS + 200);
    let mut order = order();
    order["customerId"] = "canary".into();
    let headers = json!({ "idempotency-key": "k", "traceparent": CALLER });
    let mut lines = invoke(&place, request(&order.to_string(), headers)).lines;
    let placed = events(&place).pop().expect("an event");
    let mut all = vec![placed];
    lines.extend(invoke(&demand, entry("ordering", &all[0])).lines);
    all.extend(events(&demand));
    for recorded in events(&demand) {
        lines.extend(invoke(&discount, entry("shop", &recorded)).lines);
    }
    all.extend(events(&discount));
    (lines.iter().map(|line| line.log().json).collect(), all)
}

#[test]
fn a_flow_over_three_slices_is_one_tree_with_the_same_ids_in_every_run() {
    let (lines, events) = flow();
    let text = |line: &Value, key: &str| line[key].as_str().map(str::to_owned);
    let slices: Vec<_> = lines.iter().map(|line| text(line, "slice").unwrap()).collect();
    assert_eq!(slices, ["place-order", "record-demand", "record-demand", "discount", "discount"]);
    let began = |line: &Value| text(line, "timestamp").unwrap();
    let spans: BTreeMap<_, _> =
        lines.iter().map(|line| (text(line, "span_id").unwrap(), began(line))).collect();
    assert_eq!(spans.len(), lines.len(), "each command has its own span");
    for (line, event) in lines.iter().zip(&events) {
        assert_eq!(line["trace_id"], CALLER[3..35]);
        let own = Traceparent::of_event(&event.metadata).unwrap();
        assert_eq!(
            (own.trace_id(), Some(own.span_id())),
            (CALLER[3..35].to_owned(), text(line, "span_id"))
        );
        let parent = text(line, "parent_span_id").unwrap();
        match spans.get(&parent) {
            Some(cause) => assert!(*cause < began(line), "{line}"),
            None => {
                assert_eq!((&*parent, &line["slice"]), (&CALLER[36..52], &json!("place-order")))
            }
        }
        assert!(!line.to_string().contains("canary"), "no line has what is in a command: {line}");
    }
    let parents = |lines: &[Value]| {
        let ids = ["trace_id", "span_id", "parent_span_id"];
        lines.iter().map(|line| ids.map(|id| text(line, id))).collect::<Vec<_>>()
    };
    assert_eq!(parents(&flow().0), parents(&lines));
    let children = |of: usize| {
        let own = text(&lines[of], "span_id");
        lines.iter().filter(|line| text(line, "parent_span_id") == own).count()
    };
    assert_eq!([0, 1, 2, 3, 4].map(children), [2, 1, 1, 0, 0]);
}

#[test]
fn a_command_without_a_parent_begins_a_trace_whatever_its_correlation_id() {
    for (headers, parent) in [
        (json!({ "idempotency-key": "k", "traceparent": CALLER }), Some(&CALLER[36..52])),
        (json!({ "idempotency-key": "k", "x-correlation-id": "session-1" }), None),
        (json!({ "idempotency-key": "k", "traceparent": CALLER.replace("4bf9", "4BF9") }), None),
        (
            json!({ "idempotency-key": "k", "traceparent": CALLER.replace("00f067aa0ba902b7", "0000000000000000") }),
            None,
        ),
        (json!({ "idempotency-key": "k", "traceparent": "x".repeat(200) }), None),
    ] {
        let shop = shop();
        let line = invoke(&shop, request(&order().to_string(), headers.clone())).line().log().json;
        assert_eq!(line.get("parent_span_id").and_then(Value::as_str), parent, "{headers}");
        let own = Traceparent::of_command("k", "place-order", None);
        assert_eq!(line["span_id"], own.span_id());
        assert_eq!(line["trace_id"] == own.trace_id(), parent.is_none(), "{headers}");
    }
    let direct = json!({ "command": order(), "commandId": "k", "traceparent": "no trace" });
    let line = invoke(&shop(), direct).line().log().json;
    assert_eq!((line["outcome"].as_str(), line.get("parent_span_id")), (Some("accepted"), None));
}

#[test]
fn a_run_that_left_nothing_has_its_own_span_and_a_repeat_says_so() {
    let shop = shop();
    let run = |request_id: &str, order: &Value, key: &str| {
        let mut lambda = lambda_runtime::Context::default();
        lambda.request_id = request_id.to_owned();
        let payload = request(&order.to_string(), json!({ "idempotency-key": key })).to_string();
        futures::executor::block_on(shop.invoke(&payload, &lambda)).line().log().json
    };
    let span = |line: &Value| line["span_id"].as_str().unwrap().to_owned();
    let [first, again] = ["r-1", "r-2"].map(|id| run(id, &order(), "k"));
    assert_eq!((span(&first), first.get("repeated")), (span(&again), None));
    assert_eq!(again["repeated"], true);
    let mut unknown = order();
    (unknown["orderId"], unknown["productIds"]) = ("o2".into(), json!(["p9"]));
    let [first, again] = ["r-3", "r-4"].map(|id| run(id, &unknown, "k2"));
    assert_eq!((&first["outcome"], again.get("repeated")), (&json!("rejected"), None));
    assert_eq!(first["trace_id"], again["trace_id"]);
    assert_ne!(span(&first), span(&again));
    assert_ne!(span(&first), Traceparent::of_command("k2", "place-order", None).span_id());
}

#[test]
fn a_trace_that_nobody_keeps_is_continued_and_its_lines_say_so() {
    let shop = shop();
    let headers = json!({ "traceparent": CALLER.replace("-01", "-00") });
    let line = invoke(&shop, request(&order().to_string(), headers)).line().log().json;
    assert_eq!((&line["trace_id"], &line["sampled"]), (&json!(CALLER[3..35]), &json!(false)));
    let event = events(&shop).pop().unwrap();
    assert!(event.metadata.text("traceparent").unwrap().ends_with("-00"));
}

/// The cost of a trace: bytes of the log line, and of the event in its table and in the index.
#[test]
fn a_span_takes_111_bytes_of_the_line_and_66_of_the_event() {
    let shop = shop();
    let headers = json!({ "traceparent": CALLER });
    let invoked = invoke(&shop, request(&order().to_string(), headers));
    let line = invoked.line();
    let without = Line { span: None, parent: None, ..line.clone() };
    let bytes = |line: &Line| line.log().json.to_string().len();
    assert_eq!(bytes(line) - bytes(&without), 111);
    assert!(bytes(line) < 640, "{}", line.log().json);
    let event = events(&shop).pop().unwrap();
    let traceparent = event.metadata.text("traceparent").unwrap();
    assert_eq!("traceparent".len() + traceparent.len(), 66);
}
