//! Whether all is well with a stack, and what is not: for `ringfence status`, and for the console.

use ringfence_aws::Clock;

mod commands;
mod finding;
mod kept;
mod readers;
mod sources;

pub use finding::{
    COMMANDS_MS, CONTENDED_MIN, QUEUED_LATE_MS, READER_LATE_MS, REJECTED_MIN, StackCounts,
    StackFault, StackVerdict, What,
};
pub use sources::{VerdictFlags, VerdictSources};

impl StackVerdict {
    /// Looks at all sources at once.
    pub async fn find(sources: &VerdictSources<'_>) -> Self {
        let at_ms = Clock::system().now_ms();
        let (readers, kept, commands) = tokio::join!(
            readers::find(sources, at_ms),
            kept::find(sources, at_ms),
            commands::find(sources, at_ms)
        );
        let mut verdict = [readers, kept, commands].into_iter().fold(Self::default(), Self::and);
        if let Some((views, reactors, due)) = &sources.views {
            let [index, checkpoints, rows] = views.meters();
            for meter in [index, checkpoints, rows, reactors.meter(), due.meter()] {
                let usage = meter.snapshot();
                verdict.requests += usage.reads + usage.writes;
                verdict.read_units += usage.total().read;
            }
        }
        verdict.findings.sort_by_key(|fault| fault.what);
        verdict.at_ms = at_ms;
        verdict
    }
}
