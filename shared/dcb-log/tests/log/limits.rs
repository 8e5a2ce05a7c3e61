//! At a limit the store takes it; one above it nothing is sent, and the error names the numbers.

use ringfence::{Catalog, CatalogError, Envelope, Event, LogError, NewEvent, events};
use ringfence_dcb_log::{EVENT_BYTES_MAX, TRANSACTION_ACTIONS_MAX};
use ringfence_dynamo::item_bytes;
use serde_json::{Value, json};

use crate::stack::{Stack, append, envelope};

#[derive(Clone, Debug, PartialEq, Event)]
struct Written {
    #[tag(partition)]
    page_id: String,
    text: String,
}

fn catalog() -> Result<Catalog, CatalogError> {
    Catalog::new("library", [Written::SCHEMA])
}

fn written(page: &str, bytes: usize) -> Written {
    Written { page_id: page.to_owned(), text: "x".repeat(bytes) }
}

/// Appends what is at the limit, then what is above it, and returns the error.
async fn check(at: Vec<NewEvent>, above: Vec<NewEvent>) -> String {
    let stack = Stack::start(catalog()).await;
    stack.seed(at).await;
    let _ = stack.wire.take();
    let error = append(&stack.log(), above, &envelope()).await.expect_err("above the limit");
    assert!(matches!(error, LogError::Limit(_) | LogError::Filing(_)), "{error:?}");
    assert!(stack.wire.take().is_empty(), "something was sent");
    error.to_string()
}

#[tokio::test]
async fn actions_of_a_transaction() {
    let events = |n| (0..n).map(|_| written("p", 1).into()).collect();
    // The fence is an action too.
    let error = check(events(TRANSACTION_ACTIONS_MAX - 1), events(TRANSACTION_ACTIONS_MAX)).await;
    assert_eq!(
        error,
        "the command's transaction: 101 actions, limit 100; \
         read and write fewer things in one decision"
    );
}

#[tokio::test]
async fn bytes_of_an_event() {
    let stack = Stack::start(catalog()).await;
    stack.seed(events![written("p", 0)]).await;
    let items = stack.items().await;
    let empty = items.iter().find(|item| item.contains_key("event")).map(item_bytes);
    let text = EVENT_BYTES_MAX - empty.expect("the event's item");
    let error = check(events![written("p", text)], events![written("p", text + 1)]).await;
    let expected = "Written: 358401 bytes, limit 358400; \
                    keep large payloads elsewhere and refer to them";
    assert_eq!(error, expected);
}

#[tokio::test]
async fn bytes_of_a_transaction() {
    let events = |n| (0..n).map(|_| written("p", 348_000).into()).collect();
    let error = check(events(12), events(13)).await;
    assert!(error.starts_with("the command's transaction: 45"), "{error}");
    assert!(error.contains("bytes, limit 4194304"), "{error}");
}

#[tokio::test]
async fn bytes_of_a_boundary() {
    let longest = 2_048 - "fence#pageId:".len();
    let page = |bytes| events![written(&"p".repeat(bytes), 1)];
    let error = check(page(longest), page(longest + 1)).await;
    assert_eq!(error, "tag pageId makes a boundary of 2043 bytes, limit 2042");
}

#[tokio::test]
async fn levels_and_numbers_of_a_payload() {
    let data = |data: Value| vec![NewEvent { data, ..written("p", 1).into() }];
    let nested = |levels| (1..levels).fold(json!(1), |inner, _| json!([inner]));
    let error = check(data(json!({ "deep": nested(31) })), data(json!({ "deep": nested(32) })));
    let error = error.await;
    assert!(error.starts_with("data.deep[0][0]"), "{error}");
    assert!(error.ends_with("33 levels of nesting or more, limit 32; nest less"), "{error}");

    let number = |n: f64| data(json!({ "price": [n] }));
    let error = check(number(9e125), number(1e126)).await;
    assert_eq!(error, "data.price[0]: 126 zeros, limit 125; store it as text");
}

#[tokio::test]
async fn digits_of_a_position() {
    let stack = Stack::start(catalog()).await;
    stack.clock.set(10_000_000_000_000);
    let appended = append(&stack.log(), events![written("p", 1)], &envelope()).await;
    assert!(matches!(appended, Err(LogError::Position(_))), "{appended:?}");
    assert!(stack.wire.take().is_empty(), "something was sent");
}

#[tokio::test]
async fn metadata_that_an_item_uses_for_itself() {
    let stack = Stack::start(catalog()).await;
    for key in ["id", "expiresAt", "tag_pageId", "cnt#Written", "head", "indexOf"] {
        let metadata = serde_json::from_value(json!({ key: 1 }));
        // It may be refused where it is read; it is never written.
        if let Ok(metadata) = metadata {
            let envelope = Envelope { metadata, ..envelope() };
            let appended = append(&stack.log(), events![written("p", 1)], &envelope).await;
            appended.expect_err(key);
        }
        assert!(stack.wire.take().is_empty(), "{key} was sent");
    }
}
