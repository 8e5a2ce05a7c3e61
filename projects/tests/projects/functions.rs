//! The functions of the context `projects` that are not slices, and their roles.

use std::time::Duration;

use futures::{StreamExt, stream};
use projects::expire_claim::ExpireClaim;
use projects::export_projects::Round;
use projects::facts::*;
use projects::{ClaimRenewed, EdgeStarted, GRACE_MS, LEASE_MS, Projects, ready_work};
use ringfence_aws::{Clock, Retry};
use ringfence_core::kit::{BEGIN_MS, id};
use ringfence_core::{
    Append, Appended, Catalog, Catalogs, CommandContext, Consistency, Context, Envelope, EventLog,
    NewEvent, Plan, Query, QueryItem, Tag, events,
};
use ringfence_dcb_log::DcbLog;
use ringfence_feed::{Checkpoint, Index, Indexer, Partition, Until};
use ringfence_services::deadlines::{Deadlines, Sweep, Swept};
use ringfence_testing::{Dynamo, check_role};
use ringfence_views::{Definition, Projector, ViewReader, project_views};
use serde_json::{Value, json};
use stack::SharedProjects;

use super::stack::TEMPLATE;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(600);

/// The tables of the template, and a clock that stands still.
struct World {
    dynamo: Dynamo,
    catalog: Catalog,
    reader: ViewReader,
    views: Vec<Definition>,
}

impl World {
    fn start() -> Self {
        let dynamo = Dynamo::with(&TEMPLATE, &["EventTable", "IndexTable", "ViewTable"]);
        let client = dynamo.client.clone();
        let catalog = Projects::catalog().unwrap();
        let views: Vec<_> = [Definition::of_due::<ExpireClaim>()].into();
        let views = [views, ready_work::views().to_vec()].concat();
        let index = Index::new(client.clone(), "IndexTable", []);
        let reader = ViewReader::new(client, index, "ViewTable", &views);
        Self { dynamo, catalog, reader, views }
    }

    fn log(&self) -> DcbLog {
        let (client, clock) = (self.dynamo.client.clone(), self.dynamo.clock.clone());
        DcbLog::new(client, "EventTable", self.catalog.clone(), clock)
    }

    async fn append(&self, events: Vec<NewEvent>) -> Vec<Partition> {
        let now_ms = self.dynamo.clock.now_ms();
        let context = CommandContext { now_ms, ..CommandContext::default() };
        let envelope = Envelope { context, ..Envelope::default() };
        let append = Append { events, seen: None, record: None, envelope: &envelope };
        match self.log().append(append).await.unwrap() {
            Appended::Committed(events) => events.iter().map(Partition::of).collect(),
            Appended::Repeated(_) => unreachable!("without a record"),
        }
    }

    /// The rows show the events of these partitions. The requests for that are forgotten.
    async fn show(&self, partitions: Vec<Partition>) {
        let client = self.dynamo.client.clone();
        let indexer = Indexer::new([self.log().into()], client.clone(), "IndexTable");
        for (_, outcome) in indexer.index(partitions, Retry::default()).await {
            outcome.unwrap();
        }
        let clock = Clock::system();
        let index = Index::new(client.clone(), "IndexTable", [self.log().into()]);
        let projector =
            Projector::new(client, index, "ViewTable", Catalogs::default(), clock.clone());
        let round =
            project_views::run_views(&projector, &self.views, Until::Present, LONG, &clock, "r-1")
                .await;
        assert_eq!(round.unfinished, Vec::<String>::new());
        self.dynamo.wire.forget();
    }

    async fn sweep(&self) -> Swept {
        let deadlines = Deadlines::of::<SharedProjects>();
        let swept = Sweep::new(&deadlines, &self.dynamo.logs(), "ViewTable").unwrap();
        swept.all(LONG).await
    }

    async fn last_event(&self, edge: &str) -> String {
        let types = vec!["EdgeStarted".into(), "ClaimRenewed".into(), "ClaimExpired".into()];
        let query = Query { items: vec![QueryItem { tags: vec![Tag::new("edge", edge)], types }] };
        let plan = Plan::new(&query, &self.catalog).unwrap();
        let envelope = Envelope::default();
        let read = self.log().read_with_seen(&plan, Consistency::Strong, &envelope).await;
        read.unwrap().0.pop().unwrap().event_type
    }

