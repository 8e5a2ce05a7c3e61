//! __Slice__: __summary__.
//!
//! It is due __after__ after a __Of__, unless an event clears the time before. Write such events into `Consumed`, `rows`
//! and `evolve`.

use crate::{__Context__, __Event__, __Id__};
use ringfence::prelude::*;

/// How long after the event it is due, in milliseconds. If the time was promised, keep it in the event instead.
const AFTER_MS: u64 = __ms__;

/// The command.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct __Slice__ {
    #[tag(partition)]
    pub __id__: __Id__,
}

/// What the decision reads, and what sets and clears the time.
#[derive(Reads)]
pub enum Consumed {
    __Of__ {
        __mark__
        __id__: __Id__,
        /// When, in milliseconds since 1970.
        #[time]
        at_ms: u64,
    },
    __Event__ {
        __mark__
        __id__: __Id__,
    },
}

/// When it is due, in milliseconds since 1970; nothing if it is not.
#[derive(Default)]
pub struct __Slice__State(Option<u64>);

impl State for __Slice__State {
    type Reads = Consumed;

    fn evolve(self, event: Consumed) -> Self {
        __Slice__State(<__Slice__ as Due>::evolve(self.0, "", &event))
    }
}

impl Slice for __Slice__ {
    const NAME: &'static str = "__slice__";
    const CALLERS: Callers = Callers::Nobody;
    type Context = __Context__;
    type State = __Slice__State;
    type Writes = __Event__;
    type Rejection = Never;

    fn decide(
        &self,
        __Slice__State(due_ms): &__Slice__State,
        context: &CommandContext,
    ) -> Result<Vec<__Event__>, Never> {
        // The row from which the command comes can be old, so the time is compared here.
        let is_due = due_ms.is_some_and(|due_ms| due_ms <= context.now_ms);
        Ok(if is_due { vec![__Event__ { __id__: self.__id__.clone() }] } else { vec![] })
    }

    fn cases() -> Vec<Case<Self>> {
        let begun = || given(events![crate::__Of__ { __fields__ }]);
        let command = || __Slice__ { __id__: id("one") };
        let event = || __Event__ { __id__: id("one") };
        vec![
            given([]).when(command()).then_nothing(),
            begun().wait(AFTER_MS - 1).when(command()).then_nothing(),
            begun().wait(AFTER_MS).when(command()).then([event()]),
            begun().wait(AFTER_MS).and(events![event()]).when(command()).then_nothing(),
        ]
    }
}

impl Due for __Slice__ {
    type Reads = Consumed;
    /// When it is due, in milliseconds since 1970.
    type Row = u64;

    fn rows(event: &Consumed) -> Vec<String> {
        let (Consumed::__Of__ { __id__, .. } | Consumed::__Event__ { __id__ }) = event;
        vec![__id__.to_string()]
    }

    fn evolve(_: Option<u64>, _: &str, event: &Consumed) -> Option<u64> {
        match event {
            Consumed::__Of__ { at_ms, .. } => Some(at_ms + AFTER_MS),
            Consumed::__Event__ { .. } => None,
        }
    }

    fn due_ms(row: &u64) -> Option<u64> {
        Some(*row)
    }

    fn command(id: &str, _: &u64) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self { __id__: id.parse()? })
    }

    fn due_cases() -> Vec<DueCase<Self>> {
        let begun = || given(events![crate::__Of__ { __fields__ }]);
        let ended = || __Event__ { __id__: id("one") };
        vec![
            begun().wait(AFTER_MS - 1).then_none_due(),
            begun().wait(AFTER_MS).then_due([__Slice__ { __id__: id("one") }]),
            begun().wait(AFTER_MS).and(events![ended()]).then_none_due(),
        ]
    }
}
