//! Events of older versions in Castore's layout, beside events of other writers.

use ringfence_aggregate_log::{AggregateLog, NewAggregateEvent, PushPlace, Range};
use ringfence_core::{
    Append, Appended, Catalog, CatalogError, Decisions, Envelope, EventLog, EventSchema, LogError,
    handle,
};
use serde_json::{Value, json};

use self::evolving::{KNOWN, Known, Note, history, newest, schemas};
use crate::stack::{event, events, in_process, key};

#[path = "../../../../core/tests/core/evolving.rs"]
mod evolving;

type Log = ringfence_aggregate_log::Aggregates;

fn catalog_of(schemas: Vec<EventSchema>) -> Result<Catalog, CatalogError> {
    Catalog::of_streams("shelf", schemas)
}

fn catalog(program: u32) -> Catalog {
    catalog_of(schemas(program)).expect("free of contradictions")
}

#[tokio::test]
async fn each_version_is_read_as_the_newest_and_an_event_of_another_writer_as_the_first() {
    let ((table, clock), envelope) = (in_process(), Envelope::default());
    let log = |program| AggregateLog::new(table.clone(), catalog(program), clock.clone());
    let append = async |program, new| {
        let append = Append { events: vec![new], seen: None, record: None, envelope: &envelope };
        let appended = log(program).append(append).await.expect("an answer");
        assert!(matches!(appended, Appended::Committed(_)));
    };
    for (program, new) in history("i") {
        append(program, new).await;
    }
    let i = key("shelf", "i");
    let stored = events(&table, &i, Range::default()).await;
    let metadata: Vec<_> = stored.into_iter().map(|stored| stored.metadata).collect();
    let marked = |version| Some(json!({ "schema": { "ItemAdded": version } }));
    assert_eq!(metadata, [None, None, marked(2), marked(3)]);

    // The value of another writer under the same key has no meaning.
    let foreign = NewAggregateEvent {
        metadata: Some(json!({ "schema": 2 })),
        ..event("ItemAdded", json!({ "name": "pot", "price": 1 }))
    };
    table.push_event(&i, PushPlace::End, foreign).await.expect("pushed");
    let known: Vec<&str> = KNOWN.into_iter().chain(["pot for 100"]).collect();
    let folded = table.get_aggregate::<Known>(&catalog(3), &i, None).await.expect("a state");
    assert_eq!(folded.state.0, known);

    let decisions = Decisions::new(0);
    let note = |item: &str| Note { item_id: item.to_owned() };
    handle(&log(3), &catalog(3), &decisions, &note("i"), &envelope).await.expect("accepted");
    let noted = events(&table, &i, Range::NEWEST).await.remove(0);
    assert_eq!(noted.payload, Some(json!({ "known": known })) as Option<Value>);

    append(3, newest("j")).await;
    let error = handle(&log(2), &catalog(2), &decisions, &note("j"), &envelope).await.unwrap_err();
    assert!(
        matches!(error, ringfence_core::HandleError::Log(LogError::NewerVersion(_))),
        "{error:?}"
    );
}
