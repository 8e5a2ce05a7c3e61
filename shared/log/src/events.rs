//! The logs of events.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringfence_aws::{Clock, Meter, Usage};
use ringfence_core::kit::MemoryVault;
use ringfence_core::{
    Access, Catalog, Context, Counts, Current, Decisions, Envelope, EventLog, Extent, HandleError,
    Handled, MemoryLog, OnEvents, OnLog, Read, ReadsOf, Slice, Vault, Vaulted, handle,
};
use serde_json::Error;

use crate::dry_run::{DryRun, DryRunLog, DryRunOn, Notes, ReadBoundary};
use crate::{BoundaryShape, BoxError, Dependence, InTable, KeptState, Log, Sourced};

/// A log of events by its name. It has the parts that differ between logs: how a log is opened and verified, and what
/// a slice depends on and reads.
pub trait LogOfEvents: Sourced {
    /// The log.
    type Open: DryRunOn + 'static;

    /// The log in a table, with the events of a catalog.
    fn open(table: &InTable, catalog: Catalog) -> Self::Open;

    /// As [`Log::verify`].
    ///
    /// # Errors
    /// The table can't be read.
    fn verify(log: Self::Open) -> impl Future<Output = Result<Vec<String>, BoxError>>;

    /// As [`Log::depends_on`].
    fn depends_on<S: Slice>() -> BTreeMap<BoundaryShape, Dependence>;

    /// As [`Log::kept`].
    #[must_use]
    fn kept<S: Slice>() -> Vec<KeptState> {
        Vec::new()
    }

    /// As [`Log::read`].
    fn read<S: Slice>(event: &Current<'_>) -> Option<Result<(), Error>>;
}

/// The catalog of a slice's context. It fails if the slice can't be on the log.
fn catalog<S: Slice>() -> Result<Catalog, BoxError> {
    let catalog = S::Context::catalog()?;
    ringfence_core::check::<S>(&catalog)?;
    Ok(catalog)
}

impl<S: Slice, L: LogOfEvents> Log<S> for L {
    type Memory = Arc<MemoryLog>;

    fn open(table: InTable, kept: usize) -> Result<(impl OnLog<S> + 'static, Meter), BoxError> {
        let catalog = catalog::<S>()?;
        let log = <L as LogOfEvents>::open(&table, catalog.clone());
        let meter = log.meter().clone();
        let log: Box<dyn EventLog> = match table.vault {
            None => Box::new(log),
            Some(vault) => Box::new(Vaulted::new::<ReadsOf<S>>(log, vault.on(&meter))),
        };
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
        let log = Vaulted::new::<ReadsOf<S>>(memory, Arc::<MemoryVault>::default());
        Ok(OnEvents::new(log, catalog::<S>()?, kept))
    }

    fn check_in_memory() {
        ringfence_core::kit::check_in_memory::<S>();
    }

    async fn dry_run(
        table: &InTable,
        command: &S,
        envelope: &Envelope,
    ) -> Result<DryRun, BoxError> {
        let catalog = catalog::<S>()?;
        let log = <L as LogOfEvents>::open(table, catalog.clone());
        let vault = table.vault.as_ref().map(|vault| vault.on(log.meter()).dry());
        Ok(dry_run_of(&log, vault, &catalog, command, envelope).await)
    }

    async fn verify(table: &InTable) -> Result<Vec<String>, BoxError> {
        <L as LogOfEvents>::verify(<L as LogOfEvents>::open(table, S::Context::catalog()?)).await
    }

    fn depends_on() -> BTreeMap<BoundaryShape, Dependence> {
        <L as LogOfEvents>::depends_on::<S>()
    }

    fn kept() -> Vec<KeptState> {
        <L as LogOfEvents>::kept::<S>()
    }

    fn read(event: &Current<'_>) -> Option<Result<(), Error>> {
        <L as LogOfEvents>::read::<S>(event)
    }
}

/// Runs the command on the current log.
async fn dry_run_of<S: Slice, L: DryRunOn>(
    log: &L,
    vault: Option<Arc<dyn Vault>>,
    catalog: &Catalog,
    command: &S,
    envelope: &Envelope,
) -> DryRun {
    let dry_run = DryRunLog::of(log);
    let before = log.meter().snapshot();
    let none = Decisions::new(0);
    let vaulted: Box<dyn EventLog> = match vault {
        None => Box::new(&dry_run),
        Some(vault) => Box::new(Vaulted::new::<ReadsOf<S>>(&dry_run, vault)),
    };
    let handled = handle(&vaulted, catalog, &none, command, envelope).await;
    drop(vaulted);
    let usage = log.meter().snapshot().since(&before);
    described(handled, dry_run.end(), usage, log.reads_strongly())
}

/// Describes the notes of a dry run in words.
fn described(
    handled: Result<Handled, HandleError>,
    notes: Notes,
    usage: Usage,
    reads_strongly: bool,
) -> DryRun {
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
    DryRun {
        handled,
        reads,
        events: notes.events.into_values().collect(),
        intent: notes.intent,
        conflicts: notes.conflicts.iter().map(ToString::to_string).collect(),
        usage,
        looks: notes.looks,
    }
}

/// Describes in words how a boundary is read.
#[must_use]
pub fn by(access: &Access, strong: bool) -> String {
    let of_table = if strong { ", strongly consistent" } else { ", eventually consistent" };
    match access {
        Access::Partition => format!("its partition{of_table}"),
        Access::TagIndex(tag) => format!("the index tag_{}", tag.key),
        Access::CompositeIndex(_) => "the index tag_composite".to_owned(),
        Access::TagItems(_) => format!("the tag's copies of events{of_table}"),
        Access::TypeItems(_) => format!("the type's copies of events{of_table}"),
    }
}

/// Describes in words the part of a boundary that was seen.
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
