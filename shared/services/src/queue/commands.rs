//! The slices of a stack, for commands from the queue.

use ringfence_core::{Context, Slice, is_personal, route_scopes};
use ringfence_lambda::slice::Hosted;
use ringfence_log::{BoxError, Log, Sourced, Sources, StackLogs};
use ringfence_stack::{MemberList, Members, Visitor};

/// The slices of a stack.
#[derive(Clone, Debug, Default)]
pub struct QueuedSlices {
    slices: Vec<Listed>,
    /// The logs of the stack.
    pub(crate) sources: Sources,
    /// Whether one of them has personal data.
    pub(crate) is_personal: bool,
}

#[derive(Clone, Debug)]
struct Listed {
    /// `<context>/<slice>`.
    name: String,
    scopes: Option<&'static [&'static str]>,
    open: fn(&StackLogs) -> Result<Hosted, BoxError>,
}

/// A slice on its log.
pub(crate) struct OpenSlice {
    pub(crate) name: String,
    /// The scopes of its route; `None` if it has no route.
    pub(crate) scopes: Option<&'static [&'static str]>,
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

    /// Each on its log.
    pub(crate) fn open(&self, logs: &StackLogs) -> Result<Vec<OpenSlice>, BoxError> {
        let open = |Listed { name, scopes, open }: &Listed| {
            Ok(OpenSlice { name: name.clone(), scopes: *scopes, hosted: open(logs)? })
        };
        self.slices.iter().map(open).collect()
    }
}

impl Visitor for QueuedSlices {
    fn context<C: Context<Log: Sourced>>(&mut self) {
        self.sources.add(C::Log::SOURCE);
    }

    fn slice<S: Slice<Context: Context<Log: Log<S>>>>(&mut self) {
        self.is_personal |= is_personal::<S>();
        self.slices.push(Listed {
            name: format!("{}/{}", <S::Context as Context>::NAME, S::NAME),
            scopes: const { route_scopes::<S>() },
            open: Hosted::open::<S>,
        });
    }
}
