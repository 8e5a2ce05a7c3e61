//! Begins versions in a small context, and in this repository.

use std::fs;
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use super::*;

const EVENT: &str = "/// A room is booked. It is no `struct RoomBooked`.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct RoomBooked {
    #[tag(partition)]
    pub room_id: RoomId,
    pub name: String, // \"}\"
}
";

/// A context with these events. Its lock has this many versions of `RoomBooked`.
fn stack(events: &str, versions: usize) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let file = folder.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    write(
        "functions/rooms/src/lib.rs",
        "ringfence::context! {\n    pub Rooms, \"rooms\" on Dcb;\n}\n",
    );
    write("functions/rooms/src/facts/booked.rs", events);
    write("functions/rooms/Cargo.toml", "[dependencies]\nringfence.workspace = true\n");
    let least = json!({ "roomId": "a" });
    let most = json!({ "roomId": "a", "at": 5_000_000_000_u64, "of": ["\u{1}"] });
    let version = json!({ "shape": {}, "samples": [least, most] });
    let versions: BTreeMap<_, _> = (1..=versions).map(|n| (n.to_string(), &version)).collect();
    let lock = json!({ "events": { "RoomBooked": { "versions": versions } } });
    write("schemas/rooms.json", &lock.to_string());
    folder
}

fn run(folder: &Path, event: &str) -> Result<(Begun, String)> {
    let mut plan = Plan::new(folder.to_owned());
    let begun = add(&mut plan, "rooms", event)?;
    Ok((begun, plan.write()?))
}

/// The file of the events after the command. A second run must change nothing.
#[track_caller]
fn written(events: &str, versions: usize) -> String {
    let folder = stack(events, versions);
    let (begun, _) = run(folder.path(), "RoomBooked").unwrap();
    assert_eq!(begun.number as usize, versions + 1);
    let text = fs::read_to_string(folder.path().join(&begun.file)).unwrap();
    let (again, said) = run(folder.path(), "RoomBooked").unwrap();
    assert_eq!((again.number, again.lock), (begun.number, begun.lock));
    assert_eq!(said, "Everything is there already; nothing was changed.\n");
    text
}

