//! DynamoDB accepts an append at a limit. Above the limit nothing is sent, and the error names the numbers.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_aws::item_bytes;
use ringfence_core::{
    ACTIONS_MAX, Append, BOUNDARY_BYTES_MAX, Catalog, CatalogError, CommandRecord, EVENT_BYTES_MAX,
    Envelope, Event, EventLog, EventSchema, LogError, MemoryLog, Name, NewEvent, Plan, Query,
    QueryItem, TRANSACTION_BYTES_MAX, TYPES_MAX, Tag, events,
};
use serde_json::{Value, json};

use crate::reads::{self, noted, seen};
use crate::stack::{Stack, append, committed, envelope};

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

/// Checks that nothing was written. A request may have looked for the end of an unread partition.
#[track_caller]
fn nothing_written(stack: &Stack) {
    let sent: Vec<_> = stack.wire.take().into_iter().map(|exchange| exchange.operation).collect();
    assert!(sent.iter().all(|operation| operation == "Query"), "{sent:?}");
}

/// Appends events at the limit, then events above it. Returns the error.
async fn check(at: Vec<NewEvent>, above: Vec<NewEvent>) -> String {
    let stack = Stack::start(catalog()).await;
    stack.seed(at).await;
    stack.wire.forget();
    let error = append(&stack.log(), above, &envelope()).await.expect_err("above the limit");
    assert!(
        matches!(error, LogError::Limit(_) | LogError::Filing(_) | LogError::Unstorable { .. }),
        "{error:?}"
    );
    nothing_written(&stack);
    error.to_string()
}

#[tokio::test]
async fn actions_of_a_transaction() {
    let events = |actions| (0..actions).map(|_| written("p", 1).into()).collect();
    for at in [1, ACTIONS_MAX - 1, ACTIONS_MAX] {
        let error = check(events(at), events(ACTIONS_MAX + 1)).await;
        assert_eq!(
            error,
            "the command's transaction: 101 actions, limit 100; \
             read and write fewer things in one decision"
        );
    }
}

/// Appends events under an idempotency key of this length in bytes.
async fn recorded(stack: &Stack, events: usize, key: usize) -> Result<(), String> {
    let record = CommandRecord::new("write", &"k".repeat(key), &json!({}));
    let events = (0..events).map(|_| written("p", 1).into()).collect();
    let append = Append { events, seen: None, record: Some(&record), envelope: &envelope() };
    let appended = stack.log().append(append).await;
    appended.map(|_| ()).map_err(|error| error.to_string())
}

#[tokio::test]
async fn the_record_of_a_command_is_an_action_too() {
    let stack = Stack::start(catalog()).await;
    let error = recorded(&stack, ACTIONS_MAX, 1).await.expect_err("101 actions");
    assert!(error.starts_with("the command's transaction: 101 actions, limit 100"), "{error}");
    nothing_written(&stack);
    recorded(&stack, ACTIONS_MAX - 1, 1).await.expect("100 actions");
}

#[tokio::test]
async fn bytes_of_an_idempotency_key() {
    let stack = Stack::start(catalog()).await;
    let longest = 2_048 - "command#write#".len();
    let error = recorded(&stack, 1, longest + 1).await.expect_err("a key of 2,049 bytes");
    assert_eq!(error, "the idempotency key: 2049 bytes, limit 2048; use a shorter one");
    nothing_written(&stack);
    recorded(&stack, 1, longest).await.expect("a key of 2,048 bytes");
}

#[tokio::test]
async fn bytes_of_an_event() {
    let stack = Stack::start(catalog()).await;
    stack.seed(events![written("p", 0)]).await;
    let items = stack.items().await;
    let empty = items.iter().find(|item| item.contains_key("event")).map(item_bytes);
    let text = EVENT_BYTES_MAX - empty.expect("the event's item");
    // In another partition, so both have the same slot and time.
    let error = check(events![written("p", text)], events![written("q", text + 1)]).await;
    let expected = "Written: 358401 bytes, limit 358400; \
                    keep large payloads elsewhere and refer to them";
    assert_eq!(error, expected);
}

#[tokio::test]
async fn bytes_of_a_transaction() {
    let events = |page, last| {
        let full = (0..12).map(|_| written(page, 348_000).into());
        full.chain(events![written(page, last)]).collect::<Vec<_>>()
    };
    let stack = Stack::start(catalog()).await;
    let too_large = append(&stack.log(), events("p", 348_000), &envelope()).await;
    let Err(LogError::Limit(limit)) = too_large else { panic!("{too_large:?}") };
    assert_eq!(limit.limit, TRANSACTION_BYTES_MAX as u64);
    let above = usize::try_from(limit.found - limit.limit).expect("a few bytes");
    let at = 348_000 - above;
    let error = check(events("p", at), events("q", at + 1)).await;
    assert_eq!(
        error,
        "the command's transaction: 4194305 bytes, limit 4194304; \
         write fewer or smaller events in one decision"
    );
}

