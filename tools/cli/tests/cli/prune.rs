//! `ringfence documents prune`.

use ringfence_aggregate_log::{AggregateKey, AggregateTable, NewAggregateEvent, PushPlace};
use ringfence_aws::Clock;
use ringfence_core::{BoundaryId, Envelope};
use ringfence_document_log::{
    Batch, DocumentLog, DynamoStore, Payload, StreamAppend, StreamAppended, StreamName, TipLimits,
};
use ringfence_feed::Partition;
use serde_json::{Value, json};

use crate::data::export;
use crate::world::{AGGREGATES, DOCUMENTS, EVENTS, World};

const PRUNE: [&str; 6] = ["documents", "prune", "--context", "carts", "--older-than", "30d"];
/// A day in milliseconds.
const DAY_MS: u64 = 24 * 3_600 * 1_000;

fn cart(id: &str) -> StreamName {
    StreamName::new("carts", id).unwrap()
}

/// Appends events of this age after a Tip, one at a time, two to an item. With a name, adds a snapshot.
async fn append(
    world: &World,
    id: &str,
    (events, days): (u32, u64),
    mut tip: Option<Batch>,
    snapshot: Option<&str>,
) -> Option<Batch> {
    let clock = Clock::fixed(Clock::system().now_ms() - days * DAY_MS);
    let store = DynamoStore::new(world.client.clone(), DOCUMENTS);
    let limits = TipLimits { events_max: Some(2), ..TipLimits::default() };
    let log = DocumentLog::new(store, clock).with_limits(limits);
    for items in 0..events {
        let append = StreamAppend {
            stream: &cart(id),
            known: tip.as_ref(),
            by_etag: false,
            events: vec![Payload::new("CheckedOut", Some(json!({ "items": items })))],
            unfolds: snapshot
                .map(|name| Payload::new(name, Some(json!(null))))
                .into_iter()
                .collect(),
            envelope: &Envelope::default(),
        };
        match log.append(append).await.unwrap() {
            StreamAppended::Written(written) => tip = Some(written),
            StreamAppended::Conflict(_) => unreachable!("nobody else writes"),
        }
    }
    tip
}

