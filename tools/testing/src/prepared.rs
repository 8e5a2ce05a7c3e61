//! A table with the facts of a case.

use std::error::Error;

use ringfence_core::kit::{Case, fail};
use ringfence_core::{Context, LogKind, LogName, LogOf, OnLog, Slice};
use ringfence_document_log::TipLimits;
use ringfence_local::template::Template;
use ringfence_log::{InTable, Log};
use ringfence_template::written::table_of;

use crate::Dynamo;

/// The limits of Tips in the cases on a log. On the document log they are the document's, and so small that each append
/// but the first makes a calf. The other logs have no Tips.
#[must_use]
pub fn tips_of(log: LogKind) -> Vec<Option<TipLimits>> {
    let each = TipLimits { events_max: Some(1), ..TipLimits::default() };
    match log {
        LogKind::Dcb | LogKind::Aggregates => vec![None],
        LogKind::Documents => vec![None, Some(each)],
    }
}

/// A slice on the log in a table.
pub(crate) fn open<S: Slice<Context: Context<Log: Log<S>>>>(
    table: &InTable,
    kept: usize,
) -> impl OnLog<S> {
    let on = LogOf::<S>::open(table.clone(), kept);
    on.unwrap_or_else(|error| fail(S::NAME, error as Box<dyn Error>)).0
}

/// A table with the facts of a case. The requests of the preparation are not recorded.
pub(crate) async fn prepared<S: Slice<Context: Context<Log: Log<S>>>>(
    template: &Template,
    tips: Option<TipLimits>,
    case: &Case<S>,
) -> (Dynamo, InTable) {
    let log = LogOf::<S>::KIND;
    let dynamo = Dynamo::with(template, &[table_of(log)]);
    let table = InTable { tips, ..dynamo.table(log) };
    case.prepare(&open::<S>(&table, 0), &|now_ms| table.clock.set(now_ms)).await;
    dynamo.wire.forget();
    let table = InTable { vault: dynamo.vault().map(|vault| vault as _), ..table };
    (dynamo, table)
}
