//! __Slice__: __summary__.

use crate::{__uses__};
use ringfence::prelude::*;
__use_serde__

/// The command.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct __Slice__ {
    #[tag(partition)]
    pub __id__: __Id__,
}
__own_state__

impl Slice for __Slice__ {
    const NAME: &'static str = "__slice__";
__reacts_to__
    type Context = __Context__;
    type State = __State__;
    type Writes = __Event__;
    type Rejection = Never;

    fn decide(&self, __state__: &__State__, _: &CommandContext) -> Result<Vec<__Event__>, Never> {
__done__
        Ok(vec![__Event__ { __id__: self.__id__.clone() }])
    }
__react__

    fn cases() -> Vec<Case<Self>> {
        let command = || __Slice__ { __id__: id("one") };
        let event = |of| __Event__ { __id__: id(of) };
__other__
        vec![
            given([]).when(command()).then([event("one")]),
            given(events![event("two")]).when(command()).then([event("one")]),
__after_other__
__repeated__
        ]
    }
}

__cause__
