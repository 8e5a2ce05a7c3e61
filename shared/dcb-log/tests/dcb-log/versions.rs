//! Events of older versions in the table: read through the partition, through an index, and as index items.

use futures::TryStreamExt;
use ringfence_aws::{Clock, Item};
use ringfence_core::{
    Catalog, CatalogError, Consistency, Decisions, EventLog, EventSchema, LogError, NewEvent, Plan,
    Query, QueryItem, SequencedEvent, Tag, TagSchema, handle,
};
use serde_json::json;

use self::evolving::{KNOWN, Note, history, newest, schemas};
use crate::stack::{NOW_MS, Stack, append, committed, envelope};

#[path = "../../../core/tests/core/evolving.rs"]
mod evolving;

type Log = ringfence_dcb_log::Dcb;

fn catalog_of(schemas: Vec<EventSchema>) -> Result<Catalog, CatalogError> {
    Catalog::new("shelf", schemas)
}

/// The catalog of a program that also reads items by their shelf: through an index, or as index items.
fn catalog(program: u32, strong: bool) -> Catalog {
    let mut schemas = schemas(program);
    let shelf = TagSchema {
        key: "shelfId".into(),
        partition: false,
        cross_partition: true,
        strong,
        many: false,
        required: true,
        blind: false,
        computed: true,
    };
    for schema in schemas.iter_mut().filter(|schema| schema.name == "ItemAdded") {
        schema.tags.to_mut().push(shelf.clone());
    }
    catalog_of(schemas).expect("free of contradictions")
}

/// The event on a shelf.
fn shelved(mut event: NewEvent) -> NewEvent {
    let shelf = (event.event_type == "ItemAdded").then(|| Tag::new("shelfId", "s"));
    event.tags.extend(shelf);
    event
}

fn tags_of(item: &Item) -> usize {
    item["tags"].as_l().expect("a list").len()
}

#[tokio::test]
async fn a_decision_reads_each_version_as_the_newest_by_every_access() {
    for strong in [false, true] {
        let (envelope, newest_catalog) = (envelope(), catalog(3, strong));
        let stack = Stack::start(Ok(newest_catalog.clone())).await;
        for (n, (program, event)) in (0..).zip(history("i")) {
            let log = stack.log_of(&catalog(program, strong), &Clock::fixed(NOW_MS + n));
            committed(append(&log, vec![shelved(event)], &envelope).await);
        }
        // Version 1 is stored as before, and a later version in an element of the tags.
        let mut items = stack.items().await;
        items.retain(|item| {
            item.get("event").is_some_and(|name| name.as_s().unwrap() == "ItemAdded")
        });
        items.sort_by_key(|item| item["position"].as_n().unwrap().clone());
        assert_eq!(items.iter().map(tags_of).collect::<Vec<_>>(), [2, 3, 3]);

        let log = stack.log_of(&newest_catalog, &Clock::fixed(NOW_MS + 9));
        let item =
            QueryItem { tags: vec![Tag::new("shelfId", "s")], types: vec!["ItemAdded".into()] };
        let plan = Plan::new(&Query { items: vec![item] }, &newest_catalog).expect("a route");
        let read = log.read(&plan, Consistency::Eventual, &envelope).try_collect().await;
        let read: Vec<SequencedEvent> = read.expect("a read");
        let current = read.iter().map(|it| newest_catalog.current(it).expect("known").into_event());
        let titles = current.map(|it| (it.data["title"].clone(), it.data["cents"].clone()));
        let expected = [("mug", 400), ("cup", 300), ("jug", 700)];
        assert_eq!(titles.collect::<Vec<_>>(), expected.map(|(t, c)| (json!(t), json!(c))));

        let note = Note { item_id: "i".to_owned() };
        let decisions = Decisions::new(0);
        handle(&log, &newest_catalog, &decisions, &note, &envelope).await.expect("accepted");
        let noted = log.scan().try_collect::<Vec<_>>().await.expect("every event").pop();
        assert_eq!(noted.expect("the note").data["known"], json!(KNOWN));

        // The previous program can't read the last version, and returns an error.
        let older = catalog(2, strong);
        let log = stack.log_of(&older, &Clock::fixed(NOW_MS + 20));
        let alone = stack.log_of(&newest_catalog, &Clock::fixed(NOW_MS + 10));
        committed(append(&alone, vec![shelved(newest("j"))], &envelope).await);
        let note = Note { item_id: "j".to_owned() };
        let error = handle(&log, &older, &decisions, &note, &envelope).await.unwrap_err();
        let is_newer = matches!(&error, ringfence_core::HandleError::Log(LogError::NewerVersion(it)) if it.version == 3);
        assert!(is_newer, "{error:?}");
    }
}