#[test]
fn a_version_has_its_number_its_upcast_and_a_test_of_the_sample_that_says_most() {
    let text = written(EVENT, 1);
    let expected = "/// A room is booked. It is no `struct RoomBooked`.
#[derive(Clone, Debug, PartialEq, Event)]
#[event(version = 2)]
#[upcast(1 = room_booked_1_to_2)]
#[write(1 = room_booked_2_to_1)]
pub struct RoomBooked {
    #[tag(partition)]
    pub room_id: RoomId,
    pub name: String, // \"}\"
}

/// Makes a payload of version 2 from one of version 1.
fn room_booked_1_to_2(data: ringfence::Fields) -> Result<ringfence::Fields, ringfence::FieldError> {
    Ok(data)
}

/// Makes a payload of version 1, which is still written, from one of version 2.
fn room_booked_2_to_1(data: ringfence::Fields) -> Result<ringfence::Fields, ringfence::FieldError> {
    Ok(data)
}

#[cfg(test)]
mod tests {
    #[test]
    fn room_booked_of_version_1_is_upcast() {
        let old = serde_json::json!({ \"at\": 5000000000_i64, \"of\": [\"\\u{1}\"], \"roomId\": \"a\" });
        let newest = serde_json::json!({ \"at\": 5000000000_i64, \"of\": [\"\\u{1}\"], \"roomId\": \"a\" });
        assert_eq!(ringfence::kit::upcast::<super::RoomBooked>(1, old), newest);
    }
}
";
    assert_eq!(text, expected);
    let (a, b) = ("a".repeat(40), "b".repeat(30));
    let wide = literal(&json!({ "names": [a, b], "of": -5 }), 0, 0);
    assert_eq!(wide, format!("{{\n    \"names\": [\"{a}\", \"{b}\"],\n    \"of\": -5,\n}}"));
    let wider = literal(&json!([a, b, b]), 4, 0);
    assert_eq!(wider, format!("[\n        \"{a}\",\n        \"{b}\",\n        \"{b}\",\n    ]"));
}

#[test]
fn the_text_of_a_person_around_it_stays() {
    let of =
        |attributes: &str| EVENT.replace("#[derive(Clone, Debug, PartialEq, Event)]", attributes);
    let check = |events: &str, versions, expected: &[&str]| {
        let text = written(events, versions);
        for expected in expected {
            assert!(text.contains(expected), "{expected}\n{text}");
        }
    };
    check(
        &of("#[event(fenced, separator = '~')]\n#[derive(ringfence::Event, Clone)] // a note"),
        1,
        &["#[event(version = 2, fenced, separator = '~')]\n#[derive(ringfence::Event, Clone)]\n\
             #[upcast(1 = room_booked_1_to_2)]\n#[write(1 = room_booked_2_to_1)] // a note\npub struct"],
    );
    // The upcast follows the previous one, and its test follows the other tests.
    let more = "
fn name_is_title(data: Fields) -> Result<Fields, FieldError> {
    Ok(data) // }
}

/// Another one.
#[derive(Event)]
pub(crate) struct RoomLeft {
    room_id: RoomId,
}

#[cfg(test)]
mod tests {
    use super::*;
}
";
    check(
        &(of(
            "#[derive(Event)]\n#[event(\n    version = 2,\n)]\n#[upcast(\n    1 = name_is_title, // a note\n)]",
        ) + more),
        2,
        &[
            "version = 3",
            "1 = name_is_title, 2 = room_booked_2_to_3, // a note",
            "    Ok(data) // }\n}\n\n/// Makes a payload of version 3 from one of version 2.",
            "/// Another one.\n#[derive(Event)]\npub(crate) struct RoomLeft {",
            "    use super::*;\n\n    #[test]\n    fn room_booked_of_version_2_is_upcast() {",
        ],
    );
    // The type is in a module of the file, beside tests of another one.
    let event: String = EVENT.lines().map(|line| format!("    {line}\n")).collect();
    let inner = format!("mod tests {{}}\n\npub mod booked {{\n{event}}}\n\n// The end.\n");
    check(
        &inner,
        1,
        &["mod tests {}\n", "    }\n\n    #[cfg(test)]\n    mod tests {\n", "}\n\n// The end.\n"],
    );
    // The tests of the module are in another file.
    check(
        &format!("{EVENT}\n#[cfg(test)]\nmod tests;\n"),
        1,
        &["mod tests;\n\n#[cfg(test)]\nmod upcast_tests {\n"],
    );
    // The command takes the type's name in the log, or in Rust.
    let renamed = of("#[derive(Event)]\n#[event(stored_as = \"RoomBooked\")]")
        .replace("struct RoomBooked {", "struct Booking<'a> {");
    check(
        &renamed,
        1,
        &["#[event(version = 2, stored_as = \"RoomBooked\")]", "upcast::<super::Booking>"],
    );
    let folder = stack(&renamed, 1);
    assert_eq!(run(folder.path(), "Booking").unwrap().0.number, 2);
}

#[test]
fn a_later_release_writes_the_version() {
    let folder = stack(EVENT, 1);
    let (Begun { file, .. }, _) = run(folder.path(), "RoomBooked").unwrap();
    let path = folder.path().join(&file);
    let begun = fs::read_to_string(&path).unwrap();
    let write = || {
        let mut plan = Plan::new(folder.path().to_owned());
        let number = write(&mut plan, "rooms", "RoomBooked").unwrap().number;
        (number, plan.write().unwrap())
    };
    assert_eq!(write().0, 2);
    let mut expected = begun.replace("\n#[write(1 = room_booked_2_to_1)]", "");
    let from = expected.find("\n/// Makes a payload of version 1").unwrap();
    let end = from + expected[from..].find("}\n").unwrap() + 2;
    expected.replace_range(from..end, "");
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    assert_eq!(write(), (2, "Everything is there already; nothing was changed.\n".to_owned()));
    // A function that something else names stays.
    let named = begun.replace("Ok(data)", "Ok(data) // not room_booked_2_to_1");
    fs::write(&path, &named).unwrap();
    write();
    let without = named.replace("\n#[write(1 = room_booked_2_to_1)]", "");
    assert_eq!(fs::read_to_string(&path).unwrap(), without);
}

#[test]
fn a_version_that_can_not_begin_is_refused_with_the_way_out() {
    let refused = |events: &str, versions, event| {
        let folder = stack(events, versions);
        let error = run(folder.path(), event).map(|(_, said)| said).unwrap_err();
        format!("{error:#}")
    };
    let version =
        |attributes: &str| EVENT.replace("#[derive(", &format!("{attributes}\n#[derive("));
    for (said, expected) in [
        (refused(EVENT, 1, "RoomBoked"), "no type of events RoomBoked; did you mean RoomBooked?"),
        (refused(EVENT, 1, "RoomId"), "no type of events RoomId"),
        (refused("\u{feff}struct A;", 1, "RoomBooked"), "a source begins with a byte order mark"),
        (refused("pub struct {", 1, "RoomBooked"), "facts/booked.rs: line 1: "),
        (refused(EVENT, 0, "RoomBooked"), "schemas/rooms.json does not have RoomBooked yet"),
        (refused(&EVENT.repeat(2), 1, "RoomBooked"), "write the version by hand"),
        (refused(EVENT, 2, "RoomBooked"), "put its number and its upcast back"),
        (refused(&version("#[event(version = 2)]"), 2, "RoomBooked"), "and 0 upcasts: correct it"),
        (
            refused(
                &version("#[event(version = 2)]\n#[upcast(1 = Ok)]\n#[write(1 = Ok)]"),
                2,
                "RoomBooked",
            ),
            "booked.rs: RoomBooked still writes version 1: `cargo new-version rooms/RoomBooked --write` lets \
             it write version 2",
        ),
        (
            refused(&format!("{EVENT}\nfn room_booked_2_to_1() {{}}\n"), 1, "RoomBooked"),
            "booked.rs: has a function room_booked_2_to_1 already: give it another name",
        ),
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let folder = stack(EVENT, 1);
    let error = add(&mut Plan::new(folder.path().to_owned()), "room", "RoomBooked").err().unwrap();
    let said =
        "functions/ has no context room: its contexts are rooms; did you mean rooms? Name one";
    assert!(error.to_string().starts_with(said), "{error}");
    for (lock, expected) in [
        (
            r#"{ "events": { "RoomBooked": { "versions": { "1": { "samples": [] } } } } }"#,
            "has no sample of RoomBooked",
        ),
        ("{\n<<<<<<< HEAD\n}", "git checkout origin/main -- schemas/rooms.json"),
    ] {
        fs::write(folder.path().join("schemas/rooms.json"), lock).unwrap();
        let said = run(folder.path(), "RoomBooked").map(|(_, said)| said).unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
    }
}
