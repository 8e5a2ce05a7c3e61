//! The log by its name in a context, and as the index and the EventTopic follow it.

use crate::get::get_all;
use crate::item::{APPEND_ID, EVENT, ID, POSITION, key};
use crate::{DcbLog, VerifyOptions, event_of_image, table_layout};
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use ringfence_aws::{Item, Meter, Retry, TableLayout};
use ringfence_core::{
    BoundaryId, Catalog, CatalogError, Consistency, Context, Current, LogError, LogKind, LogName,
    Plan, Reads, ReadsOf, SequencedEvent, Slice, SliceError, State,
};
use ringfence_log::news::{Found, Run, Single, StreamError, bounded, whole};
use ringfence_log::{
    BoundaryShape, BoxError, Dependence, InTable, KeptState, LogOfEvents, NewEvents, OpenSource,
    Source, SourceFacts, SourceTable, Sourced, StoredEvents, by,
};
use serde_json::Error;
use std::any::type_name;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Names the DCB log as the log of a context.
pub struct Dcb;

impl LogName for Dcb {
    const KIND: LogKind = LogKind::Dcb;
}

impl Sourced for Dcb {
    const SOURCE: &'static dyn Source = SOURCE;
}

impl LogOfEvents for Dcb {
    type Open = DcbLog;

    fn open(table: &InTable, catalog: Catalog) -> DcbLog {
        DcbLog::new(table.client.clone(), &*table.name, catalog, table.clock.clone())
    }

    async fn verify(log: DcbLog) -> Result<Vec<String>, BoxError> {
        let options = VerifyOptions { settle: Duration::ZERO, ..VerifyOptions::default() };
        let report = log.verify_fences(&options).await?;
        Ok(if report.in_order() { Vec::new() } else { vec![format!("{report:?}")] })
    }

    /// The boundaries in the plans of all commands.
    fn depends_on<S: Slice>() -> BTreeMap<BoundaryShape, Dependence> {
        let strong = S::CONSISTENCY == Consistency::Strong;
        dependences(S::Context::catalog, ringfence_core::plans::<S>, strong)
    }

    /// The state that a slice keeps, if any.
    fn kept<S: Slice>() -> Vec<KeptState> {
        // Other checks report why there is no catalog.
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
            reads: is_of_slice::<S>,
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

    fn read<S: Slice>(event: &Current<'_>) -> Option<Result<(), Error>> {
        is_of_slice::<S>(event).then(|| ReadsOf::<S>::decode(event).map(drop))
    }
}

/// The shapes of the boundaries in plans. It is not generic, so a program with many slices has it once.
fn dependences(
    catalog: fn() -> Result<Catalog, CatalogError>,
    plans: fn(&Catalog) -> Result<Vec<Plan>, SliceError>,
    strong: bool,
) -> BTreeMap<BoundaryShape, Dependence> {
    let plans = catalog().ok().and_then(|catalog| plans(&catalog).ok()).unwrap_or_default();
    let mut found = BTreeMap::new();
    for read in plans.iter().flat_map(|plan| &plan.reads) {
        let Some(shape) = BoundaryShape::of(&read.boundary) else { continue };
        let none = || Dependence { by: String::new(), types: BTreeSet::new() };
        let dependence = found.entry(shape).or_insert_with(none);
        dependence.by = by(&read.access, strong);
        dependence.types.extend(read.types.iter().cloned());
    }
    found
}

fn is_of_slice<S: Slice>(event: &SequencedEvent) -> bool {
    event.partition.is_of_dcb_log() && ReadsOf::<S>::TYPES.contains(&&*event.event_type)
}

/// The log as its followers see it.
pub const SOURCE: &dyn Source = &Dcb;

impl Source for Dcb {
    fn facts(&self) -> &'static SourceFacts {
        &SourceFacts {
            kind: LogKind::Dcb,
            name: "the DCB log",
            table: "EventTable",
            variable: "EVENT_TABLE",
            attributes: [ID, POSITION, EVENT],
        }
    }

    fn layout(&self, catalog: &Catalog) -> TableLayout {
        table_layout(catalog)
    }

    fn open(&self, table: InTable, catalog: Catalog) -> OpenSource {
        <Self as LogOfEvents>::open(&table, catalog).into()
    }

    fn events(&self, image: Item) -> Result<Vec<Result<SequencedEvent, BoxError>>, BoxError> {
        Ok(event_of_image(image)?.into_iter().map(Ok).collect())
    }

    fn event(&self, item: Item) -> Result<SequencedEvent, BoxError> {
        event_of_image(item)?.ok_or_else(|| "it has no event type".into())
    }

    fn is_of_index(&self, attribute: &str) -> bool {
        attribute.starts_with("tag_")
    }

    fn news(&self, image: Item) -> Result<Option<NewEvents>, BoxError> {
        if !image.contains_key(EVENT) {
            return Ok(None);
        }
        let (partition, slot) = self.place(&image).ok_or("its key is not that of an event")?;
        Ok(Some((partition, [(slot, image)].into())))
    }

    fn append_id<'i>(&self, item: &'i Item) -> Option<&'i String> {
        item.get(APPEND_ID)?.as_s().ok()
    }
}

impl From<DcbLog> for OpenSource {
    fn from(log: DcbLog) -> Self {
        Self { source: SOURCE, table: Box::new(log) }
    }
}

fn unread(what: &'static str) -> impl Fn(LogError) -> StreamError {
    move |error| StreamError::Unread { what, is_transient: true, source: error.into() }
}

impl SourceTable for DcbLog {
    fn news<'a>(
        &'a self,
        partition: &'a BoundaryId,
        after: Option<u64>,
        known: &'a BTreeMap<u64, Item>,
        retry: Retry,
    ) -> BoxFuture<'a, Result<Found, StreamError>> {
        let look = move |from: u64| async move {
            let items = self.items_in(partition, from..=u64::MAX, true, retry);
            bounded(items.map_err(unread("partition")), POSITION).await
        };
        let wanted = LogKind::Dcb.slot_after(after);
        Box::pin(whole(partition, wanted, known, retry, look))
    }

    fn singles<'a>(
        &'a self,
        places: Vec<Single<'a>>,
        strong: bool,
    ) -> BoxFuture<'a, Result<Vec<Item>, StreamError>> {
        let key = |(partition, slot): Single<'_>| key(partition.as_str(), slot);
        let keys = places.into_iter().map(key).collect();
        Box::pin(async move {
            let items = get_all(self, Retry::default(), keys, strong).await;
            items.map_err(unread("events"))
        })
    }

    fn run<'a>(
        &'a self,
        (partition, slots): Run<'a>,
        strong: bool,
    ) -> BoxFuture<'a, Result<Vec<Item>, StreamError>> {
        let items = self.items_in(partition, slots, strong, Retry::default());
        Box::pin(items.map_err(unread("events")).try_collect())
    }

    fn meter(&self) -> &Meter {
        self.table.meter()
    }

    fn stored(&self) -> BoxStream<'_, Result<StoredEvents, StreamError>> {
        self.items_strong().map_ok(StoredEvents::Event).map_err(unread("event table")).boxed()
    }
}
