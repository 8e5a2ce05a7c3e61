//! The documents of a small stack with hand-written locks.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::{Catalog, Catalogs, CommandRecord, LogKind, Reads};
use ringfence_stack::{ContextInfo, FunctionInfo, SliceInfo, Stack};
use ringfence_views::{Definition, View};
use serde_json::{Value, json};

use crate::{Contract, Lock, Shape};

#[derive(Reads)]
enum Consumed {
    RoomBooked,
}

struct Bookings;

impl View for Bookings {
    const NAME: &'static str = "room-bookings";
    type Reads = Consumed;
    type Row = u64;

    fn rows(Consumed::RoomBooked: &Consumed) -> Vec<String> {
        vec!["all".to_owned()]
    }

    fn evolve(row: Option<u64>, _: &str, Consumed::RoomBooked: &Consumed) -> Option<u64> {
        Some(row.unwrap_or(0) + 1)
    }
}

fn stack() -> Stack {
    let slice = |name, about| SliceInfo {
        name,
        about,
        reads: vec![],
        writes: vec!["RoomBooked".into()],
        order: None,
        reacts_to: &[],
        scopes: match name {
            "book-room" => Some(&["rooms/write", "rooms/all"]),
            "free-room" => None,
            _ => Some(&[]),
        },
        is_personal: false,
        depends_on: BTreeMap::new,
        has_item: || false,
    };
    let context = ContextInfo {
        name: "rooms",
        log: LogKind::Dcb,
        event_types: vec!["RoomBooked".into()],
        origins: Vec::new(),
        slices: vec![
            slice("book-room", "Books a room."),
            slice("tidy-up", "Tidies up.</script><!--"),
            slice("free-room", "Callers do not give it."),
        ],
        dues: Vec::new(),
        views: vec![Definition::of::<Bookings>()],
        reactors: Vec::new(),
        functions: vec![
            FunctionInfo { name: "free-rooms", get: Some("/halls/{hall}/free"), query: &["beds"] },
            FunctionInfo { name: "sweep", get: None, query: &[] },
        ],
    };
    let catalog = Catalog::new("rooms", []).expect("nothing contradicts nothing");
    let sources = [ringfence_dcb_log::SOURCE].into();
    let (name, catalogs) = ("", Catalogs::default());
    Stack { name, catalog, catalogs, sources, contexts: vec![context] }
}

fn locks() -> BTreeMap<&'static str, Lock> {
    let room = |least: u64| {
        json!({
            "type": "object",
            "properties": { "roomId": { "type": "string", "minLength": least } },
            "required": ["roomId"],
            "additionalProperties": false,
        })
    };
    let lock = json!({
        "events": {
            "RoomBooked": {
                "public": true,
                "tags": [{ "key": "roomId", "partition": true }],
                "versions": {
                    "1": { "shape": room(0), "samples": [{ "roomId": "" }] },
                    "2": { "shape": room(1), "samples": [{ "roomId": "r1" }] },
                },
            },
            "odd/name": { "retired": true, "versions": { "1": { "shape": {}, "samples": [] } } },
        },
        "commands": {
            "book-room": { "shape": room(1), "rejections": ["RoomTaken", "HallClosed"] },
            "tidy-up": { "shape": room(1) },
        },
    });
    BTreeMap::from([("rooms", serde_json::from_value(lock).expect("a lock"))])
}

fn contract() -> Contract {
    let rows = BTreeMap::from([(Bookings::NAME, Shape::Boolean.schema())]);
    Contract { stack: stack(), locks: locks(), rows }
}

/// Checks that each reference of a document leads to a component, and that each component has a reference.
fn check_references(document: &Value) {
    let text = document.to_string();
    let references = text.split("\"#/").skip(1).filter_map(|rest| rest.split('"').next());
    let references: BTreeSet<_> = references.collect();
    for reference in &references {
        assert!(document.pointer(&format!("/{reference}")).is_some(), "{reference}");
    }
    for (kind, all) in document["components"].as_object().into_iter().flatten() {
        for (name, _) in all.as_object().into_iter().flatten() {
            let is_of_security = kind == "securitySchemes";
            let own = format!("components/{kind}/{name}");
            assert!(is_of_security || references.contains(&*own), "nothing refers to {own}");
        }
    }
}

