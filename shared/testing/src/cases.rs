//! The cases of every slice, in memory and on DynamoDB.

use std::time::Duration;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use ringfence::kit::{Case, CaseLog, InMemory, OnEvents, catalog, check_in_memory, fail};
use ringfence::{
    Access, Aggregates, Catalog, Context, Dcb, Decisions, Envelope, EventLog, Slice, handle,
};
use ringfence_aggregate_log::{AggregateLog, AggregateTable};
use ringfence_dcb_log::{DcbLog, VerifyOptions};
use ringfence_document_log::kit::OnDocuments;
use ringfence_document_log::{Cache, Category, DocumentLog, DynamoStore, OfDocument, TipLimits};
use ringfence_dynamo::Clock;
use ringfence_dynamo::wire::Exchange;
use ringfence_local::template::Template;
use ringfence_stack::{Log, MemberList, Members, Stack, Visitor};
use serde_json::{Value, json};

use crate::Dynamo;
use crate::functions::check_indexes;
use crate::requests::check_requests;

/// The logical ids of the logs' tables.
const EVENTS: &str = "EventTable";
const AGGREGATES: &str = "AggregateTable";
const DOCUMENTS: &str = "DocumentTable";

/// The requests that the cases of a slice sent to DynamoDB.
#[derive(Clone, Debug)]
pub struct SliceRequests {
    /// The slice's name.
    pub slice: &'static str,
    /// The log that it is on.
    pub log: Log,
    /// Operations and requests, in their order: those of its cases, and the queries of commands that no
    /// case has. Tables are named by their logical ids.
    pub requests: Vec<(String, Value)>,
}

/// Runs the cases of every slice that `M` lists, in memory and on an embedded DynamoDB, and compares their requests
/// with the roles in `template.yaml`. Panics with the place of a case that fails, with each request that a role does not
/// allow, and with everything that a role allows and no case needs. Under `UPDATE=1` it writes the indexes and the
/// statements that are missing into the template, and takes out what nothing needs.
pub async fn check_cases<M: Members>() {
    let stack = Stack::of::<M>().unwrap_or_else(|error| fail("the stack", error));
    check_indexes(&stack.catalog);
    let template = Template::of_stack().unwrap_or_else(|error| fail("the template", error));
    let ran = Cases::run::<M>(&template).await.into_iter();
    let asked: Vec<_> = ran.map(|ran| (ran.slice.to_owned(), ran.requests)).collect();
    check_requests(&[EVENTS, AGGREGATES, DOCUMENTS], &asked);
}

/// The cases of a stack.
pub struct Cases<'t> {
    template: &'t Template,
    on_dynamo: Vec<LocalBoxFuture<'t, SliceRequests>>,
}

impl<'t> Cases<'t> {
    /// Runs every case of the slices that `M` lists: in memory, and on DynamoDB with the tables of the
    /// template. Each case has a table of its own, which is found in order afterwards. Panics with the
    /// place of the first case that fails, and with the name of a slice that has no cases.
    pub async fn run<M: Members>(template: &'t Template) -> Vec<SliceRequests> {
        let mut cases = Self { template, on_dynamo: Vec::new() };
        MemberList::walk::<M>(&mut cases);
        let mut ran = Vec::new();
        for slice in cases.on_dynamo {
            ran.push(slice.await);
        }
        ran
    }
}

/// Prepares the facts of a case, runs its command, and returns the command's requests.
async fn run<S: Slice>(
    case: &Case<S>,
    log: &impl CaseLog<S>,
    dynamo: &Dynamo,
) -> Vec<(String, Value)> {
    case.prepare(log).await;
    dynamo.wire.forget();
    case.check_prepared(log).await;
    asked(dynamo)
}

/// The requests since the last look.
fn asked(dynamo: &Dynamo) -> Vec<(String, Value)> {
    let requests = dynamo.wire.take().into_iter();
    requests.map(|Exchange { operation, request, .. }| (operation, request)).collect()
}

/// The envelope with which each command is sent again, so that the requests of commands with a key are known
/// too.
fn with_key() -> Envelope {
    Envelope { idempotency_key: Some("again".to_owned()), ..Envelope::default() }
}

fn in_memory<S: Slice<Context: Context<Log: InMemory<S>>>>() {
    check_in_memory::<S>();
}

async fn on_events<S: Slice>(template: &Template) -> SliceRequests {
    let open = |dynamo: &Dynamo, catalog, clock| {
        DcbLog::new(dynamo.client.clone(), EVENTS, catalog, clock)
    };
    let verify = async |log: &DcbLog| {
        let options = VerifyOptions { settle: Duration::ZERO, ..VerifyOptions::default() };
        let report = log.verify_fences(&options).await.expect("a report");
        assert!(report.in_order(), "{}: {report:?}", S::NAME);
    };
    let requests = on_log::<S, _>(template, EVENTS, open, verify).await;
    SliceRequests { slice: S::NAME, log: Log::Dcb, requests }
}

