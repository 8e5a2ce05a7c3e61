//! A dry run shows the effect and the cost of a command, and writes nothing.

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use ringfence_aws::{Intent, Usage};
use ringfence_core::kit::Case;
use ringfence_core::{
    Context, Envelope, HandleError, Handled, LogName, LogOf, OnLog, Slice, is_personal,
};
use ringfence_harness::bound;
use ringfence_local::template::Template;
use ringfence_local::workspace_root;
use ringfence_log::{DryRun, InTable, Log};
use ringfence_stack::{MemberList, Members, Visitor};

use projects_stack::SharedProjects;
use ringfence_template::written::table_of;
use ringfence_testing::{Dynamo, tips_of};
use stack::Shop;

/// The end of the text for a repeat's outcome.
const REPEATED: &str = " true";

/// Cost and effect of a command, in its dry run or in fact.
#[derive(Debug, PartialEq)]
struct Course {
    outcome: String,
    read_requests: u32,
    read_units: f64,
    write_units: f64,
}

impl Course {
    fn dry_run_of(DryRun { handled, usage, looks, intent, .. }: DryRun) -> Self {
        Self {
            outcome: outcome_text(handled),
            read_requests: usage.reads - looks.reads,
            read_units: usage.total().read - looks.total().read,
            write_units: usage.total().write + intent.as_ref().map_or(0.0, Intent::units),
        }
    }

    /// The store refuses the writes of a repeat. A dry run does not price them.
    fn real(outcome: String, usage: &Usage) -> Self {
        let units = usage.total();
        let write_units = if outcome.ends_with(REPEATED) { 0.0 } else { units.write };
        Self { outcome, read_requests: usage.reads, read_units: units.read, write_units }
    }
}

#[tokio::test]
async fn a_dry_run_of_the_shop_writes_nothing_and_has_outcome_reads_and_price() {
    dry_run::<Shop>("template.yaml").await;
}

#[tokio::test]
async fn a_dry_run_of_projects_writes_nothing_and_has_outcome_reads_and_price() {
    dry_run::<SharedProjects>("projects/template.yaml").await;
}

/// Makes a dry run of the command of each case of every slice, and then carries it out, twice with an idempotency key
/// and once without. In `cargo test` it takes every third case of a slice.
async fn dry_run<M: Members>(template: &str) {
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
    fn slice<S: Slice<Context: Context<Log: Log<S>>>>(&mut self) {
        self.all.push(on_log::<S>(self.template).boxed_local());
    }
}

/// The envelopes of a case's command: two with a key, and one without.
fn envelopes<S: Slice>(case: &Case<S>) -> [Envelope; 3] {
    let context = case.context().clone();
    let [none, key] = [None, Some("once".to_owned())].map(|idempotency_key| Envelope {
        context: context.clone(),
        idempotency_key,
        ..Envelope::default()
    });
    // The command without a key is last, so the key meets the state of the case.
    [key.clone(), key, none]
}

/// Fails if a request since the last look writes.
fn writes_nothing(dynamo: &Dynamo, slice: &str) {
    for exchange in dynamo.wire.take() {
        let reads = ["GetItem", "Query", "BatchGetItem", "TransactGetItems"];
        assert!(reads.contains(&&*exchange.operation), "{slice} sends {}", exchange.operation);
    }
}

fn outcome_text(handled: Result<Handled, HandleError>) -> String {
    match handled {
        Ok(Handled { outcome, repeated, .. }) => format!("{outcome:?} {repeated}"),
        Err(error) => error.to_string(),
    }
}

async fn on_log<S: Slice<Context: Context<Log: Log<S>>>>(template: &Template) {
    let log = LogOf::<S>::KIND;
    let cases = S::cases();
    let with_tips = |n| tips_of(log).into_iter().map(move |tips| (n, tips));
    for (n, tips) in (0..cases.len()).step_by(bound(3, 1)).flat_map(with_tips) {
        let (case, dynamo) = (&cases[n], Dynamo::with(template, &[table_of(log)]));
        let table = InTable { tips, ..dynamo.table(log) };
        let warm = LogOf::<S>::open(table.clone(), 0).expect(S::NAME);
        case.prepare(&warm.0, &|now_ms| table.clock.set(now_ms)).await;
        for envelope in envelopes(case) {
            // Neither knows a key of personal data yet.
            let cold = is_personal::<S>().then(|| {
                let vault = dynamo.vault().map(|vault| vault as _);
                LogOf::<S>::open(InTable { vault, ..table.clone() }, 0).expect(S::NAME)
            });
            let (real, meter) = cold.as_ref().unwrap_or(&warm);
            dynamo.wire.forget();
            let end = LogOf::<S>::dry_run(&table, case.command(), &envelope).await;
            writes_nothing(&dynamo, S::NAME);
            let dry_run = Course::dry_run_of(end.expect(S::NAME));

            let before = meter.snapshot();
            let handled = real.handle(case.command(), &envelope).await;
            let course = Course::real(outcome_text(handled), &meter.snapshot().since(&before));
            assert_eq!(dry_run, course, "{}, case {n}, {envelope:?}", S::NAME);
        }
    }
}
