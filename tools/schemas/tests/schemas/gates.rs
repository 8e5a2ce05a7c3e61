//! The gate's findings for each possible change. One snapshot has all of them, so they are read together.

use std::fmt::Write as _;
use std::slice;

use ringfence_schemas::{
    Comparison, Finding, Lock, LockedType, LockedVersion, Readers, Shape, check, forward, present,
};
use ringfence_stack::{Members, Stack};
use serde_json::{Value, json};

use crate::stacks;

/// The lock of a stack, with these samples of its one type.
fn lock<M: Members>(samples: &[Value]) -> Lock {
    let mut lock = present::<M>().remove("rooms").expect("it has rooms");
    for version in lock.events.values_mut().flat_map(|of| of.versions.values_mut()) {
        version.samples = samples.to_vec();
    }
    lock
}

/// The lock before each change.
pub(crate) fn released() -> Lock {
    lock::<stacks::before::Stack>(&[
        json!({ "roomId": "r", "guest": "Ada", "nights": 2, "kind": "single", "note": "late" }),
        json!({ "roomId": "r", "guest": "Ada", "nights": 1, "kind": "double" }),
    ])
}

/// The lock before each change, edited by hand.
fn with(change: impl FnOnce(&mut LockedType)) -> Lock {
    let mut lock = released();
    change(lock.events.get_mut("RoomBooked").expect("it was released"));
    lock
}

/// The gate's result for a stack whose cases have this sample.
fn gates<M: Members>(released: &Lock, sample: Value) -> Comparison {
    let stack = Stack::of::<M>().expect("it does not contradict itself");
    check(&stack, &Readers::of::<M>(), "rooms", released, &lock::<M>(&[sample]))
}

#[derive(Default)]
pub(crate) struct Book(pub(crate) String);

impl Book {
    pub(crate) fn row(&mut self, change: &str, findings: &[Finding]) {
        writeln!(self.0, "# {change}").expect("a text");
        findings.iter().for_each(|it| writeln!(self.0, "{it}").expect("a text"));
        self.0.push('\n');
    }

    /// An allowed change: the same code adds nothing to the lock that UPDATE=1 writes.
    fn grows<M: Members>(&mut self, change: &str, released: &Lock, sample: Value) {
        let Comparison { grown, findings } = gates::<M>(released, sample.clone());
        assert!(!findings.is_empty() && findings.iter().all(|it| it.is_written), "{change}");
        assert_eq!(gates::<M>(&grown, sample), Comparison { grown, findings: Vec::new() });
        self.row(change, &findings);
    }

    /// A refused change: nothing of it is written.
    fn refuses<M: Members>(&mut self, change: &str, released: &Lock, sample: Value) {
        let Comparison { grown, findings } = gates::<M>(released, sample);
        assert!(findings.iter().any(|it| !it.is_written), "{change}");
        assert_eq!(&grown, released, "{change}");
        self.row(change, &findings);
    }
}

