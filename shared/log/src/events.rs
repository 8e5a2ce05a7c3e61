//! The logs of events: the DCB log and the aggregate log.

use std::any::type_name;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ringfence_aggregate_log::{AggregateLog, AggregateTable, whole};
use ringfence_aws::{Clock, Meter, Usage};
use ringfence_core::{
    Access, Aggregates, Catalog, Consistency, Context, Counts, Current, Dcb, Decisions, Envelope,
    Extent, HandleError, Handled, MemoryLog, OnEvents, OnLog, Plan, Read, Reads, ReadsOf,
    SequencedEvent, Slice, State, handle,
};
use ringfence_dcb_log::{DcbLog, VerifyOptions};
use serde::de::Error as _;
use serde_json::Error;

use crate::rehearsal::{Notes, ReadBoundary, Rehearsal, Rehearse, Rehearsed};
use crate::{BoundaryShape, BoxError, InTable, KeptState, Log};

fn dcb_log(table: &InTable, catalog: Catalog) -> DcbLog {
    DcbLog::new(table.client.clone(), &*table.name, catalog, table.clock.clone())
}

fn aggregate_log(table: &InTable, catalog: Catalog) -> AggregateLog {
    let InTable { client, name, clock, .. } = table;
    let table = AggregateTable::new(client.clone(), &**name, clock.clone());
    AggregateLog::new(table, catalog, clock.clone())
}

/// The catalog of a slice's context. It fails if the slice can't be on the log.
fn catalog<S: Slice>() -> Result<Catalog, BoxError> {
    let catalog = S::Context::catalog()?;
    ringfence_core::check::<S>(&catalog)?;
    Ok(catalog)
}

/// What both logs have in common, and what they have not: the variable with the table, how it is opened and verified,
/// and what a slice depends on and reads.
macro_rules! log {
    ($log:ident, $table:literal, $open:ident, $verify:ident, $depends_on:ident, $kept:expr, $read:ident) => {
        impl<S: Slice> Log<S> for $log {
            const TABLE: &'static str = $table;
            type Memory = Arc<MemoryLog>;

            fn open(
                table: InTable,
                kept: usize,
            ) -> Result<(impl OnLog<S> + 'static, Meter), BoxError> {
                let catalog = catalog::<S>()?;
                let log = $open(&table, catalog.clone());
                let meter = Rehearse::meter(&log).clone();
                Ok((OnEvents::new(log, catalog, kept), meter))
            }

            fn memory() -> Result<Self::Memory, BoxError> {
                Ok(Arc::new(MemoryLog::new(S::Context::catalog()?)))
            }

            fn in_memory(
                memory: Self::Memory,
                _: Clock,
                kept: usize,
            ) -> Result<impl OnLog<S> + 'static, BoxError> {
                Ok(OnEvents::new(memory, catalog::<S>()?, kept))
            }

            fn check_in_memory() {
                ringfence_core::kit::check_in_memory::<S>();
            }

            async fn rehearse(
                table: &InTable,
                command: &S,
                envelope: &Envelope,
            ) -> Result<Rehearsed, BoxError> {
                let catalog = catalog::<S>()?;
                let log = $open(table, catalog.clone());
                Ok(rehearsed(&log, &catalog, command, envelope).await)
            }

            async fn verify(table: &InTable) -> Result<Vec<String>, BoxError> {
                $verify($open(table, S::Context::catalog()?)).await
            }

            fn depends_on() -> BTreeMap<BoundaryShape, String> {
                $depends_on::<S>()
            }

            fn kept() -> Vec<KeptState> {
                $kept
            }

            fn read(event: &Current<'_>) -> Option<Result<(), Error>> {
                $read::<S>(event)
            }
        }
    };
}

log!(Dcb, "EVENT_TABLE", dcb_log, verify_dcb, by_plans, kept_dcb::<S>(), read_dcb);
log!(
    Aggregates,
    "AGGREGATE_TABLE",
    aggregate_log,
    verify_aggregates,
    by_stream,
    Vec::new(),
    read_aggregate
);

async fn verify_dcb(log: DcbLog) -> Result<Vec<String>, BoxError> {
    let options = VerifyOptions { settle: Duration::ZERO, ..VerifyOptions::default() };
    let report = log.verify_fences(&options).await?;
    Ok(if report.in_order() { Vec::new() } else { vec![format!("{report:?}")] })
}

async fn verify_aggregates(log: AggregateLog) -> Result<Vec<String>, BoxError> {
    let report = log.table().verify(&|_| {}).await?;
    Ok(report.wrong.iter().map(ToString::to_string).collect())
}

/// The boundaries of the plans of all commands.
fn by_plans<S: Slice>() -> BTreeMap<BoundaryShape, String> {
    let catalog = S::Context::catalog().ok();
    let plans = catalog.and_then(|catalog| ringfence_core::plans::<S>(&catalog).ok());
    shapes(&plans.unwrap_or_default(), S::CONSISTENCY == Consistency::Strong)
}

fn shapes(plans: &[Plan], strong: bool) -> BTreeMap<BoundaryShape, String> {
    let reads = plans.iter().flat_map(|plan| &plan.reads);
    let shape = |read: &Read| Some((BoundaryShape::of(&read.boundary)?, by(&read.access, strong)));
    reads.filter_map(shape).collect()
}