#[tokio::test]
async fn bytes_of_a_transaction_include_the_index_items() {
    let schema = EventSchema { read_by_type: true, ..Written::SCHEMA };
    let stack = Stack::start(Catalog::new("library", [schema])).await;
    let events = |n| (0..n).map(|_| written("p", 300_000).into()).collect();
    // Each event is stored twice: 4.2 MB.
    let error = append(&stack.log(), events(7), &envelope()).await.expect_err("above the limit");
    assert!(error.to_string().starts_with("the command's transaction: 42"), "{error}");
    nothing_written(&stack);
    stack.seed(events(6)).await;
}

/// A catalog of this many types in one partition. The partition's fence counts them.
fn types(count: usize) -> (Catalog, Vec<Name>) {
    let names: Vec<Name> = (0..count).map(|n| format!("T{n:03}").into()).collect();
    let schema = |name: &Name| EventSchema { name: name.clone(), fenced: true, ..Written::SCHEMA };
    let catalog = Catalog::new("library", names.iter().map(schema));
    (catalog.expect("free of contradictions"), names)
}

#[tokio::test]
async fn event_types_of_the_condition_on_one_boundary_as_in_memory() {
    let (catalog, names) = types(TYPES_MAX + 1);
    let stack = Stack::start(Ok(catalog)).await;
    let event =
        |page: &str, name: &Name| NewEvent { event_type: name.clone(), ..written(page, 1).into() };
    let mut there = Vec::new();
    for names in names.chunks(90) {
        there.extend(stack.seed(names.iter().map(|name| event("p", name)).collect()).await);
    }
    stack.wire.forget();
    let append = async |page: &str, types: &[Name]| {
        let tags = vec![Tag::new("pageId", page)];
        let items = vec![QueryItem { tags, types: types.to_vec() }];
        let plan = Plan::new(&Query { items }, &stack.catalog).expect("a route");
        let of_page: Vec<_> = there
            .iter()
            .filter(|e| e.partition.as_str() == format!("pageId:{page}"))
            .cloned()
            .collect();
        let seen = seen(&plan, &of_page);
        let events = vec![event("other", &names[0])];
        let envelope = envelope();
        let append =
            |events| Append { events, seen: Some(&seen), record: None, envelope: &envelope };
        let in_memory =
            MemoryLog::of(stack.catalog.clone(), there.clone()).expect("the same events");
        let kept = in_memory.append(append(events.clone())).await.map_err(|it| it.to_string());
        let appended = stack.log().append(append(events)).await.map_err(|it| it.to_string());
        assert_eq!(kept.as_ref().err(), appended.as_ref().err());
        appended
    };
    for page in ["p", "empty"] {
        let error = append(page, &names).await.expect_err("above the limit");
        let (limit, advice) =
            ("101 event types, limit 100", "read fewer event types in one decision");
        assert_eq!(error, format!("the condition on pageId:{page}: {limit}; {advice}"));
    }
    nothing_written(&stack);
    for page in ["p", "empty"] {
        append(page, &names[..TYPES_MAX]).await.expect("at the limit");
    }
}

#[tokio::test]
async fn a_type_with_a_long_name_is_read_and_conditioned_on() {
    let name: Name = "T".repeat(255).into();
    let schema = EventSchema { name: name.clone(), read_by_type: true, ..Written::SCHEMA };
    let stack = Stack::start(Catalog::new("library", [schema])).await;
    let event = || NewEvent { event_type: name.clone(), ..written("p", 1).into() };
    let appended = stack.seed(vec![event()]).await;
    let items = vec![QueryItem { tags: vec![], types: vec![name.clone()] }];
    let plan = Plan::new(&Query { items }, &stack.catalog).expect("it is declared");
    let (log, envelope) = (stack.log(), envelope());
    let conditional = |seen| Append {
        events: vec![event()],
        seen: Some(seen),
        record: None,
        envelope: &envelope,
    };
    let nothing = seen(&plan, &[]);
    let conflict = log.append(conditional(&nothing)).await;
    assert!(matches!(conflict, Err(LogError::Conflict(_))), "{conflict:?}");
    let one = seen(&plan, &appended);
    committed(log.append(conditional(&one)).await);
    stack.check_fences().await;
}