#[test]
fn each_change_of_a_type_of_events_has_its_verdict() {
    let mut book = Book::default();
    let was = released();
    let payload = |members: Value| {
        let mut payload = json!({ "roomId": "r", "guest": "Ada", "nights": 2, "kind": "single" });
        for (name, value) in members.as_object().expect("members") {
            match value {
                // A boolean leaves the member out.
                Value::Bool(_) => drop(payload.as_object_mut().expect("a payload").remove(name)),
                value => payload[name] = value.clone(),
            }
        }
        payload
    };
    let plain = payload(json!({}));
    assert_eq!(gates::<stacks::before::Stack>(&was, plain.clone()).findings, []);

    book.grows::<stacks::optional_added::Stack>(
        "An optional field is new",
        &was,
        payload(json!({ "discount": 5 })),
    );
    book.grows::<stacks::unread_removed::Stack>(
        "A field is gone that nobody reads",
        &was,
        payload(json!({ "nights": false })),
    );
    book.grows::<stacks::choice_added::Stack>(
        "An enum has one more member",
        &was,
        payload(json!({ "kind": "suite" })),
    );
    book.grows::<stacks::widened::Stack>(
        "An integer is wider",
        &was,
        payload(json!({ "nights": 400 })),
    );
    book.grows::<stacks::renamed_as_optional::Stack>(
        "An optional field has another name",
        &was,
        payload(json!({ "remark": "late" })),
    );
    book.grows::<stacks::retired::Stack>("The type is retired", &was, plain.clone());
    book.grows::<stacks::upcast::Stack>(
        "A new version with an upcast",
        &was,
        payload(json!({ "guest": false, "name": "Ada" })),
    );
    book.grows::<stacks::still_written_as_first::Stack>(
        "A new version that is not written yet",
        &was,
        payload(json!({ "guest": false, "name": "Ada" })),
    );

    // The member has been gone for a long time.
    let remark_gone = with(|of| {
        let version = of.versions.get_mut(&1).expect("the first version");
        let Shape::Object(members) = &mut version.shape else { panic!("an object") };
        members.insert("remark".to_owned(), members["note"].clone());
        version.gone.insert("/remark".to_owned());
    });
    book.grows::<stacks::optional_added::Stack>(
        "An optional field is new, long after another one went",
        &remark_gone,
        payload(json!({ "discount": 5 })),
    );
    book.grows::<stacks::renamed_as_optional::Stack>(
        "A field that was gone is there again, and another one is gone",
        &remark_gone,
        payload(json!({ "remark": "late" })),
    );

    book.refuses::<stacks::read_removed::Stack>(
        "A field is gone that a view reads",
        &was,
        payload(json!({ "guest": false })),
    );
    book.refuses::<stacks::unread_removed::Stack>(
        "A field is gone of a type that others take from the bus",
        &with(|of| of.public = true),
        payload(json!({ "nights": false })),
    );
    book.refuses::<stacks::choice_unread::Stack>(
        "An enum has one more member, which a view does not know",
        &was,
        payload(json!({ "kind": "suite" })),
    );
    book.refuses::<stacks::made_optional::Stack>(
        "A field may be absent that a view needs",
        &was,
        plain.clone(),
    );
    book.refuses::<stacks::required_added::Stack>(
        "A required field is new",
        &was,
        payload(json!({ "total": 3 })),
    );
    book.refuses::<stacks::renamed::Stack>(
        "A field has another name",
        &was,
        payload(json!({ "guest": false, "name": "Ada" })),
    );
    book.refuses::<stacks::narrowed::Stack>(
        "Fields take less: a number, an enum, an option",
        &was,
        payload(json!({ "note": "late" })),
    );
    book.refuses::<stacks::replaced::Stack>(
        "A field has another type",
        &was,
        payload(json!({ "nights": "2" })),
    );
    book.refuses::<stacks::of_a_pattern::Stack>("A string has a pattern", &was, plain.clone());
    let of_a_pattern = lock::<stacks::of_a_pattern::Stack>(slice::from_ref(&plain));
    book.refuses::<stacks::of_another_pattern::Stack>(
        "A string has another pattern",
        &of_a_pattern,
        plain.clone(),
    );
    book.grows::<stacks::before::Stack>(
        "A string has no pattern any more",
        &of_a_pattern,
        plain.clone(),
    );
    book.refuses::<stacks::boundary_added::Stack>("Boundaries are new", &was, plain.clone());
    book.refuses::<stacks::of_another_partition::Stack>(
        "The partition is another",
        &was,
        plain.clone(),
    );

    let second = |of: &mut LockedType| {
        let first = of.versions[&1].clone();
        of.versions.insert(2, first);
    };
    book.refuses::<stacks::before::Stack>("A version is gone", &with(second), plain.clone());
    book.refuses::<stacks::third::Stack>("A version is left out", &was, plain.clone());
    let without_second = |of: &mut LockedType| {
        let first = of.versions[&1].clone();
        of.versions.insert(3, first);
    };
    let lost = with(without_second);
    book.refuses::<stacks::third::Stack>("The file has lost a version", &lost, plain.clone());
    let lost = with(|of| of.versions.clear());
    book.refuses::<stacks::third::Stack>("The file has lost all versions", &lost, plain.clone());
    let by_hand = |of: &mut LockedType| {
        of.versions.insert(1, LockedVersion::default());
    };
    book.refuses::<stacks::before::Stack>(
        "A version is changed by hand",
        &with(by_hand),
        plain.clone(),
    );

    let named = payload(json!({ "guest": false, "name": "Ada" }));
    book.refuses::<stacks::upcast_skipped::Stack>("An upcast is missing", &was, named.clone());
    book.refuses::<stacks::upcast_by_halves::Stack>(
        "An upcast leaves a field",
        &was,
        named.clone(),
    );
    book.refuses::<stacks::upcast_of_chance::Stack>("An upcast is not pure", &was, named.clone());
    book.refuses::<stacks::upcast_wants_a_note::Stack>(
        "An upcast needs an optional field",
        &was,
        payload(json!({ "name": "Ada" })),
    );
    book.refuses::<stacks::downcast_without_the_guest::Stack>(
        "A downcast leaves out a field of the older version",
        &was,
        named.clone(),
    );
    book.refuses::<stacks::downcast_to_another_guest::Stack>(
        "A downcast changes what readers of the older version see",
        &was,
        named,
    );
    book.refuses::<stacks::downcast_without_the_total::Stack>(
        "A downcast loses a field of the newest version",
        &was,
        payload(json!({ "total": 3 })),
    );

    book.refuses::<stacks::personal::Stack>("A field becomes personal", &was, plain.clone());
    book.grows::<stacks::personal_in_second::Stack>(
        "A field becomes personal in a new version",
        &was,
        plain.clone(),
    );
    book.refuses::<stacks::personal_written_as_first::Stack>(
        "A field becomes personal, and the version before is still written",
        &was,
        plain.clone(),
    );
    book.refuses::<stacks::personal_opened_by_a_view::Stack>(
        "A view does not take a personal field sealed",
        &was,
        plain.clone(),
    );
    let personal = lock::<stacks::personal::Stack>(slice::from_ref(&plain));
    book.refuses::<stacks::before::Stack>("A field is not personal any more", &personal, plain);
    insta::assert_snapshot!(book.0);
}