async fn on_aggregates<S: Slice>(template: &Template) -> SliceRequests {
    let open = |dynamo: &Dynamo, catalog, clock: Clock| {
        let table = AggregateTable::new(dynamo.client.clone(), AGGREGATES, clock.clone());
        AggregateLog::new(table, catalog, clock)
    };
    let verify = async |log: &AggregateLog| {
        let report = log.table().verify(&|_| {}).await.expect("a report");
        assert!(report.wrong.is_empty(), "{}: {report:?}", S::NAME);
    };
    let requests = on_log::<S, _>(template, AGGREGATES, open, verify).await;
    SliceRequests { slice: S::NAME, log: Log::Aggregate, requests }
}

/// The requests of each case, on a log that `open` makes in the table and `verify` looks at afterwards.
async fn on_log<S: Slice, L: EventLog>(
    template: &Template,
    table: &'static str,
    open: impl Fn(&Dynamo, Catalog, Clock) -> L,
    verify: impl AsyncFn(&L),
) -> Vec<(String, Value)> {
    let catalog = catalog::<S::Context>();
    let mut requests = planned::<S>(table);
    // With a key and without one, each on a table of its own.
    for (case, has_key) in S::cases().iter().flat_map(|case| [(case, false), (case, true)]) {
        let dynamo = Dynamo::with(template, &[table]);
        let clock = dynamo.clock.clone();
        let log = open(&dynamo, catalog.clone(), clock.clone());
        let on = OnEvents { log: &log, set_clock: |now_ms| clock.set(now_ms) };
        if has_key {
            case.prepare(&on).await;
            dynamo.wire.forget();
            let envelope = with_key();
            // A warm handler asks for what a handler that starts does not.
            let decisions = Decisions::new(1);
            let run = async || handle(&log, &catalog, &decisions, case.command(), &envelope).await;
            for handled in [run().await, run().await] {
                handled.unwrap_or_else(|error| fail(S::NAME, error));
            }
            requests.extend(asked(&dynamo));
        } else {
            requests.extend(run(case, &on, &dynamo).await);
        }
        verify(&log).await;
    }
    requests
}

/// The queries of any command of the slice.
fn planned<S: Slice>(table: &str) -> Vec<(String, Value)> {
    let catalog = catalog::<S::Context>();
    let plans = ringfence::plans::<S>(&catalog).unwrap_or_else(|error| fail(S::NAME, error));
    assert!(!plans.is_empty(), "a command of {} reads something", S::NAME);
    let reads = plans.iter().flat_map(|plan| &plan.reads);
    let query = |read: &ringfence::Read| {
        let index = match &read.access {
            Access::TagIndex(tag) => Some(format!("tag_{}", tag.key)),
            Access::CompositeIndex(_) => Some("tag_composite".to_owned()),
            Access::Partition | Access::TagItems(_) | Access::TypeItems(_) => None,
        };
        ("Query".to_owned(), json!({ "TableName": table, "IndexName": index }))
    };
    reads.map(query).collect()
}

/// With Tips that calve at their usual size, and after each event.
async fn on_documents<S: OfDocument>(template: &Template) -> SliceRequests {
    let mut requests = Vec::new();
    let each = TipLimits { events_max: Some(1), ..TipLimits::default() };
    for limits in [TipLimits::default(), each] {
        for case in S::cases() {
            let dynamo = Dynamo::with(template, &[DOCUMENTS]);
            let clock = dynamo.clock.clone();
            let store = DynamoStore::new(dynamo.client.clone(), DOCUMENTS);
            let log = DocumentLog::new(store, clock.clone()).with_limits(limits);
            let category = Category::of::<S>(log, Cache::none());
            let category = category.unwrap_or_else(|error| fail(S::NAME, error));
            let on = OnDocuments { category: &category, clock };
            requests.extend(run(&case, &on, &dynamo).await);
            let again =
                ringfence_document_log::handle(&category, case.command(), &with_key()).await;
            again.unwrap_or_else(|error| fail(S::NAME, error));
            requests.extend(asked(&dynamo));
        }
    }
    SliceRequests { slice: S::NAME, log: Log::Document, requests }
}

impl Visitor for Cases<'_> {
    fn dcb_slice<S: Slice<Context: Context<Log = Dcb>>>(&mut self) {
        in_memory::<S>();
        self.on_dynamo.push(on_events::<S>(self.template).boxed_local());
    }

    fn aggregate_slice<S: Slice<Context: Context<Log = Aggregates>>>(&mut self) {
        in_memory::<S>();
        self.on_dynamo.push(on_aggregates::<S>(self.template).boxed_local());
    }

    fn document_slice<S: OfDocument>(&mut self) {
        in_memory::<S>();
        self.on_dynamo.push(on_documents::<S>(self.template).boxed_local());
    }
}