#[tokio::test]
async fn a_repeated_tag_counts_once() {
    let stack = Stack::start(reads::catalog()).await;
    let mut twice: NewEvent = noted("b", "r", "").into();
    twice.tags.extend(twice.tags.clone());
    stack.seed(vec![twice]).await;
    let fences = stack.items().await.into_iter().filter(|item| item.contains_key("head"));
    let counts: BTreeMap<_, _> = fences
        .map(|fence| (fence["id"].as_s().cloned().ok(), fence["cnt#Noted"].as_n().cloned().ok()))
        .collect();
    let ids = ["fence#bookId:b#readerId:r", "fence#readerId:r"];
    assert_eq!(counts, ids.map(|id| (Some(id.to_owned()), Some("1".to_owned()))).into());
}

#[tokio::test]
async fn an_empty_value_makes_no_partition_and_is_otherwise_kept() {
    #[derive(Clone, Debug, PartialEq, Event)]
    struct Signed {
        #[tag(partition)]
        page_id: String,
        #[tag(cross_partition)]
        hand_ids: Vec<String>,
    }
    let stack = Stack::start(Catalog::new("library", [Signed::SCHEMA])).await;
    let signed = |page: &str| {
        let hand_ids = vec![String::new(), "h".to_owned()];
        events![Signed { page_id: page.to_owned(), hand_ids }]
    };
    let error = append(&stack.log(), signed(""), &envelope()).await.expect_err("no partition");
    assert_eq!(error.to_string(), "Signed needs a value for its partition tag pageId");
    nothing_written(&stack);
    let appended = stack.seed(signed("p")).await;
    assert_eq!(appended[0].tags.len(), 3);
    let items = stack.items().await;
    let ids: BTreeSet<_> = items.iter().map(|item| item["id"].as_s().expect("a text")).collect();
    let expected = ["fence#handId:h", "pageId:p", "tag#handId:h"];
    assert_eq!(ids, expected.map(str::to_owned).iter().collect());
}

#[tokio::test]
async fn bytes_of_a_boundary() {
    let longest = BOUNDARY_BYTES_MAX - "pageId:".len();
    let page = |bytes| events![written(&"p".repeat(bytes), 1)];
    let error = check(page(longest), page(longest + 1)).await;
    assert_eq!(error, "tag pageId makes a boundary of 2037 bytes, limit 2036");
}

#[tokio::test]
async fn levels_and_numbers_of_a_payload() {
    let data = |data: Value| vec![NewEvent { data, ..written("p", 1).into() }];
    let nested = |levels| (1..levels).fold(json!(1), |inner, _| json!([inner]));
    let error = check(data(json!({ "deep": nested(29) })), data(json!({ "deep": nested(30) })));
    let error = error.await;
    assert!(error.starts_with("data.deep[0][0]"), "{error}");
    let expected = "the value nests deeper than 30 levels; nest it less";
    assert!(error.ends_with(expected), "{error}");

    let number = |n: f64| data(json!({ "price": [n] }));
    let error = check(number(9e125), number(1e126)).await;
    assert_eq!(
        error,
        "data.price[0]: the number is of the order 1E126, the limits are 1E-130 and 9.99E+125; \
         send it as text"
    );
}

#[tokio::test]
async fn a_field_of_a_payload_has_a_name() {
    let data = |name: &str| {
        let event = NewEvent { data: json!({ "rows": [{ name: 1 }] }), ..written("p", 1).into() };
        vec![event]
    };
    let error = check(data("x"), data("")).await;
    assert_eq!(error, "data.rows[0]: a field in it has an empty name; give it a name");
    let error = check(data(&"x".repeat(65_535)), data(&"x".repeat(65_536))).await;
    assert_eq!(
        error,
        "data.rows[0]: a field in it has a name of 65536 bytes, the limit is 65535; \
         use a shorter name"
    );
}

#[tokio::test]
async fn metadata_with_reserved_names() {
    let stack = Stack::start(catalog()).await;
    for key in [
        "id",
        "position",
        "at",
        "appendId",
        "rest",
        "slot",
        "expiresAt",
        "tag_pageId",
        "cnt#Written",
        "head",
        "indexOf",
    ] {
        let metadata = serde_json::from_value(json!({ key: 1 }));
        // Metadata may be refused when it is read; it is never written.
        if let Ok(metadata) = metadata {
            let envelope = Envelope { metadata, ..envelope() };
            let appended = append(&stack.log(), events![written("p", 1)], &envelope).await;
            appended.expect_err(key);
        }
        nothing_written(&stack);
    }
}