    async fn ready(&self, query: Value) -> Value {
        let request = json!({
            "requestContext": { "http": { "method": "GET" } },
            "pathParameters": { "project": "shop" },
            "queryStringParameters": query,
        });
        let (now_ms, time) = (self.dynamo.clock.now_ms(), Duration::from_secs(10));
        let answered = ready_work::answer(&self.reader, request, "request-1", now_ms, time).await;
        assert_eq!((answered.outcome, &answered.cause), ("found", &None));
        serde_json::from_str(answered.answer["body"].as_str().unwrap()).unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn a_sweep_ends_the_claims_that_are_overdue() {
    let world = World::start();
    // Nothing was projected yet.
    assert_eq!(world.sweep().await, Swept::default());
    let renewed_edge = format!("{PAY}/design_code");
    let edges = [DESIGN_CODE, REQUIREMENTS_DESIGN, &renewed_edge];
    let mut partitions = Vec::new();
    for edge in edges {
        let claim = EdgeStarted { edge: id(edge), ..started("ada", "c1", 1) };
        partitions.extend(world.append(events![claim]).await);
    }
    world.show(partitions.clone()).await;
    assert_eq!(world.sweep().await, Swept::default());

    world.dynamo.clock.set(BEGIN_MS + LEASE_MS);
    // The rows do not show this yet, so the command is sent, and decides that the claim goes on.
    world.append(events![ClaimRenewed { edge: id(&renewed_edge), ..renewed("ada", "c1") }]).await;
    world.dynamo.clock.set(BEGIN_MS + LEASE_MS + GRACE_MS + 1_000);
    let swept = world.sweep().await;
    assert_eq!((swept.fired, swept.left, &swept.failures[..]), (2, 1, &[][..]), "{swept:?}");
    assert_eq!(
        swept.causes,
        [format!("expire-claim {renewed_edge}: the command had nothing to change")]
    );
    for (edge, last) in edges.into_iter().zip(["ClaimExpired", "ClaimExpired", "ClaimRenewed"]) {
        assert_eq!(world.last_event(edge).await, last, "{edge}");
    }
    // The rows show the new state of the claims, and nothing is due.
    world.show(partitions).await;
    assert_eq!(world.sweep().await, Swept::default());
}

#[tokio::test(start_paused = true)]
async fn ready_work_names_the_edges_that_can_be_claimed_and_its_role_allows_only_that() {
    let world = World::start();
    let mut asked = Vec::new();
    let nothing = world.ready(Value::Null).await;
    assert_eq!(nothing, json!({ "status": "noProject", "items": [] }));
    asked.extend(world.dynamo.wire.take());

    let mut partitions = world.append(events![initialized(multi())]).await;
    let features = (0..120).map(|n| created(&format!("shop/REQ-F-MANY-{n:03}")));
    for feature in features {
        partitions.extend(world.append(events![feature]).await);
    }
    world.show(partitions).await;
    let some = world.ready(json!({ "limit": "2" })).await;
    asked.extend(world.dynamo.wire.take());
    assert_eq!(some["status"], "inProgress", "{some}");
    let items = some["items"].as_array().unwrap();
    assert_eq!(items.len(), 2, "{some}");
    assert_eq!(items[0]["edge"], "shop/REQ-F-MANY-000/requirements_design", "the oldest");
    assert_eq!(items[0]["after"], json!([]));
    let all = world.ready(json!({ "limit": "100" })).await;
    assert_eq!(all["items"].as_array().map(Vec::len), Some(100));
    check_role("ready-work", asked);
}

#[tokio::test(start_paused = true)]
async fn an_export_reads_the_index_and_its_events_alone_and_holds_few_bytes_of_it() {
    let world = World::start();
    // Events that follow one another in a partition are queried.
    let events = events![initialized(multi()), created(AUTH), created(AUTH)];
    let partitions = world.append(events).await;
    world.show(partitions).await;
    let index = Index::new(world.dynamo.client.clone(), "IndexTable", [world.log().into()]);
    let mut entries = index.read(Checkpoint::START, Until::Present).fuse();
    let round = Round::read(&mut entries).await.unwrap().unwrap();
    let lines: Vec<_> = round.segments.values().map(|it| it.text.lines().count()).collect();
    assert_eq!((lines, i64::from(round.behind)), (vec![3], 3));
    assert_eq!(Round::read(&mut entries).await.unwrap(), None);
    check_role("export-projects", world.dynamo.wire.take());

    let large = |n: i64| {
        let mut entry = entry(n, n.unsigned_abs());
        entry.event.data["note"] = "x".repeat(3_000_000).into();
        Ok(entry)
    };
    let mut entries = stream::iter((1..=5).map(large));
    for behind in [3, 5] {
        let round = Round::read(&mut entries).await.unwrap().unwrap();
        assert_eq!(i64::from(round.behind), behind);
    }
    assert_eq!(Round::read(&mut entries).await.unwrap(), None);
}
