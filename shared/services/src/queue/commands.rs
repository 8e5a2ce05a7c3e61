//! The slices of a stack, for commands from the queue.

use aws_sdk_dynamodb::Client;
use ringfence_aws::Clock;
use ringfence_core::{Context, LogOf, Slice};
use ringfence_lambda::slice::Hosted;
use ringfence_log::{BoxError, Log, Sourced, Sources};
use ringfence_stack::{MemberList, Members, Visitor};

/// The slices of a stack.
#[derive(Clone, Debug, Default)]
pub struct QueuedSlices {
    slices: Vec<Listed>,
    /// The logs of the stack.
    pub(crate) sources: Sources,
}

#[derive(Clone, Debug)]
struct Listed {
    /// `<context>/<slice>`.
    name: String,
    scopes: &'static [&'static str],
    /// The variable that names the table of its log.
    table: &'static str,
    open: fn(Client, String, Clock) -> Result<Hosted, BoxError>,
}

/// A slice on its log.
pub(crate) struct OpenSlice {
    pub(crate) name: String,
    pub(crate) scopes: &'static [&'static str],
    pub(crate) hosted: Hosted,
}

impl QueuedSlices {
    /// The slices that the stack `M` lists.
    #[must_use]
    pub fn of<M: Members>() -> Self {
        let mut slices = Self::default();
        MemberList::walk::<M>(&mut slices);
        slices
    }

    /// Opens each on its log. The variables name the tables of the logs.
    pub(crate) fn open(
        &self,
        client: &Client,
        logs: &[(&str, String)],
        clock: &Clock,
    ) -> Result<Vec<OpenSlice>, BoxError> {
        let open = |listed: &Listed| {
            let Listed { name, scopes, table, open } = listed;
            let named = logs.iter().find(|(variable, _)| variable == table);
            let unknown = || format!("{table} names the table of {name}, which is not known");
            let (_, table) = named.ok_or_else(unknown)?;
            let hosted = open(client.clone(), table.clone(), clock.clone())?;
            Ok(OpenSlice { name: name.clone(), scopes, hosted })
        };
        self.slices.iter().map(open).collect()
    }
}

impl Visitor for QueuedSlices {
    fn context<C: Context<Log: Sourced>>(&mut self) {
        self.sources.add(C::Log::SOURCE);
    }

    fn slice<S: Slice<Context: Context<Log: Log<S>>>>(&mut self) {
        self.slices.push(Listed {
            name: format!("{}/{}", <S::Context as Context>::NAME, S::NAME),
            scopes: S::SCOPES,
            table: LogOf::<S>::SOURCE.facts().variable,
            open: Hosted::open::<S>,
        });
    }
}