#[test]
fn a_command_has_its_shape_its_codes_and_its_answers_and_a_view_its_rows() {
    let document = contract().openapi();
    check_references(&document);
    let book = &document["paths"]["/rooms/book-room"]["post"];
    assert_eq!(book["summary"], "Books a room.");
    let body = &book["requestBody"]["content"]["application/json"]["schema"]["$ref"];
    assert_eq!(body, "#/components/schemas/BookRoomCommand");
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["BookRoomCommand"]["additionalProperties"], false);
    let codes = &schemas["BookRoomRejection"]["properties"]["code"]["enum"];
    assert_eq!(*codes, json!(["HallClosed", "RoomTaken", "IdempotencyKeyReused"]));
    // Both contents have one schema, because many clients know only one of them.
    let unavailable = &document["components"]["responses"]["Unavailable"]["content"];
    let reference = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let both = json!({ "schema": reference("UnavailableOrGateway") });
    assert_eq!(*unavailable, json!({ "application/json": both, "application/problem+json": both }));
    let parts = ["Unavailable", "Gateway"].map(reference);
    assert_eq!(schemas["UnavailableOrGateway"], json!({ "anyOf": parts }));
    let statuses: Vec<_> = book["responses"].as_object().expect("answers").keys().collect();
    let expected = ["200", "400", "403", "409", "413", "422", "500", "503", "504", "default"];
    assert_eq!(statuses, expected);
    // A token with one of the scopes, or a signature.
    let security = json!([{ "sigv4": [] }, { "jwt": ["rooms/write"] }, { "jwt": ["rooms/all"] }]);
    assert_eq!(book["security"], security);
    assert_eq!(document["security"], json!([{ "sigv4": [] }, { "jwt": [] }]));
    // A slice that rejects nothing, and asks for no scope.
    let tidy_up = &document["paths"]["/rooms/tidy-up"]["post"];
    assert_eq!((tidy_up.get("security"), tidy_up["responses"].get("403")), (None, None));
    let codes = &schemas["TidyUpRejection"]["properties"]["code"]["enum"];
    assert_eq!(*codes, json!(["IdempotencyKeyReused"]));
    let free = &document["paths"]["/halls/{hall}/free"]["get"];
    let places = [0, 1].map(|n| (&free["parameters"][n]["name"], &free["parameters"][n]["in"]));
    assert_eq!(places, [(&json!("hall"), &json!("path")), (&json!("beds"), &json!("query"))]);
    let paths: Vec<_> = document["paths"].as_object().expect("paths").keys().collect();
    let expected = [
        "/commands/{context}/{slice}",
        "/commands/{id}",
        "/halls/{hall}/free",
        "/room-bookings",
        "/room-bookings/{id}",
        "/rooms/book-room",
        "/rooms/tidy-up",
    ];
    assert_eq!(paths, expected);
    assert_eq!(schemas["RoomBookingsRow"], json!({ "type": "boolean" }));
}

#[test]
fn each_version_of_a_type_is_a_message() {
    let document = contract().asyncapi();
    check_references(&document);
    let messages = document["components"]["messages"].as_object().expect("messages");
    let keys: Vec<_> = messages.keys().collect();
    assert_eq!(keys, ["rooms.RoomBooked", "rooms.RoomBooked.2", "rooms.odd_name"]);
    let meta = &document["components"]["schemas"]["Detail"]["properties"]["meta"];
    let others = [CommandRecord::ITEM, CommandRecord::REJECTION, "by", "principal"];
    for key in CommandRecord::MARKS.iter().chain(&others) {
        assert_eq!(meta["properties"][key]["type"], "string", "{key}");
    }
    assert_eq!(meta["required"], json!([]), "imported events lack them");
    let own = |key: &str| &messages[key]["payload"]["allOf"][1];
    for (key, version, least) in [
        ("rooms.RoomBooked", json!(null), json!(null)),
        ("rooms.RoomBooked.2", json!({ "const": 2 }), json!(1)),
    ] {
        let properties = &own(key)["properties"];
        assert_eq!(properties["schema"], version, "{key}");
        assert_eq!(properties["data"]["properties"]["roomId"]["minLength"], least, "{key}");
        assert_eq!(properties["data"].get("additionalProperties"), None, "{key}");
        assert_eq!(properties["tags"]["items"]["properties"]["key"]["enum"], json!(["roomId"]));
    }
    assert_eq!(own("rooms.RoomBooked.2")["properties"]["data"]["examples"][0]["roomId"], "r1");
    assert_eq!(messages["rooms.RoomBooked"]["tags"][1]["name"], "public");
    let summary = |contract: &Contract, key: &str| {
        contract.asyncapi()["components"]["messages"][key]["summary"].as_str().unwrap().to_owned()
    };
    let mut reads_first = contract();
    let rooms = reads_first.locks.get_mut("rooms").expect("it has rooms");
    rooms.events.get_mut("RoomBooked").expect("it is written").write = Some(1);
    for (key, newest, older) in [
        ("rooms.RoomBooked", ", version 1; no slice writes it any more", ", version 1"),
        ("rooms.RoomBooked.2", ", version 2", ", version 2; no slice writes it yet"),
    ] {
        assert!(summary(&contract(), key).ends_with(newest), "{key}");
        assert!(summary(&reads_first, key).ends_with(older), "{key}");
    }
    let retired = "odd/name of rooms; no slice writes it any more";
    assert_eq!(messages["rooms.odd_name"]["summary"], retired);
    assert_eq!(
        messages["rooms.odd_name"]["headers"]["properties"]["detail-type"]["const"],
        "odd/name"
    );
}

#[test]
fn no_text_of_the_document_ends_its_element_of_the_page() {
    let page = contract().page("").html;
    let (_, rest) = page
        .split_once(r#"<script type="application/json" id="openapi">"#)
        .expect("it has the document");
    let (document, _) = rest.split_once("</script>").expect("it ends");
    assert!(!document.contains('<'), "{document}");
    assert_eq!(serde_json::from_str::<Value>(document).expect("JSON"), contract().openapi());
}
