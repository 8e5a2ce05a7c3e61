//! Lets time pass for dues, as `ringfence due --in` does.

use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use ringfence_aws::{Clock, client_of, sdk_config_of};
use ringfence_core::LogKind;
use ringfence_local::stack::RunningStack;
use ringfence_local::walker::{EVENTS_WAIT_MAX, INDEX_PAUSE};
use ringfence_log::StackLogs;
use ringfence_services::deadlines::{Deadlines, Sweep};
use stack::Shop;
use tokio::time::sleep;

/// Waits until the rows show a command that is due in this many minutes, and sends it.
///
/// # Errors
/// A table can't be read, or nothing is due.
pub(crate) async fn pass(stack: &RunningStack, minutes: u64) -> Result<()> {
    println!("→ ringfence due --in {minutes}m");
    let variables = stack.variables();
    let table = |name: &str| variables.get(name).cloned().context("a table without a variable");
    let tables = [
        (LogKind::Dcb, table("EVENT_TABLE")?),
        (LogKind::Aggregates, table("AGGREGATE_TABLE")?),
        (LogKind::Documents, table("DOCUMENT_TABLE")?),
    ];
    let views = table("VIEW_TABLE")?;
    let (client, clock) = (client_of(&sdk_config_of(variables)?), Clock::system());
    let mut logs = StackLogs { client, clock, tables: tables.into() };
    let (deadlines, begin) = (Deadlines::of::<Shop>(), Instant::now());
    loop {
        logs.clock = Clock::running(Clock::system().now_ms() + minutes * 60_000);
        let swept = Sweep::new(&deadlines, &logs, &views);
        let swept = swept.map_err(|error| anyhow!(error))?.all(EVENTS_WAIT_MAX).await;
        // A row may not show yet that its order is paid. Its command then has nothing to do.
        ensure!(swept.failures.is_empty(), "{swept:?}");
        if swept.fired > 0 {
            println!("← {} took effect", swept.fired);
            return Ok(());
        }
        ensure!(begin.elapsed() < EVENTS_WAIT_MAX, "nothing is due");
        sleep(INDEX_PAUSE).await;
    }
}
