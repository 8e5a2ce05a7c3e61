//! The log by the name that a context has for it.

use std::collections::BTreeMap;

use ringfence_aws::{Intent, Meter};
use ringfence_core::{
    Access, Append, Catalog, Context, Current, LogError, LogKind, LogName, Reads, ReadsOf,
    SequencedEvent, Slice,
};
use ringfence_log::{BoundaryShape, BoxError, InTable, LogOfEvents, DryRunOn, Source, Sourced, by};
use serde::de::Error as _;
use serde_json::Error;

use crate::{AggregateLog, AggregateTable, SOURCE, whole};

/// Names the aggregate log as the log of a context: each of its events is in one aggregate, which its one tag names.
pub struct Aggregates;

impl LogName for Aggregates {
    const KIND: LogKind = LogKind::Aggregates;
}

impl Sourced for Aggregates {
    const SOURCE: &'static dyn Source = SOURCE;
}

impl DryRunOn for AggregateLog {
    fn meter(&self) -> &Meter {
        self.table().meter()
    }

    async fn dry_run<'a>(
        &'a self,
        append: Append<'a>,
    ) -> Result<(Intent, Vec<SequencedEvent>), LogError> {
        Self::dry_run(self, append).await
    }
}

impl LogOfEvents for Aggregates {
    type Open = AggregateLog;

    fn open(table: &InTable, catalog: Catalog) -> AggregateLog {
        let InTable { client, name, clock, .. } = table;
        let table = AggregateTable::new(client.clone(), &**name, clock.clone());
        AggregateLog::new(table, catalog, clock.clone())
    }

    async fn verify(log: AggregateLog) -> Result<Vec<String>, BoxError> {
        let report = log.table().verify(&|_| {}).await?;
        Ok(report.wrong.iter().map(ToString::to_string).collect())
    }

    fn depends_on<S: Slice>() -> BTreeMap<BoundaryShape, String> {
        let stream = BoundaryShape::Stream(S::Context::NAME.to_owned());
        BTreeMap::from([(stream, by(&Access::Partition, true))])
    }

    fn read<S: Slice>(event: &Current<'_>) -> Option<Result<(), Error>> {
        let is_read = event.context == S::Context::NAME
            && event.partition.as_str().contains('#')
            && ReadsOf::<S>::TYPES.contains(&&*event.event_type);
        is_read.then(|| {
            // The payload need not repeat the aggregate's id.
            let catalog = S::Context::catalog().map_err(Error::custom)?;
            let event = catalog.current(whole(SequencedEvent::clone(event), &catalog));
            ReadsOf::<S>::decode(&event.map_err(Error::custom)?).map(drop)
        })
    }
}
