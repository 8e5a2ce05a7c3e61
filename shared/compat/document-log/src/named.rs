//! The document log as the log of a context.

use std::any::type_name;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use futures::TryStreamExt;
use ringfence_aws::{Clock, Meter};
use ringfence_core::kit::MemoryVault;
use ringfence_core::{
    Context, Current, Envelope, Name, OnLog, Reads, SequencedEvent, Slice, Vault,
};
use ringfence_log::{
    BoundaryShape, BoxError, Dependence, DryRun, InTable, KeptState, Log, ReadBoundary, Source,
    Sourced, TipLimits,
};
use serde::de::Error as _;
use serde_json::{Error, Value};

use crate::{
    Cache, Category, CategoryError, Document, DocumentDryRun, DocumentLog, Documents, DynamoStore,
    MemoryStore, SOURCE, Snapshot, Store, decode, handle, kit,
};

impl<D: Document> Sourced for Documents<D> {
    const SOURCE: &'static dyn Source = SOURCE;
}

/// Describes how a command reads a document.
const BY_TIP: &str = "its Tip, and the calves that the state needs";

fn store(table: &InTable) -> DynamoStore {
    DynamoStore::new(table.client.clone(), &*table.name)
}

/// The documents of a slice's context in a store. Keeps the states of at most `kept` documents in memory.
fn category<S, D, T: Store>(
    store: T,
    clock: Clock,
    tips: Option<TipLimits>,
    vault: Option<Arc<dyn Vault>>,
    kept: usize,
) -> Result<Category<D, T>, CategoryError>
where
    S: Slice<State = D, Context: Context<Log = Documents<D>>>,
    D: Document,
{
    let cache = NonZeroUsize::new(kept).map_or_else(Cache::none, Cache::of);
    let category = Category::of::<S>(DocumentLog::new(store, clock), cache)?.with_vault(vault);
    Ok(match tips {
        None => category,
        Some(tips) => category.with_limits(tips),
    })
}

impl<S, D> Log<S> for Documents<D>
where
    S: Slice<State = D, Context: Context<Log = Self>>,
    D: Document,
{
    type Memory = MemoryStore;

    fn open(table: InTable, kept: usize) -> Result<(impl OnLog<S> + 'static, Meter), BoxError> {
        let store = store(&table);
        let meter = store.meter().clone();
        let vault = table.vault.map(|vault| vault.on(&meter));
        Ok((category::<S, D, _>(store, table.clock, table.tips, vault, kept)?, meter))
    }

    fn memory() -> Result<Self::Memory, BoxError> {
        Ok(MemoryStore::default())
    }

    fn in_memory(
        memory: Self::Memory,
        clock: Clock,
        kept: usize,
    ) -> Result<impl OnLog<S> + 'static, BoxError> {
        Ok(category::<S, D, _>(memory, clock, None, Some(Arc::<MemoryVault>::default()), kept)?)
    }

    fn check_in_memory() {
        kit::check_in_memory::<S, D>();
    }

    async fn dry_run(
        table: &InTable,
        command: &S,
        envelope: &Envelope,
    ) -> Result<DryRun, BoxError> {
        let store = store(table);
        let meter = store.meter().clone();
        let (store, clock) = (DocumentDryRun::of(store), table.clock.clone());
        let vault = table.vault.as_ref().map(|vault| vault.on(&meter).dry());
        let category = category::<S, D, _>(store, clock, table.tips, vault, 0)?;
        let handled = handle(&category, command, envelope).await.map_err(Into::into);
        let end = category.log().store().dry_run();
        let stream = category.id(&command.tags());
        let stream = category.stream(&stream).map(|stream| stream.partition());
        let boundary = stream.map_or_else(|_| String::new(), |stream| stream.to_string());
        let now = |version: &u64| format!("{boundary} was at version {version} by then");
        Ok(DryRun {
            handled,
            events: Vec::new(),
            intent: end.intent,
            conflicts: end.conflicts.iter().map(now).collect(),
            usage: meter.snapshot(),
            looks: end.looks,
            reads: vec![ReadBoundary {
                by: BY_TIP.to_owned(),
                types: Vec::new(),
                seen: end.version.map_or_else(|| "nothing".to_owned(), |n| format!("version {n}")),
                boundary,
            }],
        })
    }

    async fn verify(table: &InTable) -> Result<Vec<String>, BoxError> {
        let log = DocumentLog::new(store(table), table.clock.clone());
        let (envelope, mut wrong) = (Envelope::default(), Vec::new());
        let mut streams = log.streams(&envelope);
        while let Some(listed) = streams.try_next().await? {
            match listed {
                Ok(head) => {
                    let report = log.verify(&head.stream, &envelope).await?;
                    let said = report.problems.iter().map(|it| format!("{}: {it}", head.stream));
                    wrong.extend(said);
                }
                Err(item) => wrong.push(item.to_string()),
            }
        }
        Ok(wrong)
    }

    fn depends_on() -> BTreeMap<BoundaryShape, Dependence> {
        let types = D::Reads::TYPES.iter().map(|name| Name::Borrowed(name)).collect();
        let dependence = Dependence { by: BY_TIP.to_owned(), types };
        BTreeMap::from([(BoundaryShape::Stream(S::Context::NAME.to_owned()), dependence)])
    }

    fn origins() -> Vec<&'static str> {
        D::ACCESS.origins()
    }

    fn kept() -> Vec<KeptState> {
        // Other checks report a missing catalog.
        let Ok(catalog) = S::Context::catalog() else { return Vec::new() };
        let kept = |snapshot: &Snapshot<D>| KeptState {
            name: snapshot.name(),
            version: snapshot.number(&catalog),
            types: D::Reads::TYPES.iter().map(ToString::to_string).collect(),
            is_rolling: !D::ACCESS.keeps_events(),
            next_version: format!(
                "in `ACCESS` of {}: `Snapshot::named({:?}).version({})`",
                type_name::<D>(),
                snapshot.name(),
                snapshot.fold_version() + 1
            ),
            reads: |event| {
                is_of::<S::Context>(event) && D::Reads::TYPES.contains(&&*event.event_type)
            },
            fold: fold::<S::Context, D>,
        };
        D::ACCESS.snapshots().iter().map(kept).collect()
    }

    fn read(event: &Current<'_>) -> Option<Result<(), serde_json::Error>> {
        is_of::<S::Context>(event).then(|| decode::<S::Context, D>(event).map(drop))
    }
}

/// Whether the event belongs to a document of the context.
fn is_of<C: Context>(event: &SequencedEvent) -> bool {
    event.context == C::NAME && !event.partition.is_of_dcb_log()
}

/// The JSON of the snapshot of this name after each event.
fn fold<C, D>(name: &str, events: &[Current<'_>]) -> Result<Vec<Value>, Error>
where
    C: Context<Log = Documents<D>>,
    D: Document,
{
    let (mut state, mut all) = (D::default(), Vec::new());
    let snapshot = D::ACCESS.snapshots().iter().find(|snapshot| snapshot.name() == name);
    let snapshot = snapshot.ok_or_else(|| Error::custom("no document has the snapshot"))?;
    for event in events {
        if let Some(read) = decode::<C, D>(event)? {
            state = state.evolve(read);
            all.push(snapshot.json(&state)?);
        }
    }
    Ok(all)
}
