//! Checks of an import on the lines of a file.

use std::fs;

use ringfence_document_log::StreamName;
use serde_json::{Value, json};

use crate::data::{export, import, index, indexed, of_all_logs};
use crate::world::World;

/// So many nested lists.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(0), |inside, _| json!([inside]))
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_do_not_fit_are_named_by_their_numbers_and_nothing_is_written() {
    let world = of_all_logs().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events");
    // Only events of this context.
    let orders = export(&world, &path, &["--context", "carts", "--context", "customers"]);
    assert_eq!((&orders["events"], &orders["checkpoint"]), (&json!(5), &json!(9)));
    let mistyped = ["export", path.to_str().unwrap(), "--context", "cart"];
    let error = world.error(&mistyped);
    let why = "this build has no context cart: its contexts are carts, catalog, customers, personal-data; did you mean carts?";
    assert!(error.contains(why), "{error}");
    let error = world.error(&["export", path.to_str().unwrap()]);
    assert!(
        error.contains("jsonl of index from 0, carts, customers, and this one would be"),
        "{error}"
    );
    let error = world.error(&["export", "--to", "parquet", folder.path().to_str().unwrap()]);
    assert!(error.contains("build it with --features ringfence-cli/parquet"), "{error}");

    let (_, lines) = world.run(&["tail", "--from", "start", "--until-present", "--json"]);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |id: &str| lines.iter().find(|line| line["id"] == id).unwrap().clone();
    let with = |id: &str, member: &str, value: Value| {
        let mut line = of(id);
        line[member] = value;
        line.to_string()
    };
    let (first, tag) = ("productId:p1/1", &json!({ "key": "productId", "value": "p1" }));
    let with_seals = |seals: &[&str]| {
        let tag = |(key, value): (&str, &str)| json!({ "key": key, "value": value });
        let tags = [("orderId", "o1"), ("parcelId", "p1")];
        let tags = tags.into_iter().chain(seals.iter().map(|seal| ("sealId", *seal))).map(tag);
        with("orderId+parcelId:o1/p1/1", "tags", tags.collect())
    };
    let renamed = |slot: u64, at: &str| {
        let mut line = of("customers#ada#1/2");
        line["id"] = format!("customers#ada#1/{slot}").into();
        (line["slot"], line["recordedAt"]) = (slot.into(), at.into());
        line.to_string()
    };
    let broken = [
        (of(first).to_string(), None),
        ("{".to_owned(), Some("the line is not JSON: EOF while parsing an object at line 1 column 1")),
        (of("productId:p1/2").to_string(), None),
        (
            of(first).to_string(),
            Some("productId:p1/1 is there twice, or after a later event of its partition"),
        ),
        (of("customers#ada#1/2").to_string(), None),
        (with(first, "type", json!("Lost")), Some("context catalog has no event type Lost")),
        (with(first, "context", json!("shop")), Some("this build has no context shop")),
        (
            with(first, "context", json!("carts")),
            Some("it is of the DCB log, and context carts is on the document log"),
        ),
        (
            with(first, "data", json!({})),
            Some("catalog-products can't read ProductAdded: data.productId: is missing"),
        ),
        (
            with(first, "tags", json!([])),
            Some("ProductAdded needs a value for its partition tag productId"),
        ),
        (
            with(first, "tags", json!([{ "key": "productId", "value": "p2" }])),
            Some(
                "event productId:p1/1 would be productId:p2/1 or later by its tags and the events before it",
            ),
        ),
        (
            with(first, "schema", json!(2)),
            Some(
                "the catalog can't read ProductAdded: version 2, and 1 is the newest that is known",
            ),
        ),
        (
            with(first, "recordedAt", json!("9999-01-01T00:00:00.000Z")),
            Some("recordedAt: lies in the future; if the clock"),
        ),
        (
            with(first, "tags", json!([tag, tag])),
            Some("tags: one is there twice; leave one of the two out"),
        ),
        (
            with("carts-c-1/0", "tags", json!([tag])),
            Some("tags: a log of single streams keeps none; give an empty list"),
        ),
        (
            json!({ "id": "shop-c-1/0", "partition": "shop-c-1", "slot": 0, "context": "carts", "tags": [], "meta": {},
                    "type": "CheckedOut", "data": { "items": 1 }, "recordedAt": "2024-06-23T00:00:00.120Z" })
            .to_string(),
            Some("partition shop-c-1 is a stream of context shop, and the event is of context carts"),
        ),
        (
            with("customers#ada#1/1", "data", json!({ "name": "Ada", "nested": nested(30) })),
            Some("DynamoDB can't hold an event of customers#ada#1: payload.nested[0][0]"),
        ),
        (
            with("carts-c-1/0", "data", json!({ "items": 1, "nested": nested(120) })),
            Some("CheckedOut: 121 levels of lists and maps, limit 120; nest its data less"),
        ),
        (
            with(first, "data", json!({ "productId": "p1", "maker": { "$personal": "Ada" } })),
            Some("data: has the key $personal, which no event has in a table"),
        ),
        (
            with(first, "data", json!({ "productId": "p1", "maker": { "$sealed": "Ada", "of": "ada" } })),
            Some("data: the value with the key $sealed is not as a vault makes it"),
        ),
        (
            with_seals(&["s1"]),
            Some("tags: lack sealId:s2, which follows from the payload"),
        ),
        (
            with_seals(&["s1", "s2", "s3"]),
            Some("tags: have sealId:s3, which does not follow from the payload"),
        ),
        (
            with("customers#ada#1/2", "data", json!({ "customerId": "bob", "name": "Bob" })),
            Some("data.customerId: must be \"ada#1\", the id of the stream, is \"bob\""),
        ),
        (
            with("customers#ada#1/2", "streamId", json!("bob")),
            Some("streamId: must be \"ada#1\", as in customers#ada#1, is \"bob\""),
        ),
        (
            of("carts-c-1/0").to_string().replacen(r#""items":"#, r#""items":1,"items":"#, 1),
            Some("data.items: is given twice"),
        ),
        (
            of(first).to_string().replacen(r#""data":{"#, r#""data":{"weight":1584097275961.1234,"#, 1),
            Some("data.weight: is a number that can't be kept as it is"),
        ),
        (
            renamed(1 << 53, "2024-06-23T00:00:00.120Z"),
            Some("slot: must be at most 9007199254740991, is 9007199254740992; the events of a partition"),
        ),
        (
            renamed(3, "2024-06-23T00:00:00.120Z"),
            Some("recordedAt: is 2024-06-23T00:00:00.120Z, and the event before it in customers#ada#1 is of 2"),
        ),
        (of("carts-c-1/0").to_string(), None),
        (of("carts-c-1/2").to_string(), Some("carts-c-1/1 is missing before carts-c-1/2")),
    ];
    let file = folder.path().join("some.jsonl");
    let text: String = broken.iter().map(|(line, _)| format!("{line}\n")).collect();
    fs::write(&file, text + "cut off").unwrap();
    let other = World::start().await;
    let (status, said) = other.run(&import(&file));
    assert_eq!(status, 1);
    for (n, (_, why)) in broken.iter().enumerate() {
        let line = format!("broken    some.jsonl:{}: {}", n + 1, why.unwrap_or_default());
        assert_eq!(said.contains(&line), why.is_some(), "{line}\n{said}");
    }
    assert!(said.contains("broken    some.jsonl:31: the line is cut off\n"), "{said}");
    assert!(said.ends_with("27 events can't be imported, and nothing is written\n"), "{said}");
    assert_eq!(other.records().len(), 0);

    // DynamoDB returns 1.0 as 1, and the event counts as the same. A number that a program can't hold is stored as a
    // number, and keeps all its digits in each copy. An editor may have written a byte order mark and an empty line.
    let exact = json!({ "$number": "1584097275961.12340" });
    let of_each_log = [first, "customers#ada#1/1", "carts-c-1/0"].map(|id| {
        let mut line = of(id);
        line["data"]["weight"] = json!([1.0, exact, 1e22]);
        format!("{line}\n")
    });
    fs::write(&file, format!("\u{feff}{}\r\n", of_each_log.concat())).unwrap();
    assert_eq!(other.json(&import(&file)).1["imported"], 3);
    assert_eq!(other.json(&import(&file)).1["before"], 3);
    let stored = other.records().remove(0);
    let weight = &stored["dynamodb"]["NewImage"]["data"]["M"]["weight"];
    assert_eq!(weight["L"][1], json!({ "N": "1584097275961.1234" }));
    let cart = StreamName::new("carts", "c-1").unwrap();
    let (documents, envelope) = (other.documents(), ringfence_core::Envelope::default());
    let tip = documents.tip(&cart, ringfence_core::Consistency::Strong, &envelope).await;
    let body = tip.unwrap().unwrap().events[0].data.unpacked().unwrap();
    assert!(String::from_utf8(body).unwrap().contains("1584097275961.12340"));
    index(&other).await;
    let copied = folder.path().join("copied");
    assert_eq!(export(&other, &copied, &[])["events"], 3);
    let copy = World::start().await;
    assert_eq!(copy.json(&import(&copied)).1["imported"], 3);
    index(&copy).await;
    assert_eq!(indexed(&copy).await, indexed(&other).await);
    let weights = indexed(&copy).await.into_iter().map(|event| event.data["weight"][1].to_string());
    assert!(weights.clone().all(|weight| weight.starts_with(r#"{"$number":"1584097275961.1234"#)));
    assert_eq!(weights.count(), 3);

    // Events under one tag are written in the order of their times, in whatever order the lines are.
    let (earlier, mut later) = (of("orderId+parcelId:o1/p1/1"), of("orderId+parcelId:o2/p1/1"));
    later["data"]["sealIds"] = json!(["s1"]);
    for tag in later["tags"].as_array_mut().unwrap().iter_mut().filter(|it| it["key"] == "sealId") {
        tag["value"] = json!("s1");
    }
    fs::write(&file, format!("{later}\n{earlier}\n")).unwrap();
    let said = other.json(&import(&file)).1;
    assert_eq!((&said["imported"], &said["later"]), (&json!(2), &json!(0)), "{said}");

    // An event of an aggregate can't be earlier than the last one in the log.
    let other = World::start().await;
    let later = ["2024-06-23T00:00:00.120Z", "2024-06-23T00:00:00.119Z"];
    fs::write(&file, format!("{}\n", renamed(1, later[0]))).unwrap();
    assert_eq!(other.json(&import(&file)).1["imported"], 1);
    fs::write(&file, format!("{}\n", renamed(2, later[1]))).unwrap();
    let (status, said) = other.run(&import(&file));
    let back = "broken    customers#ada#1/2: recordedAt: is 2024-06-23T00:00:00.119Z, and the event before it";
    assert!(status == 1 && said.starts_with(back), "{said}");

    // A file of an export must be unchanged.
    let segment = path.join("000001.jsonl");
    let changed = fs::read_to_string(&segment).unwrap().replace("Ada", "Bob");
    fs::write(&segment, changed).unwrap();
    let error = other.error(&import(&path));
    assert!(error.contains("000001.jsonl is not as the export wrote it"), "{error}");
    let error = other.error(&import(&folder.path().join("nowhere")));
    assert!(error.contains("is neither a file nor the folder of an export"), "{error}");
}
