//! Index items: tags with several values and types read alone, on the wire and in the table.

use futures::TryStreamExt;
use ringfence_core::{
    Append, Catalog, CatalogError, Consistency, Event, EventLog, LogError, NewEvent, Plan, Query,
    QueryItem, Tag, events,
};
use ringfence_dcb_log::event_of_image;

use crate::reads::{put, read, seen};
use crate::render::append as rendered;
use crate::stack::{Stack, append, envelope};

/// A parcel goes from one depot to another. Both and the parcel determine the number of the journey.
#[derive(Clone, Debug, PartialEq, Event)]
#[event(read_by_type)]
struct Moved {
    #[tag(partition)]
    parcel_id: String,
    #[tag(key = "depot", cross_partition, strong)]
    from: String,
    #[tag(key = "depot", cross_partition, strong)]
    to: String,
}

/// A depot is shut.
#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct Shut {
    #[tag(key = "depot", partition, cross_partition, strong)]
    pub(crate) depot: String,
}

pub(crate) fn catalog() -> Result<Catalog, CatalogError> {
    Catalog::new("parcels", [Moved::SCHEMA, Shut::SCHEMA])
}

pub(crate) fn moved(parcel: &str, from: &str, to: &str) -> NewEvent {
    Moved { parcel_id: parcel.to_owned(), from: from.to_owned(), to: to.to_owned() }.into()
}

pub(crate) fn plan(stack: &Stack, tags: &[(&'static str, &str)]) -> Plan {
    let tags = tags.iter().map(|(key, value)| Tag::new(*key, *value)).collect();
    let items = vec![QueryItem { tags, types: vec!["Moved".into()] }];
    Plan::new(&Query { items }, &stack.catalog).expect("a route")
}

#[tokio::test]
async fn each_value_and_the_type_have_an_item_in_the_events_transaction() {
    let stack = Stack::start(catalog()).await;
    stack.seed(vec![moved("p", "x", "y:1")]).await;
    let [exchange] = &stack.take("TransactWriteItems")[..] else { panic!("not one transaction") };
    insta::assert_snapshot!(rendered(exchange));
}

#[tokio::test]
async fn index_items_show_the_whole_event() {
    let stack = Stack::start(catalog()).await;
    let appended = stack.seed(vec![moved("p", "x", "y"), moved("q", "y", "x")]).await;
    stack.seed(vec![moved("r", "u", "u")]).await;
    stack.check_fences().await;
    for (tags, expected) in [(&[("depot", "x")][..], 2), (&[], 3)] {
        let plan = plan(&stack, tags);
        stack.wire.forget();
        let log = stack.log();
        let read = log.read(&plan, Consistency::Strong, &envelope()).try_collect().await;
        let read: Vec<_> = read.expect("a read");
        assert_eq!((&read[..2], read.len()), (&appended[..], expected));
        // The query is on the table itself, therefore strong.
        let [query] = &stack.take("Query")[..] else { panic!("not one query") };
        assert_eq!(query.request["ConsistentRead"], true);
        assert!(query.request["IndexName"].is_null());
    }
}

#[tokio::test]
async fn scans_and_streams_do_not_take_an_index_item_for_an_event() {
    let stack = Stack::start(catalog()).await;
    let appended = stack.seed(vec![moved("p", "x", "y")]).await;
    let scanned: Vec<_> = stack.log().scan().try_collect().await.expect("a scan");
    assert_eq!(scanned, appended);
    let images = stack.items().await.into_iter().map(event_of_image);
    let events = images.map(|event| event.expect("an image")).filter(Option::is_some);
    assert_eq!(events.count(), 1);
}

#[tokio::test]
async fn a_fence_of_a_value_or_of_the_type_makes_a_conflict() {
    for (tags, then, conflicts) in [
        (&[("depot", "x")][..], moved("p", "y", "x"), true),
        (&[("depot", "x")], moved("p", "y", "z"), false),
        (&[], moved("p", "y", "z"), true),
    ] {
        let stack = Stack::start(catalog()).await;
        let plan = plan(&stack, tags);
        let seen = seen(&plan, &[]);
        stack.seed(vec![then]).await;
        let events = vec![moved("q", "u", "v")];
        let envelope = envelope();
        let append = Append { events, seen: Some(&seen), record: None, envelope: &envelope };
        let appended = stack.log().append(append).await;
        let conflict = matches!(appended, Err(LogError::Conflict(_)));
        assert_eq!(conflict, conflicts, "{tags:?}: {appended:?}");
    }
}

#[tokio::test]
async fn index_items_count_among_the_actions_of_a_transaction() {
    /// One event, and two actions for each guest.
    #[derive(Clone, Debug, PartialEq, Event)]
    struct Invited {
        #[tag(partition)]
        party_id: String,
        #[tag(cross_partition)]
        guest_ids: Vec<u32>,
    }
    let stack = Stack::start(Catalog::new("parties", [Invited::SCHEMA])).await;
    let invited = |guests| {
        let guest_ids = (0..guests).collect();
        events![Invited { party_id: "p".to_owned(), guest_ids }]
    };
    stack.seed(invited(49)).await;
    stack.check_fences().await;
    stack.wire.forget();
    let error = append(&stack.log(), invited(50), &envelope()).await.expect_err("101 actions");
    assert_eq!(
        error.to_string(),
        "the command's transaction: 101 actions, limit 100; \
         read and write fewer things in one decision"
    );
    assert!(stack.wire.take().is_empty(), "something was sent");
}

#[tokio::test]
async fn an_index_item_that_can_not_be_decoded_fails_the_read_and_is_named() {
    let stack = Stack::start(catalog()).await;
    let plan = plan(&stack, &[("depot", "x")]);
    let appended = stack.seed(vec![moved("p", "x", "y")]).await;
    assert_eq!(read(&stack, &plan).await.expect("a read"), appended);
    put(&stack, "tag#depot:x", 1, "indexOf", "Moved").await;
    let error = read(&stack, &plan).await.expect_err("no partition");
    assert_eq!(error.to_string(), "event tag#depot:x/1 can't be decoded");
}

#[tokio::test]
async fn an_index_item_is_in_no_index() {
    #[derive(Clone, Debug, PartialEq, Event)]
    #[event(read_by_type, read_as_composite)]
    struct Sealed {
        #[tag(partition)]
        parcel_id: String,
        #[tag(cross_partition)]
        clerk_id: String,
    }
    let stack = Stack::start(Catalog::new("parcels", [Sealed::SCHEMA])).await;
    stack.seed(events![Sealed { parcel_id: "p".to_owned(), clerk_id: "c".to_owned() }]).await;
    let items = stack.items().await;
    let indexes = |mark: &str| {
        let marked: Vec<_> = items.iter().filter(|item| item.contains_key(mark)).collect();
        let [item] = marked[..] else { panic!("not one item with {mark}") };
        item.keys().filter(|name| name.starts_with("tag_")).count()
    };
    assert_eq!((indexes("event"), indexes("indexOf")), (2, 0));
}
