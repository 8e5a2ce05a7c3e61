//! A rehearsal says what a command would do and cost, and writes nothing.

use aws_sdk_dynamodb::Client;
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use ringfence::kit::{Case, OnEvents};
use ringfence::{
    Aggregates, Catalog, Context, Dcb, Decisions, Envelope, HandleError, Handled, Slice, handle,
};
use ringfence_aggregate_log::{AggregateLog, AggregateTable};
use ringfence_dcb_log::{DcbLog, Rehearsal, Rehearse};
use ringfence_document_log::kit::OnDocuments;
use ringfence_document_log::{Cache, Category, DocumentLog, DynamoStore, OfDocument, TipLimits};
use ringfence_dynamo::{Clock, Intent, Usage};
use ringfence_local::template::Template;
use ringfence_local::workspace_root;
use ringfence_stack::{MemberList, Members, Visitor};

use projects_stack::SharedProjects;
use ringfence_testing::Dynamo;
use stack::Shop;

const EVENTS: &str = "EventTable";
const AGGREGATES: &str = "AggregateTable";
const DOCUMENTS: &str = "DocumentTable";

/// How the text of a repeat's outcome ends.
const REPEATED: &str = " true";

/// What a command costs and does, as a rehearsal says or as it turns out.
#[derive(Debug, PartialEq)]
struct Course {
    outcome: String,
    read_requests: u32,
    read_units: f64,
    write_units: f64,
}

impl Course {
    fn rehearsed(outcome: String, usage: &Usage, looks: &Usage, intent: Option<&Intent>) -> Self {
        let read_requests = usage.reads - looks.reads;
        let read_units = usage.total().read - looks.total().read;
        Self { outcome, read_requests, read_units, write_units: intent.map_or(0.0, Intent::units) }
    }

    /// The writes of a repeat are refused. A rehearsal does not price these.
    fn real(outcome: String, usage: &Usage) -> Self {
        let units = usage.total();
        let write_units = if outcome.ends_with(REPEATED) { 0.0 } else { units.write };
        Self { outcome, read_requests: usage.reads, read_units: units.read, write_units }
    }
}

/// The command of each case of every slice is rehearsed and then carried out, twice with an idempotency key and once
/// without.
#[tokio::test]
async fn a_rehearsal_sends_no_write_and_has_outcome_reads_and_price_of_the_command() {
    rehearse::<Shop>("template.yaml").await;
    rehearse::<SharedProjects>("projects/template.yaml").await;
}

async fn rehearse<M: Members>(template: &str) {
    let template = Template::load(&workspace_root().join(template)).unwrap();
    let mut checks = Checks { template: &template, all: Vec::new() };
    MemberList::walk::<M>(&mut checks);
    for check in checks.all {
        check.await;
    }
}

struct Checks<'t> {
    template: &'t Template,
    all: Vec<LocalBoxFuture<'t, ()>>,
}

impl Visitor for Checks<'_> {
    fn dcb_slice<S: Slice<Context: Context<Log = Dcb>>>(&mut self) {
        self.all.push(on_dcb::<S>(self.template).boxed_local());
    }

    fn aggregate_slice<S: Slice<Context: Context<Log = Aggregates>>>(&mut self) {
        self.all.push(on_aggregates::<S>(self.template).boxed_local());
    }

    fn document_slice<S: OfDocument>(&mut self) {
        self.all.push(on_documents::<S>(self.template).boxed_local());
    }
}

/// The surroundings of a case's command: without a key once, and with a key twice.
fn envelopes<S: Slice>(case: &Case<S>) -> [Envelope; 3] {
    let context = case.context().clone();
    let [none, key] = [None, Some("once".to_owned())].map(|idempotency_key| Envelope {
        context: context.clone(),
        idempotency_key,
        ..Envelope::default()
    });
    // The command without a key comes last, so that the key meets the state that the case is about.
    [key.clone(), key, none]
}

/// Fails if a request since the last look writes.
fn writes_nothing(dynamo: &Dynamo, slice: &str) {
    for exchange in dynamo.wire.take() {
        let reads = ["GetItem", "Query", "BatchGetItem", "TransactGetItems"];
        assert!(reads.contains(&&*exchange.operation), "{slice} sends {}", exchange.operation);
    }
}

