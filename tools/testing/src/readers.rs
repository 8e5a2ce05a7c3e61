//! Compares the requests of functions that are not slices with their roles.

use std::collections::BTreeSet;
use std::time::Duration;

use ringfence_aggregate_log::{AggregateKey, AggregateTable, Push, PushPlace};
use ringfence_aws::wire::Exchange;
use ringfence_aws::{Clock, Retry};
use ringfence_core::kit::{fail, id};
use ringfence_core::{
    Append, Appended, BoundaryId, Catalog, Catalogs, Consistency, Envelope, Event, EventLog,
    NewEvent, Reads, SequencedEvent, id_type,
};
use ringfence_dcb_log::DcbLog;
use ringfence_document_log::{DocumentLog, DynamoStore, Payload, StreamName, TipLimits};
use ringfence_feed::{Index, Indexer, Partition, Until};
use ringfence_lambda::Issuers;
use ringfence_local::template::Template;
use ringfence_log::OpenSource;
use ringfence_stack::Members;
use ringfence_views::{Definition, Projector, View, ViewReader, project_views, query_views};
use serde_json::json;

use crate::Dynamo;
use crate::dynamo::tables;
use crate::requests::check_role_of;
use crate::written::Current;

/// The logical ids of the tables, which are their names too.
const EVENTS: &str = "EventTable";
pub(crate) const AGGREGATES: &str = "AggregateTable";
const DOCUMENTS: &str = "DocumentTable";
const INDEX: &str = "IndexTable";
pub(crate) const VIEWS: &str = "ViewTable";
/// Nothing here takes this long.
const LONG: Duration = Duration::from_secs(600);

id_type!(NoteId, "names a note");

/// A note is added to some rows.
#[derive(Clone, Debug, PartialEq, Event)]
struct Noted {
    #[tag(partition)]
    note_id: NoteId,
    rows: Vec<String>,
    /// The size of each row, in bytes.
    bytes: usize,
}

/// Rows are deleted.
#[derive(Clone, Debug, PartialEq, Event)]
struct Wiped {
    #[tag(partition)]
    note_id: NoteId,
    rows: Vec<String>,
}

#[derive(Reads)]
enum Consumed {
    Noted { rows: Vec<String>, bytes: usize },
    Wiped { rows: Vec<String> },
}

/// A row for each name in a note.
struct Notes;

#[ringfence::value]
struct Row {
    text: String,
}

impl View for Notes {
    const NAME: &'static str = "notes";
    type Reads = Consumed;
    type Row = Row;

    fn rows(event: &Consumed) -> Vec<String> {
        let (Consumed::Noted { rows, .. } | Consumed::Wiped { rows }) = event;
        rows.clone()
    }

    fn evolve(_: Option<Row>, _id: &str, event: &Consumed) -> Option<Row> {
        match event {
            Consumed::Noted { bytes, .. } => Some(Row { text: "x".repeat(*bytes) }),
            Consumed::Wiped { .. } => None,
        }
    }
}

pub(crate) fn noted(rows: &[&str], bytes: usize) -> NewEvent {
    let rows = rows.iter().map(|row| (*row).to_owned()).collect();
    Noted { note_id: id("n"), rows, bytes }.into()
}

/// The tables of the template, and a running clock.
pub(crate) struct World {
    pub(crate) dynamo: Dynamo,
    pub(crate) tables: Vec<&'static str>,
    clock: Clock,
}

impl World {
    /// A world with the template's tables and an event table.
    pub(crate) fn of(template: &Template) -> Self {
        let tables = tables(template);
        let all: BTreeSet<_> = tables.iter().copied().chain([EVENTS]).collect();
        let dynamo = Dynamo::with(template, &Vec::from_iter(all));
        Self { dynamo, tables, clock: Clock::system() }
    }

    fn log(&self) -> DcbLog {
        let catalog = Catalog::new("notes", [Noted::SCHEMA, Wiped::SCHEMA]);
        let catalog = catalog.unwrap_or_else(|error| fail("the catalog", error));
        DcbLog::new(self.dynamo.client.clone(), EVENTS, catalog, self.clock.clone())
    }

    fn aggregates(&self) -> AggregateTable {
        AggregateTable::new(self.dynamo.client.clone(), AGGREGATES, self.clock.clone())
    }

    /// Its Tips are small, so some events are in calves.
    fn documents(&self) -> DocumentLog<DynamoStore> {
        let limits = TipLimits { events_max: Some(3), ..TipLimits::default() };
        let store = DynamoStore::new(self.dynamo.client.clone(), DOCUMENTS);
        DocumentLog::new(store, self.clock.clone()).with_limits(limits)
    }

    pub(crate) fn index(&self) -> Index {
        Index::new(self.dynamo.client.clone(), INDEX, self.logs())
    }

