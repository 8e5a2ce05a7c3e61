//! The dues of a stack, with the code that sends their commands.

use std::time::Duration;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use ringfence_aws::Clock;
use ringfence_core::{Context, Due, DueRow, OnLog, Outcome, chain, is_personal};
use ringfence_log::{BoxError, Log, Sourced, Sources, StackLogs};
use ringfence_stack::{MemberList, Members, Visitor};
use ringfence_views::Definition;
use serde_json::Value;
use tokio::time::timeout;

/// How long one command may take, so that one that hangs leaves time to the others.
const COMMAND_TIME: Duration = Duration::from_secs(5);

/// The dues of a stack.
#[derive(Clone, Default)]
pub struct Deadlines {
    dues: Vec<Listed>,
    /// The logs of the stack.
    pub(crate) sources: Sources,
    /// Whether a slice of them has personal data.
    pub(crate) is_personal: bool,
}

type Open = fn(&StackLogs) -> Result<Box<dyn Fire>, BoxError>;

#[derive(Clone, Copy)]
struct Listed {
    definition: Definition,
    looks_ahead: bool,
    open: Open,
}

/// A due on the log of its slice.
pub(crate) struct Opened {
    pub(crate) definition: Definition,
    pub(crate) looks_ahead: bool,
    pub(crate) on: Box<dyn Fire>,
}

/// Sends the command of a row.
pub(crate) trait Fire {
    fn fire<'a>(&'a self, id: &'a str, row: Value) -> LocalBoxFuture<'a, Result<(), String>>;
}

impl Deadlines {
    /// The dues that the stack `M` lists.
    #[must_use]
    pub fn of<M: Members>() -> Self {
        let mut deadlines = Self::default();
        MemberList::walk::<M>(&mut deadlines);
        deadlines
    }

    /// Opens each on its log.
    pub(crate) fn open(&self, logs: &StackLogs) -> Result<Vec<Opened>, BoxError> {
        let open = |listed: &Listed| {
            let Listed { definition, looks_ahead, open } = *listed;
            Ok(Opened { definition, looks_ahead, on: open(logs)? })
        };
        self.dues.iter().map(open).collect()
    }
}

impl Visitor for Deadlines {
    fn context<C: Context<Log: Sourced>>(&mut self) {
        self.sources.add(C::Log::SOURCE);
    }

    fn due<D: Due<Context: Context<Log: Log<D>>>>(&mut self) {
        let open: Open = |logs| {
            // No decision is kept, because a row comes once.
            let (on, _) = logs.open::<D>(0)?;
            let of = Of { on, clock: logs.clock.clone(), due: std::marker::PhantomData::<D> };
            Ok(Box::new(of))
        };
        self.is_personal |= is_personal::<D>();
        let definition = Definition::of_due::<D>();
        self.dues.push(Listed { definition, looks_ahead: D::LOOKS_AHEAD, open });
    }
}

struct Of<D, L> {
    on: L,
    clock: Clock,
    due: std::marker::PhantomData<D>,
}

impl<D: Due, L: OnLog<D>> Fire for Of<D, L> {
    fn fire<'a>(&'a self, id: &'a str, row: Value) -> LocalBoxFuture<'a, Result<(), String>> {
        let fired = async move {
            let row: DueRow<D::Row> = serde_json::from_value(row).map_err(|error| chain(&error))?;
            let command = D::command(id, &row.row).map_err(|error| chain(&*error))?;
            let mut envelope = row.envelope::<D>(id, self.clock.now_ms());
            let time_ms = u64::try_from(COMMAND_TIME.as_millis()).unwrap_or(u64::MAX);
            envelope.deadline_ms = Some(self.clock.machine_ms().saturating_add(time_ms));
            let handled = timeout(COMMAND_TIME, self.on.handle(&command, &envelope)).await;
            let handled = handled.map_err(|_| "the command took too long".to_owned())?;
            let handled = handled.map_err(|error| chain(&error))?;
            match handled.outcome {
                Outcome::Accepted(_) if handled.repeated => Err(
                    "the command took effect before, and no event has cleared the row since: perhaps the view is behind"
                        .to_owned(),
                ),
                Outcome::Accepted(events) if events.is_empty() => {
                    Err("the command had nothing to change".to_owned())
                }
                Outcome::Accepted(_) => Ok(()),
                Outcome::Rejected { rejected, .. } => {
                    Err(format!("the command was rejected: {}", rejected.message))
                }
            }
        };
        fired.boxed_local()
    }
}
