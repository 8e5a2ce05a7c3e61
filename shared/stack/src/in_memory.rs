//! Runs the cases of a context in memory.

use std::error::Error;

use ringfence_aws::Clock;
use ringfence_core::kit::{BEGIN_MS, check_due, fail};
use ringfence_core::{Context, Due, LogOf, Slice};
use ringfence_log::Log;
use ringfence_reactors::{Reactor, kit::check_reactor};

use crate::{MemberList, Members, Visitor};

/// Runs the cases of every slice, due and reactor that `M` lists, in memory. Each context has a test that calls it,
/// which is built in a second or two. The tests of the stack, which run the cases on DynamoDB, are built with all
/// contexts. Panics with the place of a failed case.
pub fn check_cases_in_memory<M: Members>() {
    MemberList::walk::<M>(&mut InMemory);
}

struct InMemory;

impl Visitor for InMemory {
    fn slice<S: Slice<Context: Context<Log: Log<S>>>>(&mut self) {
        LogOf::<S>::check_in_memory();
    }

    fn due<D: Due<Context: Context<Log: Log<D>>>>(&mut self) {
        let clock = Clock::fixed(BEGIN_MS);
        let open = || {
            let memory = <LogOf<D> as Log<D>>::memory();
            let on = memory.and_then(|memory| LogOf::<D>::in_memory(memory, clock.clone(), 0));
            on.unwrap_or_else(|error| fail(D::NAME, error as Box<dyn Error>))
        };
        check_due::<D, _>(open, |now_ms| clock.set(now_ms));
    }

    fn reactor<R: Reactor>(&mut self) {
        check_reactor::<R>();
    }
}