    /// The logs of the stack.
    fn logs(&self) -> Vec<OpenSource> {
        let mut logs = vec![self.log().into()];
        logs.extend(self.tables.contains(&AGGREGATES).then(|| self.aggregates().into()));
        logs.extend(self.tables.contains(&DOCUMENTS).then(|| self.documents().into()));
        logs
    }

    fn projector(&self) -> Projector {
        Projector::new(
            self.dynamo.client.clone(),
            self.index(),
            VIEWS,
            Catalogs::default(),
            self.clock.clone(),
        )
    }

    pub(crate) async fn append(&self, events: Vec<NewEvent>) -> Vec<SequencedEvent> {
        let envelope = Envelope::default();
        let append = Append { events, seen: None, record: None, envelope: &envelope };
        match self.log().append(append).await.expect("an append") {
            Appended::Committed(events) => events,
            Appended::Repeated(_) => unreachable!("without a record"),
        }
    }

    pub(crate) async fn push(&self, events: u64) -> Partition {
        let key = AggregateKey::new("notes", "n").expect("a name");
        let event = |_| ringfence_aggregate_log::NewAggregateEvent {
            event_type: "Noted".to_owned(),
            payload: Some(json!({})),
            metadata: None,
            timestamp_ms: None,
        };
        let partition = Partition::from(BoundaryId::stored(key.to_string()));
        let push = Push { key, place: PushPlace::End, events: (0..events).map(event).collect() };
        self.aggregates().push_event_group(vec![push]).await.expect("a group");
        partition
    }

    async fn transact(&self, events: u64) -> Partition {
        let (stream, envelope) =
            (StreamName::new("notes", "n").expect("a name"), Envelope::default());
        let log = self.documents();
        let known = log.tip(&stream, Consistency::Strong, &envelope).await.expect("the Tip");
        let event = |_| Payload::new("Noted", Some(json!({ "text": "x".repeat(1_000) })));
        let append = ringfence_document_log::StreamAppend {
            stream: &stream,
            known: known.as_ref(),
            by_etag: false,
            events: (0..events).map(event).collect(),
            unfolds: Vec::new(),
            envelope: &envelope,
        };
        log.append(append).await.expect("an append");
        Partition::from(stream.partition())
    }

    pub(crate) async fn index_all(&self, partitions: Vec<Partition>) {
        let indexer = Indexer::new(self.logs(), self.dynamo.client.clone(), INDEX);
        for (partition, outcome) in indexer.index(partitions, Retry::default()).await {
            outcome.unwrap_or_else(|error| fail(partition, error));
        }
    }

    /// Appends an event, indexes it and forgets the requests.
    pub(crate) async fn publish(&self, event: NewEvent) -> SequencedEvent {
        let event = self.append(vec![event]).await.remove(0);
        self.index_all(vec![Partition::of(&event)]).await;
        self.dynamo.wire.forget();
        event
    }

    /// A round of project-views.
    async fn project(&self) {
        let views = [Definition::of::<Notes>()];
        let round = project_views::run_views(
            &self.projector(),
            &views,
            Until::Present,
            LONG,
            &self.clock,
            "r-1",
        )
        .await;
        assert_eq!(round.unfinished, Vec::<String>::new());
    }
}