fn sorted(printed: &str) -> Vec<&str> {
    let mut lines: Vec<_> = printed.lines().collect();
    lines.sort_unstable();
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_lose_old_events_that_are_indexed_and_that_no_decision_needs() {
    let world = World::start().await;
    let snapshot = Some("CartSnapshot");
    let index = async |ids: &[&str]| {
        world.index_all(ids.iter().map(|id| Partition::from(cart(id).partition()))).await;
    };
    // `a` has five old events and a young one, all indexed; `b` has five old ones, three of them indexed; `c` has no
    // snapshot that decisions read.
    let tip = append(&world, "a", (5, 40), None, snapshot).await;
    append(&world, "a", (1, 2), tip, snapshot).await;
    let tip = append(&world, "b", (3, 40), None, snapshot).await;
    append(&world, "c", (3, 40), None, Some("OfBefore")).await;
    append(&world, "d", (3, 2), None, snapshot).await;
    index(&["a", "b", "c", "d"]).await;
    append(&world, "b", (2, 40), tip, snapshot).await;

    let kept = [
        "kept     1 old events in items with later ones",
        "kept     2 old events that the index does not have yet",
        "kept     carts-c: it has no CartSnapshot, from which decisions could begin: the next append writes one",
    ];
    let dry = world.run(&[&PRUNE[..], &["--dry-run"]].concat());
    let expected = [
        "4 documents: at most 8 events would go",
        kept[1],
        kept[2],
        "to prune carts-a: 5 events",
        "to prune carts-b: 3 events",
    ];
    assert_eq!((dry.0, sorted(&dry.1)), (1, expected.to_vec()), "{}", dry.1);
    assert_eq!(world.json(&["documents", "verify"]).1["events"], json!(17));

    // The third event of `b` is in a calf with the fourth.
    let done = world.run(&PRUNE);
    let expected = [
        "4 documents: 7 events are gone",
        kept[0],
        kept[1],
        kept[2],
        "pruned   carts-a: 5 events",
        "pruned   carts-b: 2 events",
    ];
    assert_eq!((done.0, sorted(&done.1)), (1, expected.to_vec()), "{}", done.1);
    let whole = world.run(&["documents", "verify"]);
    assert!(whole.0 == 0 && whole.1.starts_with("4 streams, 10 events"), "{}", whole.1);

    // Once the rest is indexed, it is pruned too, and the index has every event.
    index(&["b"]).await;
    let (status, report) = world.json(&[&PRUNE[..], &["--id", "b"]].concat());
    let expected = json!({
        "dryRun": false, "streams": 1, "pruned": [{ "stream": "carts-b", "events": 3 }],
        "kept": [], "unindexed": 0, "deferred": 0,
    });
    assert_eq!((status, report), (0, expected));
    let (_, index) = world.run(&["index", "verify"]);
    assert!(index.ends_with("17 entries, 7 events: all in order\n"), "{index}");
    // The remaining events can be read in both directions.
    for more in [&[][..], &["--backwards"]] {
        let read = [&["read", "carts-a", "--json"], more].concat();
        let (status, read) = world.run(&read);
        assert!(status == 0 && read.lines().count() == 1, "{more:?}: {read}");
    }
    let said = world.error(&[&PRUNE[..], &["--id", "z"]].concat());
    assert!(said.starts_with("error: the table has no document carts-z: "), "{said}");
    let said = world.error(&[&PRUNE[..], &["--index-table", EVENTS]].concat());
    assert_eq!(
        said,
        "error: events is the table of a DCB log, which --table names; see `ringfence verify`\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_goes_on_where_events_were_pruned() {
    let (world, copy) = (World::start().await, World::start().await);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events");
    let import = ["import", "--from", "jsonl", path.to_str().unwrap()];
    let index = async || {
        let streams = ["a", "b"].map(|id| Partition::from(cart(id).partition()));
        world
            .index_all(
                streams.into_iter().chain([Partition::from(BoundaryId::stored("customers#ada"))]),
            )
            .await;
        export(&world, &path, &[]);
    };
    let counts = |said: &Value| ["events", "imported", "before", "gone"].map(|it| said[it].clone());
    let tips = [
        append(&world, "a", (4, 40), None, None).await,
        append(&world, "b", (3, 40), None, None).await,
    ];
    // Clocks of other programs may differ. An export is copied unchanged.
    let key = AggregateKey::new("customers", "ada").unwrap();
    let table = AggregateTable::new(world.client.clone(), AGGREGATES, Clock::system());
    for ms in [2_000, 1_000] {
        let event = NewAggregateEvent {
            event_type: "CustomerRenamed".to_owned(),
            payload: Some(json!({ "name": "Ada" })),
            metadata: None,
            timestamp_ms: Some(ms),
        };
        table.push_event(&key, PushPlace::End, event).await.unwrap();
    }
    index().await;
    assert_eq!(counts(&copy.json(&import).1), [9, 9, 0, 0]);

    for (id, before) in [("a", 2), ("b", 3)] {
        copy.documents().prune(&cart(id), before, &Envelope::default()).await.unwrap();
    }
    assert_eq!(counts(&copy.json(&import).1), [4, 0, 4, 5]);
    for (id, tip) in ["a", "b"].into_iter().zip(tips) {
        append(&world, id, (1, 2), tip, None).await;
    }
    index().await;
    let dry = copy.run(&[&import[..], &["--dry-run"]].concat()).1;
    let left_out = "left out  5 events that their streams do not have any more\n";
    assert!(
        dry.starts_with(left_out) && dry.ends_with("\n2 events can be imported, 4 are there\n"),
        "{dry}"
    );
    assert_eq!(counts(&copy.json(&import).1), [6, 2, 4, 5]);
    let whole = copy.run(&["documents", "verify"]).1;
    assert!(whole.starts_with("2 streams, 4 events"), "{whole}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_whose_documents_can_not_be_pruned_is_named() {
    let world = World::start().await;
    let prune = |context| ["documents", "prune", "--context", context, "--older-than", "30d"];
    let said = world.error(&prune("customers"));
    let expected =
        "this build has no context customers on the document log: its contexts are carts";
    assert_eq!(said, format!("error: {expected}\n"));
}
