//! A type whose hand-written schema is wrong.

use std::borrow::Cow;

use ringfence_core::prelude::*;
use ringfence_dcb_log::Dcb;
use ringfence_stack::{MemberList, Members, Visitor};
use ringfence_views::View;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::unlike_their_shapes;
use crate::present;

/// A string that declares an integer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Floor(String);

impl JsonSchema for Floor {
    fn schema_name() -> Cow<'static, str> {
        "Floor".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        u8::json_schema(generator)
    }
}

#[derive(Clone, Debug, PartialEq, Event)]
struct FloorSwept {
    #[tag(partition)]
    room_id: String,
    floor: Floor,
}

#[derive(Clone, Debug, PartialEq, Command)]
struct SweepFloor {
    #[tag(partition)]
    room_id: String,
    floor: Floor,
}

#[derive(Reads)]
enum Swept {
    FloorSwept { floor: Floor },
}

#[derive(Default)]
struct Nothing;

impl State for Nothing {
    type Reads = Swept;

    fn evolve(self, _: Swept) -> Self {
        self
    }
}

struct Cleaning;

impl Context for Cleaning {
    const NAME: &'static str = "cleaning";
    type Log = Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        ringfence_stack::catalog::<Self>()
    }
}

impl Members for Cleaning {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.slice::<SweepFloor>().view::<Floors>();
    }
}

struct Stack;

impl Members for Stack {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.context::<Cleaning>();
    }
}

impl Slice for SweepFloor {
    const NAME: &'static str = "sweep-floor";
    type Context = Cleaning;
    type State = Nothing;
    type Writes = FloorSwept;
    type Rejection = Never;

    fn decide(&self, _: &Nothing, _: &CommandContext) -> Result<Vec<FloorSwept>, Never> {
        Ok(vec![FloorSwept { room_id: self.room_id.clone(), floor: self.floor.clone() }])
    }

    fn cases() -> Vec<Case<Self>> {
        let (room_id, floor) = ("r".to_owned(), Floor("2".to_owned()));
        let sweep = Self { room_id: room_id.clone(), floor: floor.clone() };
        vec![given([]).when(sweep).then([FloorSwept { room_id, floor }])]
    }
}

struct Floors;

impl View for Floors {
    const NAME: &'static str = "floors";
    type Reads = Swept;
    type Row = Floor;

    fn rows(_: &Swept) -> Vec<String> {
        vec!["all".to_owned()]
    }

    fn evolve(_: Option<Floor>, _: &str, Swept::FloorSwept { floor }: &Swept) -> Option<Floor> {
        Some(floor.clone())
    }
}

#[test]
fn json_of_a_case_that_is_not_as_declared_is_named_with_its_slice_case_and_place() {
    let found = unlike_their_shapes::<Stack>(&present::<Stack>());
    let expected = [
        "the command does not have its shape: /floor: \"2\" is not an integer from 0 to 255",
        "FloorSwept does not have its shape: /floor: \"2\" is not an integer from 0 to 255",
        "a row of the view floors does not have its shape: \"2\" is not an integer from 0 to 255",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        let (case, what) = found.split_once(": ").expect("a case");
        assert!(
            case.starts_with("sweep-floor, the case at tools/schemas/src/cases/tests.rs:"),
            "{case}"
        );
        assert!(what.starts_with(&format!("{expected}\n")), "{what}");
    }
}
