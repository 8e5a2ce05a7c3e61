//! One program with every function of a stack, for the stack on one machine. Each process of it is one function.
//!
//! On AWS each function has its own program, without the code of the others. Linking all of these takes a minute and
//! gigabytes, too much to see the stack work on one machine.
//!
//! Architecture invariant: it runs a function in the same way as the function's own program. The checks of a stack
//! compare the text of those programs with the list of the stack.

use std::process::ExitCode;

use crate::automations::{Ordered, ReactInOrder};
use crate::deadlines::{Deadlines, FireDeadlines};
use crate::project_views::ProjectViews;
use crate::queue::{QueuedSlices, RunCommands};
use crate::spans::ForwardSpans;
use crate::topic::PublishEvents;
use ringfence_core::{Context, Slice};
use ringfence_feed::index_events::IndexEvents;
use ringfence_lambda::{Service, run};
use ringfence_log::Log;
use ringfence_reactors::Reactor;
use ringfence_stack::{Function, MemberList, Members, Stack, Visitor};
use ringfence_views::query_views::QueryViews;

/// Runs the function of this name in the stack `M`, until the process ends. `None` if the stack has no such function.
///
/// In a workspace with several stacks, the functions that serve a whole stack have its name in front.
#[must_use]
pub fn function<M: Members>(name: &str) -> Option<ExitCode> {
    let mut named = Named { name, run: None };
    MemberList::walk::<M>(&mut named);
    let run = named.run.or_else(|| serving::<M>(name))?;
    Some(run())
}

/// How a function runs.
type Run = fn() -> ExitCode;

/// The function of a context that has this name.
struct Named<'n> {
    name: &'n str,
    run: Option<Run>,
}

impl Named<'_> {
    fn visit(&mut self, name: &str, run: Run) {
        if name == self.name {
            self.run = Some(run);
        }
    }
}

impl Visitor for Named<'_> {
    fn slice<S: Slice<Context: Context<Log: Log<S>>>>(&mut self) {
        self.visit(S::NAME, ringfence_lambda::slice::run::<S>);
    }

    fn reactor<R: Reactor>(&mut self) {
        self.visit(R::NAME, ringfence_reactors::run::<R>);
    }

    fn function<F: Function>(&mut self) {
        self.visit(F::NAME, || run::<F>(()));
    }
}

/// The function that serves the whole stack and has this name.
fn serving<M: Members>(name: &str) -> Option<Run> {
    let all: [(&str, Run); 8] = [
        (PublishEvents::NAME, || run::<PublishEvents>(stack::<M>().logs())),
        (IndexEvents::NAME, || run::<IndexEvents>(stack::<M>().logs())),
        (ProjectViews::NAME, || run::<ProjectViews>(stack::<M>().folded())),
        (QueryViews::NAME, || run::<QueryViews>(stack::<M>().views())),
        (ReactInOrder::NAME, || run::<ReactInOrder>(Ordered::of::<M>())),
        (FireDeadlines::NAME, || run::<FireDeadlines>(Deadlines::of::<M>())),
        (RunCommands::NAME, || run::<RunCommands>(QueuedSlices::of::<M>())),
        (ForwardSpans::NAME, || run::<ForwardSpans>(())),
    ];
    let is_it = |own: &str| {
        let front = name.strip_suffix(own);
        front.is_some_and(|front| front.is_empty() || front.ends_with('-'))
    };
    all.into_iter().find_map(|(own, run)| is_it(own).then_some(run))
}

fn stack<M: Members>() -> Stack {
    Stack::of::<M>().unwrap_or_else(|error| panic!("{error}"))
}
