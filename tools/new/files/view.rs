//! __view__: how often something happened. One row for each `__idJson__` of `__Event__`.

use ringfence::prelude::*;
use ringfence::view::View;

/// The view.
#[derive(Debug)]
pub struct __View__;

/// What the view reads.
#[derive(Reads)]
pub enum Consumed {
    __Event__ { __mark____id__: String },
}

/// A row.
#[ringfence::value]
#[derive(Debug, Default)]
pub struct Row {
    /// How many events there are.
    pub count: u64,
}

impl View for __View__ {
    const NAME: &'static str = "__view__";
__streams__
    type Reads = Consumed;
    type Row = Row;

    fn rows(event: &Consumed) -> Vec<String> {
        match event {
            Consumed::__Event__ { __id__ } => vec![__id__.clone()],
        }
    }

    fn evolve(row: Option<Row>, _id: &str, event: &Consumed) -> Option<Row> {
        let Row { count } = row.unwrap_or_default();
        match event {
            Consumed::__Event__ { .. } => Some(Row { count: count + 1 }),
        }
    }
}

#[test]
fn a_row_of___context___counts_its_events() {
    use ringfence::view::kit::given;
    use serde_json::json;

__test__
        .then::<__View__>([("a", Row { count: 2 }), ("b", Row { count: 1 })]);
}
