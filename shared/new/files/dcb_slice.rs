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
pub struct State {
    done: bool,
}

impl Slice for __Slice__ {
    const NAME: &'static str = "__slice__";
__reacts_to__
    type Context = __Context__;
    type State = State;
    type Writes = __Event__;
    type Rejection = Never;

    fn decide(&self, state: &State, _: &CommandContext) -> Result<Vec<__Event__>, Never> {
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

impl DcbSlice for __Slice__ {
    type Reads = Consumed;

    fn evolve(_state: State, event: Consumed) -> State {
        match event {
            Consumed::__Event__ => State { done: true },
        }
    }
}
__cause__
