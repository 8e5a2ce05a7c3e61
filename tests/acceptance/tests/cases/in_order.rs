//! The demand for products follows orders in the order of their events.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use catalog::record_product_demand::RecordProductDemand;
use ordering::{OrderCancelled, OrderPlaced, Ordering};
use ringfence_aws::{Clock, Retry};
use ringfence_core::kit::{BEGIN_MS, id};
use ringfence_core::{Append, Appended, Context, Envelope, EventLog, NewEvent, SequencedEvent};
use ringfence_dcb_log::DcbLog;
use ringfence_feed::{Index, Indexer, Partition};
use ringfence_lambda::Service;
use ringfence_lambda::slice::Hosted;
use ringfence_local::template::Template;
use ringfence_log::StackLogs;
use ringfence_reactors::{Delivery, EFFECT_TIME_MAX, Failed, Handler as _, ReactorTable};
use ringfence_services::automations::{Ordered, ReactInOrder, lanes};
use ringfence_testing::Dynamo;
use serde_json::Value;
use stack::Shop;

const EVENTS: &str = "EventTable";

async fn append(log: &DcbLog, event: NewEvent) -> SequencedEvent {
    let envelope = Envelope::default();
    let append = Append { events: vec![event], seen: None, record: None, envelope: &envelope };
    match log.append(append).await.unwrap() {
        Appended::Committed(mut events) => events.remove(0),
        Appended::Repeated(_) => unreachable!("without a record"),
    }
}

/// An order that was placed and cancelled at once.
async fn order(dynamo: &Dynamo) -> [SequencedEvent; 2] {
    let (client, clock) = (dynamo.client.clone(), Clock::running(BEGIN_MS));
    let log = DcbLog::new(client, EVENTS, Ordering::catalog().unwrap(), clock);
    let (order_id, product_ids) = (id("o1"), vec![id("lamp")]);
    let placed =
        OrderPlaced { order_id, customer_id: id("ada"), product_ids, quantities: [].into() };
    let cancelled = OrderCancelled { order_id: id("o1"), product_ids: placed.product_ids.clone() };
    [append(&log, placed.into()).await, append(&log, cancelled.into()).await]
}

/// The types of the product's events.
async fn of_product(dynamo: &Dynamo) -> Vec<String> {
    let query = dynamo.client.query().table_name(EVENTS).key_condition_expression("id = :id");
    let query =
        query.expression_attribute_values(":id", AttributeValue::S("productId:lamp".into()));
    let found = query.send().await.unwrap();
    let name = |item: &std::collections::HashMap<String, AttributeValue>| {
        item["event"].as_s().unwrap().clone()
    };
    found.items().iter().map(name).collect()
}

#[tokio::test]
async fn a_demand_is_revoked_after_it_was_recorded_whatever_comes_first() {
    let template = Template::of_stack().unwrap();
    let tables = [EVENTS, "IndexTable", "ViewTable"];
    // The bus may deliver the cancellation first. Then there is nothing to revoke yet, and the demand stays.
    let dynamo = Dynamo::with(&template, &tables);
    let [placed, cancelled] = order(&dynamo).await;
    let by_bus = Hosted::open::<RecordProductDemand>(&dynamo.logs()).unwrap();
    for event in [&cancelled, &placed] {
        by_bus.react(event, &event.partition).await.unwrap();
    }
    assert_eq!(of_product(&dynamo).await, ["ProductDemandRecorded"]);
    // The index has the events of an order in order.
    let dynamo = Dynamo::with(&template, &tables);
    let events = order(&dynamo).await;
    let client = || dynamo.client.clone();
    let log = DcbLog::new(client(), EVENTS, stack::stack().catalog, Clock::running(BEGIN_MS));
    let indexer = Indexer::new([log.into()], client(), "IndexTable");
    for (_, outcome) in indexer.index(events.iter().map(Partition::of), Retry::default()).await {
        outcome.unwrap();
    }
    let index = Index::new(client(), "IndexTable", dynamo.logs().bodies(&stack::stack().sources));
    let table = ReactorTable::new(client(), "ViewTable", Clock::running(BEGIN_MS));
    let ordered = Ordered::of::<Shop>();
    let without = StackLogs { tables: Default::default(), ..dynamo.logs() };
    let error = lanes(&ordered, &without, &index, &table).map(drop).unwrap_err().to_string();
    assert!(error.ends_with(" is on the DCB log: name its table with EVENT_TABLE"), "{error}");
    let all = lanes(&ordered, &dynamo.logs(), &index, &table).unwrap();
    let handles = |event: &SequencedEvent| all.iter().find(|lanes| lanes.handler.handles(event));
    let handler = &handles(&events[0]).expect("an automation of orders").handler;
    let other = SequencedEvent { context: "other".to_owned(), ..events[0].clone() };
    assert!(handles(&other).is_none());
    let broken = SequencedEvent { data: Value::Null, ..events[0].clone() };
    let failed = handler.carry_out(Delivery::new(handler.name(), &broken, 0)).await;
    assert!(matches!(failed, Err(Failed::ForGood(_))), "{failed:?}");
    // The last command has its time, and enough is left for the answer.
    assert!(ReactInOrder::ANSWER_TIME >= EFFECT_TIME_MAX + Duration::from_secs(2));
    for lanes in &all {
        lanes.run(Duration::from_secs(60)).await.unwrap();
    }
    assert_eq!(of_product(&dynamo).await, ["ProductDemandRecorded", "ProductDemandRevoked"]);
}
