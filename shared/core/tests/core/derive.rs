//! The output of the derive macros.

use ringfence_core::{
    BoundaryId, Catalogs, Command as _, Event as _, EventSchema, NewEvent, Personal,
    SequencedEvent, Tag, TagSchema, prelude::*,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::shop::{Booked, Cleaned, Closed, Opened, Priced, Rated};

#[test]
fn fields_named_id_are_tags() {
    let single = TagSchema {
        key: "roomId".into(),
        partition: true,
        cross_partition: false,
        strong: false,
        many: false,
        required: true,
        computed: false,
        blind: false,
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
fn a_subject_is_found_by_the_names_in_json() {
    #[derive(ringfence_core::Event)]
    struct Noted {
        #[subject]
        guest: String,
        host_école: String,
        #[personal(of = "host_école")]
        r#type: Personal<String>,
    }
    let [guest, host] = ["g1", "h1"].map(str::to_owned);
    let event = Noted { guest, host_école: host, r#type: "shy".to_owned().into() };
    assert_eq!(NewEvent::from(event).data["type"]["of"], "h1");
}

#[test]
fn the_marks_of_an_event_type_are_in_its_schema() {
    let marks = |schema: EventSchema| {
        (schema.read_as_composite, schema.read_by_type, schema.fenced, schema.separator)
    };
    #[derive(ringfence_core::Event)]
    #[event(read_by_type, fenced, copies = 16, separator = '~')]
    struct Marked {}
    assert_eq!(marks(Marked::SCHEMA), (false, true, true, '~'));
    assert_eq!((Marked::SCHEMA.copies, Closed::SCHEMA.copies), (16, 0));
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

/// A flight is named by its airline and number: `rf-12`.
#[derive(Clone, Debug, PartialEq, Event)]
#[tag(partition, key = "seat", value = format!("{flight}/{row}"))]
#[tag(key = "airline", cross_partition, value = airline(flight))]
struct SeatTaken {
    flight: String,
    row: u16,
    #[tag(cross_partition)]
    guest_id: String,
    /// The names of the fields also occur in the macro's code, and must not collide.
    tags: Vec<String>,
}

fn airline(flight: &str) -> &str {
    flight.split('-').next().unwrap_or(flight)
}

#[derive(Clone, Debug, PartialEq, Command)]
enum Seat {
    #[tag(key = "seat", value = format!("{flight}/{row}"))]
    Take { flight: String, row: u16 },
    #[tag(key = "seat", value = format!("{flight}/{from}"))]
    #[tag(key = "seat", value = format!("{flight}/{to}"))]
    Swap { flight: String, from: u16, to: u16 },
}

#[test]
fn a_tag_can_be_computed_from_several_fields() {
    let seat = TagSchema {
        key: "seat".into(),
        partition: true,
        cross_partition: false,
        strong: false,
        many: false,
        required: true,
        computed: true,
        blind: false,
    };
    let [airline, guest] =
        [("airline", true), ("guestId", false)].map(|(key, computed)| TagSchema {
            key: key.into(),
            partition: false,
            cross_partition: true,
            computed,
            ..seat.clone()
        });
    assert_eq!(*SeatTaken::SCHEMA.tags, [seat.clone(), airline, guest]);
    let flight = || "rf-12".to_owned();
    let taken = SeatTaken { flight: flight(), row: 7, guest_id: "g1".to_owned(), tags: vec![] };
    let tags = [("seat", "rf-12/7"), ("airline", "rf"), ("guestId", "g1")];
    assert_eq!(taken.tags(), tags.map(|(key, value)| Tag::new(key, value)));
    let data = NewEvent::from(taken).data;
    assert_eq!(data, json!({ "flight": "rf-12", "row": 7, "guestId": "g1", "tags": [] }));

    let (take, swap) =
        (Seat::Take { flight: flight(), row: 7 }, Seat::Swap { flight: flight(), from: 7, to: 8 });
    let seat = TagSchema { partition: false, ..seat };
    assert_eq!(Seat::SHAPES, [&[seat.clone()][..], &[seat.clone(), seat]]);
    assert_eq!(take.tags(), [Tag::new("seat", "rf-12/7")]);
    assert_eq!(swap.tags(), ["rf-12/7", "rf-12/8"].map(|seat| Tag::new("seat", seat)));
}

#[derive(Debug, PartialEq, Reads)]
enum Taken {
    SeatTaken {
        #[id]
        id: String,
        #[time]
        at_ms: u64,
        row: u16,
    },
}

#[test]
fn fields_can_take_the_id_and_the_time_of_the_event() {
    let [flight, guest_id] = ["rf-12", "g1"].map(str::to_owned);
    let NewEvent { tags, data, .. } = SeatTaken { flight, row: 7, guest_id, tags: vec![] }.into();
    let event = SequencedEvent {
        partition: BoundaryId::tag("seat", "rf-12/7"),
        slot: 3,
        at: 5,
        rest: 0,
        event_type: "SeatTaken".to_owned(),
        context: "flights".to_owned(),
        tags,
        version: 1,
        data,
        metadata: Default::default(),
    };
    let expected = Taken::SeatTaken { id: event.id(), at_ms: 5, row: 7 };
    let current = Catalogs::default().current(&event).unwrap();
    assert_eq!(Taken::decode(&current).unwrap(), expected);
    assert_eq!(event.id(), "seat:rf-12%2F7/3");
    // The message about a wrong payload names no type of the program.
    let wrong = SequencedEvent { data: Value::Null, ..event };
    let error = Taken::decode(&Catalogs::default().current(&wrong).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "invalid type: null, expected an object");
    let error = SeatTaken::deserialize(Value::Null).unwrap_err();
    assert_eq!(error.to_string(), "invalid type: null, expected an object");
}

#[derive(Clone, Debug, PartialEq, Command)]
enum Move {
    Up { lift_id: String },
    Down { lift_id: String, floor: u32, shaft_ids: Vec<u8> },
}

#[test]
fn a_command_refuses_unknown_fields() {
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
