//! __Slice__: __summary__.

use crate::{__Event__, __Id__, __Context__};
use ringfence::prelude::*;
__use_serde__

/// The command.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct __Slice__ {
    #[tag(partition)]
    pub __id__: __Id__,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    __Event__,
}

#[derive(Default)]
pub struct __Slice__State {
    done: bool,
}

impl State for __Slice__State {
    type Reads = Consumed;

    fn evolve(self, event: Consumed) -> Self {
        match event {
            Consumed::__Event__ => __Slice__State { done: true },
        }
    }
}

impl Slice for __Slice__ {
    const NAME: &'static str = "__slice__";
__reacts_to__
    type Context = __Context__;
    type State = __Slice__State;
    type Writes = __Event__;
    type Rejection = Never;

    fn decide(&self, state: &__Slice__State, _: &CommandContext) -> Result<Vec<__Event__>, Never> {
        if state.done {
            return Ok(vec![]);
        }
        Ok(vec![__Event__ { __id__: self.__id__.clone() }])
    }
__react__

    fn cases() -> Vec<Case<Self>> {
        let command = || __Slice__ { __id__: id("one") };
        let event = |of| __Event__ { __id__: id(of) };
        vec![
            given([]).when(command()).then([event("one")]),
            given(events![event("two")]).when(command()).then([event("one")]),
            given(events![event("one")]).when(command()).then_nothing(),
        ]
    }
}

__cause__
