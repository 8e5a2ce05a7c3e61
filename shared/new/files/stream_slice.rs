//! __Slice__: __summary__.

use crate::{__Id__, __Context__, __Events__};
use ringfence::prelude::*;
__use_serde__

/// The command.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct __Slice__ {
    pub __id__: __Id__,
}

impl Slice for __Slice__ {
    const NAME: &'static str = "__slice__";
__reacts_to__
    type Context = __Context__;
    type State = <__Context__ as StreamContext>::State;
    type Writes = __Events__;
    type Rejection = Never;

    fn decide(&self, __state__: &Self::State, _: &CommandContext) -> Result<Vec<__Events__>, Never> {
__done__
        Ok(vec![__Events__::__Event__ { __id__: self.__id__.clone() }])
    }
__react__

    fn cases() -> Vec<Case<Self>> {
        let command = || __Slice__ { __id__: id("one") };
        let event = || __Events__::__Event__ { __id__: id("one") };
__other__
        vec![
            given([]).when(command()).then([event()]),
__after_other__
__repeated__
        ]
    }
}

impl StreamSlice for __Slice__ {
    fn stream_id(&self) -> String {
        self.__id__.to_string()
    }
}
__cause__