fn told(handled: Result<Handled, impl std::fmt::Display>) -> String {
    match handled {
        Ok(Handled { outcome, repeated, .. }) => format!("{outcome:?} {repeated}"),
        Err(error) => error.to_string(),
    }
}

async fn on_dcb<S: Slice>(template: &Template) {
    on_events::<S, _>(template, EVENTS, |client, catalog, clock| {
        DcbLog::new(client, EVENTS, catalog, clock)
    })
    .await;
}

async fn on_aggregates<S: Slice>(template: &Template) {
    on_events::<S, _>(template, AGGREGATES, |client, catalog, clock| {
        AggregateLog::new(AggregateTable::new(client, AGGREGATES, clock.clone()), catalog, clock)
    })
    .await;
}

async fn on_events<S: Slice, L: Rehearse>(
    template: &Template,
    table: &'static str,
    open: impl Fn(Client, Catalog, Clock) -> L,
) {
    let catalog = S::Context::catalog().expect("the catalog is free of contradictions");
    for (n, case) in S::cases().iter().enumerate() {
        let dynamo = Dynamo::with(template, &[table]);
        let clock = dynamo.clock.clone();
        let log = open(dynamo.client.clone(), catalog.clone(), clock.clone());
        case.prepare(&OnEvents { log: &log, set_clock: |now_ms| clock.set(now_ms) }).await;
        for envelope in envelopes(case) {
            dynamo.wire.forget();
            let (none, before) = (Decisions::new(0), log.meter().snapshot());
            let rehearsal = Rehearsal::of(&log);
            let handled = handle(&rehearsal, &catalog, &none, case.command(), &envelope).await;
            let usage = log.meter().snapshot().since(&before);
            writes_nothing(&dynamo, S::NAME);
            let end = rehearsal.end();
            let rehearsed =
                Course::rehearsed(told(handled), &usage, &end.looks, end.intent.as_ref());

            let before = log.meter().snapshot();
            let handled: Result<_, HandleError> =
                handle(&log, &catalog, &none, case.command(), &envelope).await;
            let real = Course::real(told(handled), &log.meter().snapshot().since(&before));
            assert_eq!(rehearsed, real, "{}, case {n}, {envelope:?}", S::NAME);
        }
    }
}

/// With Tips that calve at their usual size, and after each event.
async fn on_documents<S: OfDocument>(template: &Template) {
    use ringfence_document_log::{DocumentRehearsal, handle};

    let each = TipLimits { events_max: Some(1), ..TipLimits::default() };
    let cases = S::cases();
    let cases = cases.iter().enumerate();
    let both =
        cases.flat_map(|(n, case)| [TipLimits::default(), each].map(|limits| (n, case, limits)));
    for (n, case, limits) in both {
        let dynamo = Dynamo::with(template, &[DOCUMENTS]);
        let clock = dynamo.clock.clone();
        let store = DynamoStore::new(dynamo.client.clone(), DOCUMENTS);
        let category = |store| {
            let log = DocumentLog::new(store, clock.clone()).with_limits(limits);
            Category::of::<S>(log, Cache::none()).expect(S::NAME)
        };
        let real = category(store.clone());
        let on = OnDocuments { category: &real, clock: clock.clone() };
        case.prepare(&on).await;
        for envelope in envelopes(case) {
            dynamo.wire.forget();
            let before = store.meter().snapshot();
            let log = DocumentLog::new(DocumentRehearsal::of(store.clone()), clock.clone());
            let rehearsal = Category::of::<S>(log.with_limits(limits), Cache::none());
            let rehearsal = rehearsal.expect(S::NAME);
            let handled = handle(&rehearsal, case.command(), &envelope).await;
            let usage = store.meter().snapshot().since(&before);
            writes_nothing(&dynamo, S::NAME);
            let end = rehearsal.log().store().rehearsed();
            let rehearsed =
                Course::rehearsed(told(handled), &usage, &end.looks, end.intent.as_ref());

            let before = store.meter().snapshot();
            let handled = handle(&real, case.command(), &envelope).await;
            let course = Course::real(told(handled), &store.meter().snapshot().since(&before));
            assert_eq!(rehearsed, course, "{}, case {n}, {envelope:?}", S::NAME);
        }
    }
}
