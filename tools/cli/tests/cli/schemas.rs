use std::process::{Command, Output};

use ringfence_aggregate_log::{self as aggregate, AggregateKey, AggregateTable, PushPlace};
use ringfence_aws::Clock;
use ringfence_core::{
    Append, BoundaryId, Catalog, Envelope, Event, EventLog, EventSchema, NewEvent, Tag, Upcasts,
};
use ringfence_dcb_log::DcbLog;
use ringfence_document_log::StreamName;
use ringfence_feed::Partition;
use ringfence_local::workspace_root;
use ringfence_programs::shop::{OrderPlaced, ProductAdded, ProductNameChanged};
use serde_json::{Value, json};

use crate::logs::cart;
use crate::world::{AGGREGATES, EVENTS, World, ringfence};

/// An event that another version of the program wrote.
fn event(event_type: &'static str, (key, id): (&'static str, &str), data: Value) -> NewEvent {
    NewEvent { event_type: event_type.into(), tags: vec![Tag::new(key, id)], data }
}

/// Appends events with times a month ahead.
async fn append(world: &World, events: Vec<NewEvent>) -> u64 {
    // This version of the program does not declare the first type, and knows the second one only in an older version.
    let vanished = EventSchema { name: "ProductVanished".into(), ..ProductAdded::SCHEMA };
    let placed = EventSchema { upcasts: Upcasts(&[Ok]), ..OrderPlaced::SCHEMA };
    let schemas = [ProductAdded::SCHEMA, ProductNameChanged::SCHEMA, vanished, placed];
    let catalog = Catalog::new("catalog", schemas).unwrap();
    let month = Clock::system().now_ms() + 30 * 24 * 3_600_000;
    let log = DcbLog::new(world.client.clone(), EVENTS, catalog, Clock::fixed(month));
    let envelope = &Envelope::default();
    log.append(Append { events, seen: None, record: None, envelope }).await.unwrap();
    month
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_this_build_can_not_read_are_named_before_a_deploy() {
    let world = World::start().await;
    let check = |more: &[&str]| world.run(&[&["schemas", "check"], more].concat());
    world.indexed_demand("p", "o").await;
    let right = "1 events of the index decoded, 2.5 read units: all can be read\n";
    assert_eq!(check(&[]), (0, right.to_owned()));

    let order = |order| event("OrderPlaced", ("orderId", order), json!({ "orderId": order }));
    append(&world, vec![order("o1"), order("o2")]).await;
    world
        .index_all(["o1", "o2"].map(|id| BoundaryId::stored(format!("orderId:{id}")).into()))
        .await;
    let newer = "newer    OrderPlaced of catalog, version 2: this build knows the versions up to 1, so a newer one is \
                 deployed; 2 events, among them orderId:o1/1, orderId:o2/1\n";
    let (status, said) = check(&[]);
    let end =
        "3 events of the index decoded, 3.5 read units: all can be read except newer versions\n";
    assert_eq!((status, said), (1, format!("{newer}{end}")));

    let product = |event_type, data| event(event_type, ("productId", "p"), data);
    let month = append(
        &world,
        vec![
            product("ProductAdded", json!({ "productId": "p", "name": "Mug" })),
            product("ProductAdded", json!({ "productId": "p", "name": "Cup" })),
            product("ProductNameChanged", json!({ "productId": "p", "name": 5 })),
            product("ProductVanished", json!({})),
        ],
    )
    .await;
    let customers = AggregateTable::new(world.client.clone(), AGGREGATES, Clock::system());
    let key = AggregateKey::new("customers", "ada").unwrap();
    let (event_type, payload) = ("Renamed".to_owned(), Some(json!({})));
    let renamed =
        aggregate::NewAggregateEvent { event_type, payload, metadata: None, timestamp_ms: None };
    customers.push_event(&key, PushPlace::End, renamed).await.unwrap();
    cart(&world, "c", 1).await;
    let of_aggregate = Partition::from(BoundaryId::stored("customers#ada"));
    let of_document = Partition::from(StreamName::new("carts", "c").unwrap().partition());
    world.index_all([BoundaryId::stored("productId:p").into(), of_aggregate, of_document]).await;

    let unread = |first: &str| {
        format!(
            "unread   ItemAdded of carts, version 1: the context does not declare the type; 1 event, carts-c/0; read by \
             carts\n\
             unread   ProductAdded of catalog, version 1: description: missing field `description`; {first}; read by \
             catalog-products\n\
             unread   ProductNameChanged of catalog, version 1: name: invalid type: integer `5`, expected a string; \
             1 event, productId:p/4; read by catalog-products\n\
             unread   ProductVanished of catalog, version 1: the context does not declare the type; 1 event, \
             productId:p/5; read by catalog\n\
             unread   Renamed of customers, version 1: the context does not declare the type; 1 event, \
             customers#ada/1; read by customers\n"
        )
    };
    let all = unread("2 events, among them productId:p/2, productId:p/3");
    let end = "9 events of the index decoded, 4 read units: not all can be read\n";
    assert_eq!(check(&[]), (1, format!("{all}{newer}{end}")));
    // The last of each type. Some types have no event, so the search ends at the beginning of the index.
    let (status, said) = check(&["--last", "1"]);
    let last = unread("1 event, productId:p/3");
    assert!(status == 1 && said.starts_with(&last), "{said}");
    assert!(said.contains("1 event, orderId:o2/1\n7 of 9 events of the index decoded, "), "{said}");

    let (_, report) = world.json(&["schemas", "check"]);
    let unread = report["unread"].as_array().unwrap();
    assert_eq!((unread.len(), &unread[2]["field"]), (5, &json!("name")));
    assert_eq!(unread[1]["first"], json!(["productId:p/2", "productId:p/3"]));
    assert_eq!(
        (&report["newer"][0]["version"], &report["newer"][0]["known"]),
        (&json!(2), &json!(1))
    );

    let (_, report) = world.json(&["verify", "--settle-seconds", "0"]);
    assert_eq!(report["ahead"]["productId:p/2"], month);
}

#[test]
fn a_build_is_compared_with_the_locks_of_a_commit() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let file = folder.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    let run = |mut program: Command, arguments: &str| {
        let output = program.args(arguments.split(' ')).current_dir(folder.path()).output();
        let Output { status, stdout, stderr } = output.unwrap();
        let said = String::from_utf8([stdout, stderr].concat()).unwrap();
        (status.code().unwrap(), said)
    };
    let check = |base: &str| run(ringfence(), &format!("schemas check --base {base}"));
    let git = |arguments: &str| {
        let identity = "-c user.name=a -c user.email=a@example.com";
        let (status, said) = run(Command::new("git"), &format!("{identity} {arguments}"));
        assert_eq!(status, 0, "{said}");
    };
    let refused = |base: &str, expected: &str| {
        let (status, said) = check(base);
        assert!(status == 2 && said.contains(expected), "{status} {said}");
    };
    refused("main", "change into one");
    write("template.yaml", "");
    write("functions/stack/src/lib.rs", "");
    refused("main", "not a git repository");
    git("init --quiet");
    git("add .");
    git("commit --quiet --message none");
    refused("nowhere", "`git fetch origin` brings");
    refused("HEAD", "it has no locks in schemas/");
    write("schemas/catalog.json", "{");
    git("add .");
    git("commit --quiet --message broken");
    refused("HEAD", "schemas/catalog.json of HEAD: EOF");
    // A lock in which the view makes `made` of an event: a hash of its rows.
    let lock = |made: &str| {
        let data = json!({ "productId": "p" });
        let event = json!({
            "context": "catalog", "partition": "productId:p", "type": "ProductDemandRecorded", "data": data,
        });
        let types = ["ProductDemandRecorded", "ProductDemandRevoked"];
        let lock = json!({
            "histories": { "events": [event], "sequences": ["1"] },
            "views": { "product-demand": { "types": types, "made": { "1": made } } },
        });
        lock.to_string()
    };
    write("schemas/catalog.json", &lock("4835f96c"));
    git("add .");
    git("commit --quiet --message right");
    assert_eq!(check("HEAD"), (0, "1 contexts compared with HEAD: compatible\n".to_owned()));
    write("schemas/catalog.json", &lock("01234567"));
    git("add .");
    git("commit --quiet --message folded");
    let (status, said) = check("HEAD");
    assert!(status == 1 && said.contains("has another result: {\"p\":1}\n"), "{said}");
    write("schemas/catalog.json", "{\"views\":{\"product-prices\":{}}}");
    git("add .");
    git("commit --quiet --message gone");
    let (status, said) = check("HEAD");
    assert!(
        status == 1 && said.starts_with("schemas/catalog.json: the view product-prices"),
        "{said}"
    );
    assert!(said.contains("\n  breaks HTTP callers: "), "{said}");
    // Uncommitted changes do not count.
    assert_eq!(check("HEAD~2").0, 0);
}