/// In the middle of a deploy, readers of the base also get events that the new code writes.
#[test]
fn a_sample_that_the_base_can_not_read_wants_two_deploys() {
    let base = released();
    let says = |now: &Lock| {
        let found =
            forward("rooms", &base, now).iter().map(ToString::to_string).collect::<Vec<_>>();
        found.join("\n")
    };
    let suite = json!({ "roomId": "r", "guest": "Ada", "nights": 2, "kind": "suite" });
    let single = json!({ "roomId": "r", "guest": "Ada", "nights": 2, "kind": "single" });
    let discount =
        json!({ "roomId": "r", "guest": "Ada", "nights": 2, "kind": "single", "discount": 5 });
    // The first of the two deploys: the code has the member, and nothing writes it yet.
    assert_eq!(says(&lock::<stacks::choice_added::Stack>(slice::from_ref(&single))), "");
    assert_eq!(says(&lock::<stacks::optional_added::Stack>(&[discount])), "");
    let named = json!({ "roomId": "r", "name": "Ada", "nights": 2, "kind": "single" });
    let mut upcast = lock::<stacks::upcast::Stack>(slice::from_ref(&named));
    let lost = says(&upcast);
    let first = base.events["RoomBooked"].versions.clone();
    upcast.events.get_mut("RoomBooked").expect("it is written").versions.extend(first);
    assert!(lost.starts_with(&format!("{}\n", says(&upcast))));
    // The first of the two deploys reads the version and writes the one before, and the second writes it.
    let mut reads_both = upcast.clone();
    reads_both.events.get_mut("RoomBooked").expect("it is written").write = Some(1);
    assert_eq!(says(&reads_both), "");
    let found = forward("rooms", &reads_both, &upcast);
    assert_eq!(found, []);
    let mut narrow = single;
    narrow.as_object_mut().map(|data| data.remove("nights"));
    let removed = lock::<stacks::unread_removed::Stack>(&[narrow]);
    let mut personal = lock::<stacks::personal_in_second::Stack>(slice::from_ref(&suite));
    let first = base.events["RoomBooked"].versions.clone();
    personal.events.get_mut("RoomBooked").expect("it is written").versions.extend(first);
    let added = says(&lock::<stacks::choice_added::Stack>(&[suite]));
    let two = [added, says(&removed), lost, says(&personal)];
    insta::assert_snapshot!(two.join("\n"));
}