/// The requests of a reader of rows of these views, which waits for an event.
pub(crate) async fn requests_of_rows(template: &Template, views: &[&'static str]) -> Vec<Exchange> {
    let world = World::of(template);
    let mut asked = Vec::new();
    for name in views {
        let mut view = Definition::of::<Notes>();
        view.name = name;
        let reader = ViewReader::new(world.dynamo.client.clone(), world.index(), VIEWS, &[view]);
        let event = world.publish(noted(&["a"], 0)).await;
        let (partition, slot) = (event.partition, event.slot);
        let wait = ringfence_views::Wait { partition, slot, most: Duration::ZERO };
        // It waits for an event before anything is projected, and reads a missing row.
        for (id, wait) in [("a", Some(&wait)), ("b", None)] {
            let read = reader.row(name, id, wait).await;
            read.unwrap_or_else(|error| fail(name, error));
        }
        asked.extend(world.dynamo.wire.take());
    }
    asked
}

/// Compares the requests of index-events with its role. Panics unless the role allows exactly them.
pub async fn check_role_of_index_events<M: Members>() {
    let current = Current::of::<M>();
    let template = current.template();
    let asked = requests_of_index_events(&World::of(&template)).await;
    check_role_of(&current, "IndexEvents", asked);
}

async fn requests_of_index_events(world: &World) -> Vec<Exchange> {
    let mut asked = Vec::new();
    // First the partitions are new. Later some of a document's new events are in a calf.
    for appends in [1, 3] {
        let mut partitions = Vec::new();
        if world.tables.contains(&EVENTS) {
            let events = world.append(vec![noted(&["a"], 0)]).await;
            partitions.extend(events.iter().map(Partition::of));
        }
        if world.tables.contains(&AGGREGATES) {
            partitions.push(world.push(3).await);
        }
        if world.tables.contains(&DOCUMENTS) {
            for _ in 0..appends {
                partitions.push(world.transact(50).await);
            }
        }
        world.dynamo.wire.forget();
        world.index_all(partitions).await;
        asked.extend(world.dynamo.wire.take());
    }
    asked
}

/// Compares the requests of project-views with its role. Panics unless the role allows exactly them.
pub async fn check_role_of_project_views<M: Members>() {
    let current = Current::of::<M>();
    if current.stack.rows().is_empty() {
        return;
    }
    let world = World::of(&current.template());
    let many: Vec<String> = (0..150).map(|n| format!("r{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let deleted = ["b", "unknown"].map(str::to_owned).to_vec();
    let mut asked = Vec::new();
    for event in [
        noted(&["a", "b"], 0),
        Wiped { note_id: id("n"), rows: deleted }.into(),
        noted(&many, 0),        // more rows than a transaction holds
        noted(&["a"], 400_000), // parks the row
        noted(&["a"], 0),       // leaves it parked
        noted(&[], 0),          // moves only the checkpoint
    ] {
        world.publish(event).await;
        world.project().await;
        asked.extend(world.dynamo.wire.take());
    }
    asked.extend(world.requests_for_bodies(true).await);
    check_role_of(&current, "ProjectViews", asked);
}

/// Compares the requests of query-views with its role. Panics unless the role allows exactly them.
pub async fn check_role_of_query_views<M: Members>() {
    let current = Current::of::<M>();
    if !current.stack.views().is_empty() {
        check_role_of(&current, "QueryViews", asked_of_query_views(&current).await);
    }
}

/// The requests of query-views.
pub(crate) async fn asked_of_query_views(current: &Current) -> Vec<Exchange> {
    let world = World::of(&current.template());
    let client = world.dynamo.client.clone();
    let reader = ViewReader::new(client, world.index(), VIEWS, &[Definition::of::<Notes>()]);
    let ask = async |question| {
        let answered =
            query_views::answer(&reader, &Issuers::default(), &question, "request-1", LONG).await;
        assert_ne!(answered.outcome, "malformed", "{:?}", answered.answer);
        world.dynamo.wire.take()
    };
    world.publish(noted(&["a", "b"], 0)).await;
    // Before anything was projected, it reads the end of the index.
    let mut asked = ask(json!({ "view": "notes" })).await;
    world.project().await;
    let event = world.publish(noted(&["a"], 0)).await;
    let wait = json!({
        "view": "notes", "id": "a", "wait": 1,
        "partition": event.partition.to_string(), "slot": event.slot,
    });
    for question in [json!({ "view": "notes", "id": "a" }), json!({ "view": "notes" }), wait] {
        asked.extend(ask(question).await);
    }
    if current.stack.views().iter().any(Definition::is_personal) {
        asked.extend(world.dynamo.requests_of_vaults(false).await);
    }
    asked
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ringfence_core::LogKind;
    use ringfence_stack::{ContextInfo, Stack};
    use ringfence_template::written::{StackPlace, written};

    use super::*;
    use crate::requests::lines;

    #[tokio::test]
    async fn readers_of_a_stack_without_the_dcb_log_are_checked() {
        let context = ContextInfo {
            name: "notes",
            log: LogKind::Aggregates,
            event_types: Vec::new(),
            origins: Vec::new(),
            slices: Vec::new(),
            dues: Vec::new(),
            views: vec![Definition::of::<Notes>()],
            reactors: Vec::new(),
            functions: Vec::new(),
        };
        let stack = Stack {
            name: "",
            catalog: Catalog::new("none", []).unwrap(),
            catalogs: Catalogs::default(),
            sources: [ringfence_aggregate_log::SOURCE, ringfence_document_log::SOURCE].into(),
            contexts: vec![context],
        };
        let begin = "AWSTemplateFormatVersion: \"2010-09-09\"\n";
        let text = written(begin, &stack, &StackPlace::of(Path::new("notes")), None).unwrap();
        assert!(!text.contains("EventTable"), "{text}");
        let template = Template::parse(&text).unwrap().whole();
        let world = World::of(&template);
        let asked = requests_of_index_events(&world).await.into_iter();
        let asked = asked.map(|asked| (asked.operation, asked.request)).collect();
        let asked = [("index-events".to_owned(), asked)];
        assert_eq!(lines(&template, &world.tables, &asked).unwrap(), [""; 0]);
        // The checks of views publish their own events.
        world.publish(noted(&["a"], 0)).await;
        world.project().await;
    }
}
