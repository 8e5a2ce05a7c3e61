//! The log by the name that a context has for it.

use std::any::type_name;
use std::collections::BTreeMap;
use std::time::Duration;

use ringfence_aws::{Intent, Meter};
use ringfence_core::{
    Append, Catalog, Consistency, Context, Current, LogError, LogKind, LogName, Read, Reads,
    ReadsOf, SequencedEvent, Slice, State,
};
use ringfence_log::{
    BoundaryShape, BoxError, InTable, KeptState, LogOfEvents, DryRunOn, Source, Sourced, by,
};
use serde_json::Error;

use crate::{DcbLog, SOURCE, VerifyOptions};

/// Names the DCB log as the log of a context.
pub struct Dcb;

impl LogName for Dcb {
    const KIND: LogKind = LogKind::Dcb;
}

impl Sourced for Dcb {
    const SOURCE: &'static dyn Source = SOURCE;
}

impl DryRunOn for DcbLog {
    fn meter(&self) -> &Meter {
        Self::meter(self)
    }

    async fn dry_run<'a>(
        &'a self,
        append: Append<'a>,
    ) -> Result<(Intent, Vec<SequencedEvent>), LogError> {
        Self::dry_run(self, append).await
    }
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

    /// The boundaries of the plans of all commands.
    fn depends_on<S: Slice>() -> BTreeMap<BoundaryShape, String> {
        let catalog = S::Context::catalog().ok();
        let plans = catalog.and_then(|catalog| ringfence_core::plans::<S>(&catalog).ok());
        let plans = plans.unwrap_or_default();
        let strong = S::CONSISTENCY == Consistency::Strong;
        let shape =
            |read: &Read| Some((BoundaryShape::of(&read.boundary)?, by(&read.access, strong)));
        plans.iter().flat_map(|plan| &plan.reads).filter_map(shape).collect()
    }

    /// The state that a slice keeps, if it does.
    fn kept<S: Slice>() -> Vec<KeptState> {
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

fn is_of_slice<S: Slice>(event: &SequencedEvent) -> bool {
    event.partition.is_of_dcb_log() && ReadsOf::<S>::TYPES.contains(&&*event.event_type)
}
