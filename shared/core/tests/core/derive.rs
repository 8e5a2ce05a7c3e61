//! What the derive macros make, and how their errors help.

use ringfence::{Command as _, Event as _, EventSchema, NewEvent, Tag, TagSchema, prelude::*};
use serde_json::json;

use crate::shop::{Booked, Cleaned, Closed, Opened, Priced, Rated};

#[test]
fn compile_errors_name_the_fix() {
    trybuild::TestCases::new().compile_fail("tests/derive/*.rs");
}

#[test]
fn fields_named_id_are_tags() {
    let single = TagSchema {
        key: "roomId".into(),
        partition: true,
        cross_partition: false,
        strong: false,
        many: false,
        required: true,
    };
    let guest = TagSchema {
        key: "guestId".into(),
        partition: false,
        cross_partition: true,
        ..single.clone()
    };
    assert_eq!(*Booked::SCHEMA.tags, [single.clone(), guest]);
    let list = TagSchema { partition: false, many: true, required: false, ..single.clone() };
    let helpers = TagSchema { key: "helperId".into(), ..list.clone() };
    let shift = TagSchema { key: "shiftId".into(), many: false, ..list };
    assert_eq!(*Cleaned::SCHEMA.tags, [single.clone(), helpers, shift]);
    let night = TagSchema { key: "night".into(), ..single.clone() };
    assert_eq!((&*Priced::SCHEMA.tags, Priced::SCHEMA.separator), (&[single, night][..], '|'));
}

#[test]
fn the_marks_of_an_event_type_are_in_its_schema() {
    let marks = |schema: EventSchema| {
        (schema.read_as_composite, schema.read_by_type, schema.fenced, schema.separator)
    };
    #[derive(ringfence::Event)]
    #[event(read_by_type, fenced, separator = '~')]
    struct Marked {}
    assert_eq!(marks(Marked::SCHEMA), (false, true, true, '~'));
    assert_eq!(marks(Rated::SCHEMA), (true, false, false, '/'));
    assert_eq!(marks(Closed::SCHEMA), (false, false, true, '/'));
    assert_eq!(marks(Opened::SCHEMA), (false, false, false, '/'));
}

#[test]
fn an_event_is_camel_case_with_each_tag_once() {
    let helper_ids = vec!["h1".to_owned(), "h2".to_owned(), "h1".to_owned()];
    let event: NewEvent = Cleaned { room_id: id("r1"), helper_ids, shift_id: Some(3) }.into();
    let tags = [("roomId", "r1"), ("helperId", "h1"), ("helperId", "h2"), ("shiftId", "3")];
    assert_eq!(event.tags, tags.map(|(key, value)| Tag::new(key, value)));
    let data = json!({ "roomId": "r1", "helperIds": ["h1", "h2", "h1"], "shiftId": 3 });
    assert_eq!((&*event.event_type, event.data), ("Cleaned", data));
}

#[derive(Clone, Debug, PartialEq, Command)]
enum Move {
    Up { lift_id: String },
    Down { lift_id: String, floor: u32, shaft_ids: Vec<u8> },
}

#[test]
fn a_command_refuses_what_it_does_not_know() {
    let check = |json: serde_json::Value, expected: Result<Move, &str>| {
        let parsed: Result<Move, _> = serde_json::from_value(json);
        assert_eq!(parsed.map_err(|error| error.to_string()), expected.map_err(str::to_owned));
    };
    let down = Move::Down { lift_id: "l".to_owned(), floor: 2, shaft_ids: vec![7] };
    let json = json!({ "type": "Down", "liftId": "l", "floor": 2, "shaftIds": [7] });
    assert_eq!(serde_json::to_value(&down).unwrap(), json);
    check(json, Ok(down));
    let mut wrong = json!({ "type": "Up", "liftId": "l", "floor": 1 });
    check(wrong.clone(), Err("floor: unknown field `floor`, expected `liftId`"));
    wrong["type"] = "Sideways".into();
    check(wrong, Err("type: unknown variant `Sideways`, expected `Up` or `Down`"));
    check(json!({ "liftId": "l" }), Err("missing field `type`"));
    let wrong = json!({ "type": "Down", "liftId": "l", "floor": 2, "shaftIds": [300] });
    check(wrong, Err("shaftIds[0]: invalid value: integer `300`, expected u8"));
}

#[test]
fn each_variant_of_a_command_has_its_tags() {
    let up = Move::Up { lift_id: "l".to_owned() };
    let down = Move::Down { lift_id: "l".to_owned(), floor: 2, shaft_ids: vec![7, 8] };
    assert_eq!(up.tags(), [Tag::new("liftId", "l")]);
    let shafts = ["7", "8"].map(|shaft| Tag::new("shaftId", shaft));
    assert_eq!(down.tags(), [Tag::new("liftId", "l"), shafts[0].clone(), shafts[1].clone()]);
    assert_eq!((up.shape().len(), down.shape().len()), (1, 2));
}