fn by_stream<S: Slice>() -> BTreeMap<BoundaryShape, String> {
    let stream = BoundaryShape::Stream(S::Context::NAME.to_owned());
    BTreeMap::from([(stream, by(&Access::Partition, true))])
}

/// The state that a slice keeps, if it does.
fn kept_dcb<S: Slice>() -> Vec<KeptState> {
    // Other checks say why there is no catalog.
    let Some((snapshots, catalog)) = S::State::SNAPSHOTS.zip(S::Context::catalog().ok()) else {
        return Vec::new();
    };
    let types = ReadsOf::<S>::TYPES.iter().map(|name| match catalog.version(name) {
        1 => (*name).to_owned(),
        version => format!("{name} {version}"),
    });
    let version = snapshots.fold_version();
    vec![KeptState {
        name: S::NAME,
        version,
        types: types.collect(),
        is_rolling: false,
        next_version: format!(
            "`SNAPSHOTS` of {}: `Snapshots::every(…).version({})`",
            type_name::<S::State>(),
            version + 1
        ),
        reads: |event| event.partition.is_of_dcb_log() && is_of_slice::<S>(event),
        fold: |_, events| {
            let (mut state, mut all) = (S::State::default(), Vec::new());
            for event in events {
                state = state.evolve(ReadsOf::<S>::decode(event)?);
                all.extend(S::State::SNAPSHOTS.map(|it| it.json(&state)).transpose()?);
            }
            Ok(all)
        },
    }]
}

fn read_dcb<S: Slice>(event: &Current<'_>) -> Option<Result<(), Error>> {
    let is_read = event.partition.is_of_dcb_log() && is_of_slice::<S>(event);
    is_read.then(|| ReadsOf::<S>::decode(event).map(drop))
}

fn read_aggregate<S: Slice>(event: &Current<'_>) -> Option<Result<(), Error>> {
    let is_of_context = event.context == S::Context::NAME && event.partition.as_str().contains('#');
    (is_of_context && is_of_slice::<S>(event)).then(|| {
        // The payload need not repeat the aggregate's id.
        let catalog = S::Context::catalog().map_err(Error::custom)?;
        let event = catalog.current(whole(SequencedEvent::clone(event), &catalog));
        ReadsOf::<S>::decode(&event.map_err(Error::custom)?).map(drop)
    })
}

fn is_of_slice<S: Slice>(event: &SequencedEvent) -> bool {
    ReadsOf::<S>::TYPES.contains(&&*event.event_type)
}

/// The command on the log as it is.
async fn rehearsed<S: Slice, L: Rehearse>(
    log: &L,
    catalog: &Catalog,
    command: &S,
    envelope: &Envelope,
) -> Rehearsed {
    let rehearsal = Rehearsal::of(log);
    let before = log.meter().snapshot();
    let none = Decisions::new(0);
    let handled = handle(&rehearsal, catalog, &none, command, envelope).await;
    let usage = log.meter().snapshot().since(&before);
    described(handled, rehearsal.end(), usage, log.reads_strongly())
}

/// What a rehearsal has noted, in words.
fn described(
    handled: Result<Handled, HandleError>,
    notes: Notes,
    usage: Usage,
    reads_strongly: bool,
) -> Rehearsed {
    let strong = notes.strong || reads_strongly;
    let how = |read: &Read| {
        let extent = notes.seen.as_ref().and_then(|seen| seen.of(&read.boundary));
        ReadBoundary {
            boundary: read.boundary.to_string(),
            by: by(&read.access, strong),
            types: read.types.iter().map(ToString::to_string).collect(),
            seen: extent.map_or_else(String::new, seen),
        }
    };
    let reads = notes.plan.iter().flat_map(|plan| &plan.reads).map(how).collect();
    Rehearsed {
        handled,
        reads,
        events: notes.events.into_values().collect(),
        intent: notes.intent,
        conflicts: notes.conflicts.iter().map(ToString::to_string).collect(),
        usage,
        looks: notes.looks,
    }
}

/// How a boundary is read, in words.
fn by(access: &Access, strong: bool) -> String {
    let of_table = if strong { ", strongly consistent" } else { ", eventually consistent" };
    match access {
        Access::Partition => format!("its partition{of_table}"),
        Access::TagIndex(tag) => format!("the index tag_{}", tag.key),
        Access::CompositeIndex(_) => "the index tag_composite".to_owned(),
        Access::TagItems(_) => format!("the tag's copies of events{of_table}"),
        Access::TypeItems(_) => format!("the type's copies of events{of_table}"),
    }
}

/// What was seen of a boundary, in words.
fn seen(extent: &Extent) -> String {
    let counted = |counts: &Counts| {
        let all: Vec<_> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
        all.join(", ")
    };
    match extent {
        Extent::Prefix(prefix) => match (&prefix.fenced, prefix.slot) {
            (Some(counts), _) => counted(counts),
            (None, 0) => "nothing".to_owned(),
            (None, 1) => "slot 1".to_owned(),
            (None, last) => format!("slots 1 to {last}"),
        },
        Extent::Fence { counts, .. } => counted(counts),
    }
}
