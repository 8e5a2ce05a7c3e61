use super::*;
use crate::template::RedriveTarget;

#[tokio::test(start_paused = true)]
async fn a_received_message_is_hidden_until_it_is_deleted_or_its_time_is_over() {
    let queues = Queues::new(["dead".to_owned()]);
    for body in ["a", "b", "c"] {
        queues.send("dead", body.to_owned()).expect("a queue");
    }
    let visibility = Duration::from_secs(30);
    let receive = |max| queues.receive("http://x/0/dead", max, Some(visibility)).expect("a queue");
    let bodies = |received: &[Received]| -> Vec<String> {
        received.iter().map(|r| r.message.body.clone()).collect()
    };
    let first = receive(2);
    assert_eq!(bodies(&first), ["a", "b"]);
    assert_eq!(bodies(&receive(10)), ["c"]);
    assert!(receive(10).is_empty());
    assert!(queues.delete("dead", &first[0].receipt_handle).expect("a queue"));
    assert_eq!(queues.messages()["dead"].len(), 2);

    tokio::time::advance(visibility).await;
    assert_eq!(bodies(&receive(10)), ["b", "c"]);
    let late = queues.delete("dead", &first[1].receipt_handle).expect("a queue");
    assert!(!late, "another received it since");
}
/// A FIFO queue and its dead-letter queue, which gets messages that were received twice.
fn in_order() -> Queues {
    let fifo = |name: &str| QueueResource { is_fifo: true, ..QueueResource::named(name.into()) };
    let dead_letters = RedriveTarget { queue: "arn:aws:sqs:x:0:dead".to_owned(), received_max: 2 };
    let orders = QueueResource {
        deduplicates_by_group: true,
        visibility: Duration::from_secs(60),
        dead_letters: Some(dead_letters),
        ..fifo("orders")
    };
    Queues::of_template(&[orders, fifo("dead")])
}

fn order(group: &str, id: &str) -> MessageOrder {
    MessageOrder { group: Some(group.to_owned()), deduplication: Some(id.to_owned()) }
}

#[tokio::test(start_paused = true)]
async fn a_group_comes_in_order_and_waits_for_its_hidden_message() {
    let queues = in_order();
    let put = |body: &str, group, id| {
        queues.put("orders", body.to_owned(), BTreeMap::new(), order(group, id)).expect("a queue")
    };
    let first = put("a1", "a", "1");
    put("a2", "a", "2");
    put("b1", "b", "1");
    assert_eq!(put("again", "a", "1"), first);
    let receive = |max| queues.receive("orders", max, None).expect("a queue");
    let bodies = |received: &[Received]| -> Vec<String> {
        received.iter().map(|r| r.message.body.clone()).collect()
    };
    let received = receive(1);
    assert_eq!(bodies(&received), ["a1"]);
    assert_eq!(received[0].system["MessageGroupId"], "a");
    assert_eq!(bodies(&receive(10)), ["b1"], "the group a waits");
    assert!(queues.delete("orders", &received[0].receipt_handle).expect("a queue"));
    let received = receive(10);
    assert_eq!(bodies(&received), ["a2"]);
    assert!(queues.hide("orders", &received[0].receipt_handle, Duration::ZERO).expect("a queue"));
    let received = receive(10);
    assert_eq!(received[0].system["ApproximateReceiveCount"], "2");

    tokio::time::advance(Duration::from_secs(60)).await;
    // The message of a was received twice, and the one of b once.
    assert_eq!(bodies(&receive(10)), ["b1"]);
    assert_eq!(queues.messages()["dead"][0].body, "a2");
    assert_eq!(queues.messages()["dead"][0].group.as_deref(), Some("a"));
    tokio::time::advance(DEDUPLICATION).await;
    assert_ne!(put("a1 again", "a", "1"), first);
}

#[tokio::test]
async fn a_fifo_queue_names_what_a_message_lacks() {
    let queues = in_order();
    for (order, lacking) in [
        (MessageOrder::default(), "MessageGroupId"),
        (MessageOrder { deduplication: None, ..order("a", "1") }, "MessageDeduplicationId"),
    ] {
        let refused = queues.put("orders", "x".to_owned(), BTreeMap::new(), order);
        let refused = refused.expect_err("refused").to_string();
        assert_eq!(refused, format!("orders is a FIFO queue: a message needs {lacking}"));
    }
}
