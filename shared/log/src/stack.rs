//! The logs of a stack.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use ringfence_aws::{Clock, Meter, MeteredVault};
use ringfence_core::{Catalog, Context, LogKind, LogOf, OnLog, Slice};

use crate::{BoxError, InTable, Log, OpenSource, Source, Sourced, Sources};

/// The logs of a stack, each in its table. Functions and tools open everything on these logs here.
#[derive(Clone)]
pub struct StackLogs {
    /// Sends the requests. Turn its own retries off.
    pub client: Client,
    /// The clock of their writers.
    pub clock: Clock,
    /// The names of their tables.
    pub tables: BTreeMap<LogKind, String>,
    /// Seals and opens personal data. A stack without them needs none.
    pub vault: Option<Arc<dyn MeteredVault>>,
}

impl StackLogs {
    /// The table of a log; `None` if it is not named.
    #[must_use]
    pub fn table(&self, log: LogKind) -> Option<InTable> {
        let name = self.tables.get(&log)?;
        let table = InTable::new(self.client.clone(), name, self.clock.clone());
        Some(InTable { vault: self.vault.clone(), ..table })
    }

    /// A slice on its log, as [`Log::open`].
    ///
    /// # Errors
    /// The table of the log is not named, or the slice can't be on the log.
    pub fn open<S: Slice<Context: Context<Log: Log<S>>>>(
        &self,
        kept: usize,
    ) -> Result<(impl OnLog<S> + use<S> + 'static, Meter), BoxError> {
        let facts = LogOf::<S>::SOURCE.facts();
        let unnamed = || {
            let (context, name) = (<S::Context as Context>::NAME, S::NAME);
            format!("{context}/{name} is on {}: name its table with {}", facts.name, facts.variable)
        };
        LogOf::<S>::open(self.table(facts.kind).ok_or_else(unnamed)?, kept)
    }

    /// The logs whose tables are named, for readers of the index: only their events are read.
    #[must_use]
    pub fn bodies(&self, all: &Sources) -> Vec<OpenSource> {
        let none =
            Catalog::new("none", []).expect("it has no types that could contradict each other");
        self.sources(all, &none)
    }

    /// The logs whose tables are named, ready to be followed, with the events of a catalog.
    #[must_use]
    pub fn sources(&self, all: &Sources, catalog: &Catalog) -> Vec<OpenSource> {
        let open = |source: &'static dyn Source| {
            Some(source.open(self.table(source.facts().kind)?, catalog.clone()))
        };
        all.iter().filter_map(open).collect()
    }
}