#[test]
fn the_doctor_names_what_is_behind_with_the_command_that_mends_it() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let file = folder.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    let run = |arguments: &[&str], update: bool| {
        let mut program = ringfence();
        program.args(arguments).current_dir(folder.path()).env("PATH", folder.path());
        program.env_remove("UPDATE").envs(update.then_some(("UPDATE", "1")));
        let Output { status, stdout, stderr } = program.output().unwrap();
        let said = String::from_utf8(stdout).unwrap();
        (status.code().unwrap(), said, String::from_utf8(stderr).unwrap())
    };
    let template = workspace_root().join("starter/template.yaml");
    write("template.yaml", &std::fs::read_to_string(template).unwrap());
    write("functions/stack/src/lib.rs", "ringfence::stack! { pub Shop; }");
    let (status, _, said) = run(&["doctor"], true);
    assert!(status == 2 && said.contains("this program is of the stack"), "{said}");
    write("functions/stack/Cargo.toml", "[package]\nname = \"ringfence-programs\"\n");
    let libraries = "ringfence-cli = \"0.0.9\"\nringfence-new = \"0.0.9\"\n";
    let workspace = format!(
        "[workspace]\nmembers = [\"functions/*\"]\n\n[workspace.dependencies]\n{libraries}"
    );
    write("Cargo.toml", &workspace);

    let (status, said, _) = run(&["doctor"], false);
    let of_manifests = |line: &str| line.ends_with(": UPDATE=1 cargo ringfence doctor");
    let expected = [
        "behind   lacks functions/tools/new: the program of `cargo new-…`: UPDATE=1 cargo ringfence doctor",
        "behind   lacks .cargo/config.toml: new-slice in [alias]: UPDATE=1 cargo ringfence doctor",
        "behind   Cargo.toml: ringfence-cli = \"0.0.9\": write the version 0.1.0 there (in git the tag v0.1.0), or run the \
         program of that version",
        "behind   template.yaml is not what follows from the list of the stack: UPDATE=1 cargo test",
        "behind   schemas/catalog.json lacks what the code has: UPDATE=1 cargo test",
        "behind   docs/api/openapi.json differs from the stack: UPDATE=1 cargo test",
        "behind   docs/api/asyncapi.json differs from the stack: UPDATE=1 cargo test",
        "missing  sam, for a deploy from this machine: pip install aws-sam-cli==1.170.0",
    ];
    for line in expected {
        assert!(said.lines().any(|found| found == line), "{line}: {said}");
    }
    assert!(status == 1 && said.lines().any(of_manifests), "{said}");

    // What a new stack has is added. Other lines stay, with their version.
    let (status, after, _) = run(&["doctor"], true);
    assert!(status == 1 && !after.lines().any(of_manifests), "{after}");
    assert!(after.contains("behind   Cargo.toml: ringfence-testing = \"0.0.9\": "), "{after}");
    let manifest = std::fs::read_to_string(folder.path().join("Cargo.toml")).unwrap();
    write("Cargo.toml", &manifest.replace("0.0.9", "0.1.0"));
    assert_eq!(run(&["template"], false).0, 0);
    write("schemas/.keep", "");
    for (flag, file) in [("--openapi", "openapi"), ("--asyncapi", "asyncapi")] {
        let (_, document, _) = run(&["api", flag], false);
        write(&format!("docs/api/{file}.json"), &document);
    }
    // Only the tests of a stack write its locks and its map.
    let (status, report, _) = run(&["doctor", "--json"], true);
    let report: Value = serde_json::from_str(&report).unwrap();
    let parts = report["behind"].as_array().unwrap().iter().map(|it| it["part"].as_str().unwrap());
    let locks = ["carts", "catalog", "customers", "personal-data"];
    let locks = locks.map(|it| format!("schemas/{it}.json lacks what the code has"));
    let maps = ["docs/map.md", "docs/map.svg"].map(|it| format!("{it} differs from the stack"));
    let expected: Vec<_> = locks.iter().chain(&maps).map(|it| &**it).collect();
    assert_eq!((status, parts.collect()), (1, expected));
}
