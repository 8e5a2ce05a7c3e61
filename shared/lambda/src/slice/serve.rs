//! Serves the function of a slice.

use std::collections::BTreeMap;
use std::process::ExitCode;

use crate::{Issuers, VariableNames, Variables, VaultNames};
use futures::future::LocalBoxFuture;
use lambda_runtime::{LambdaEvent, service_fn};
use ringfence_aws::Clock;
use ringfence_core::{Context, LogKind, LogOf, OnLog, Slice, is_personal};
use ringfence_log::{BoxError, Log, StackLogs};
use serde_json::value::RawValue;

use crate::slice::function::{AnyFunction, Function, Invoked};

/// A warm handler keeps this many decisions or documents, unless `DECISION_CACHE_ENTRIES` is set; with 0 it keeps none.
const DECISION_CACHE_ENTRIES_DEFAULT: usize = 100;

/// Runs the slice until Lambda ends the process. If it can't start (a variable is missing, or slice and catalog
/// disagree), one line of the log names everything to mend.
pub fn run<S: Slice<Context: Context<Log: Log<S>>>>() -> ExitCode {
    let open = async { Ok(Box::new(open::<S>().await?) as Box<dyn AnyFunction>) };
    crate::start(Some(S::NAME), None, serve(Box::pin(open)))
}

/// The variables that the slice's function reads.
pub fn variables<S: Slice<Context: Context<Log: Log<S>>>>() -> VariableNames {
    Variables::names(config::<S, LogOf<S>>)
}

/// The values of the variables.
struct Config {
    /// The table of its log.
    tables: BTreeMap<LogKind, String>,
    /// It keeps this many decisions or documents.
    entries: usize,
    /// The issuers of tokens that have aliases.
    issuers: Issuers,
    /// Whether each slice has separate metrics.
    per_slice: bool,
    /// Its vault, if it reads or writes personal data.
    vault: Option<VaultNames>,
}

fn config<S: Slice, L: Log<S>>(variables: &mut Variables) -> Config {
    Config {
        tables: variables.tables(&[L::SOURCE].into()),
        entries: variables.optional("DECISION_CACHE_ENTRIES", DECISION_CACHE_ENTRIES_DEFAULT),
        issuers: variables.optional("JWT_ISSUERS", Issuers::default()),
        per_slice: variables.optional("METRICS_PER_SLICE", false),
        vault: variables.vault(is_personal::<S>()),
    }
}

async fn open<S: Slice<Context: Context<Log: Log<S>>>>()
-> Result<Function<S, impl OnLog<S>>, BoxError> {
    let Config { tables, entries, issuers, per_slice, vault } =
        Variables::from_env(config::<S, LogOf<S>>)?;
    let clock = Clock::system();
    let client = ringfence_aws::client_from_env()?;
    let vault = crate::vault(vault, &client, &clock).await?;
    let logs = StackLogs { client, clock: clock.clone(), tables, vault };
    let (on, meter) = logs.open(entries)?;
    ringfence_aws::open(&logs.client, &logs.clock).await;
    let vault = logs.vault.map(|vault| vault.on(&meter));
    let function = Function::new(on, clock, meter).with_vault(vault);
    Ok(function.with_issuers(issuers).with_metrics(per_slice))
}

/// Serves a function of any slice. Neither it nor its future has a type parameter, so Lambda's runtime is compiled
/// once, and not for each slice.
fn serve(
    open: LocalBoxFuture<'static, Result<Box<dyn AnyFunction>, BoxError>>,
) -> LocalBoxFuture<'static, Result<(), BoxError>> {
    Box::pin(async {
        let function = &*open.await?;
        lambda_runtime::run(service_fn(move |event: LambdaEvent<Box<RawValue>>| async move {
            let Invoked { answer, lines } =
                function.call(event.payload.get(), &event.context).await;
            lines.iter().for_each(|line| line.log().write());
            answer
        }))
        .await
    })
}
