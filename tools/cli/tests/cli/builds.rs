//! Events of four builds in one log: a newer build reads older events, and an older build meets newer ones.

use std::collections::BTreeSet;
use std::iter;

use ringfence_local::notices::Notice;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::console::Console;
use crate::deployed::{Deployed, payload};
use crate::sql::DUCKDB;

/// Runs a stack in a runtime. All of it has ended with the runtime, before the next stack continues with its data.
fn stack<T>(stack: impl Future<Output = T>) -> T {
    Runtime::new().unwrap().block_on(stack)
}

#[test]
fn a_newer_build_reads_all_events_and_a_roll_back_loses_nothing() {
    let data = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let deploy = |build, of| Deployed::new(data.path(), build, of);
    let [mug, cup, pot, tin, jug, pan] = ["mug", "cup", "pot", "tin", "jug", "pan"];
    let take = |item: &str| json!({ "type": "Take", "itemId": item });
    let of_first = json!(["mug for 4", "gone"]);
    let added = |item: &str, title: &str, (unit, price): (&str, u64), version: u64| {
        (json!({ "itemId": item, "title": title, unit: price }), version)
    };
    let of_c = added("c", jug, ("cents", 700), 3);
    let of_second = |item, title, euros| added(item, title, ("price", euros), 2);
    let [of_b, of_d] = [of_second("b", cup, 3), of_second("d", pan, 5)];
    let [of_e, of_f] = [of_second("e", pot, 6), of_second("f", tin, 8)];
    let folder = |name: &str| data.path().join(name).to_str().unwrap().to_owned();
    let (stored, of_two, of_newest) = (folder("stored"), folder("of-two"), folder("of-newest"));

    // The first build, whose automation is broken.
    stack(async {
        let one = deploy(1, &[]).await;
        one.add("a", mug, 4).await;
        one.change(take("a")).await;
        assert_eq!(one.known("a").await, of_first);
        assert_eq!(one.row_with("a", 2).await, of_first);
        one.dead_letters(1).await;
    });

    stack(async {
        let two = deploy(2, &[]).await;
        two.add("b", cup, 3).await;
        assert_eq!(two.known("a").await, of_first);
        assert_eq!(two.row_with("b", 1).await, json!(["cup for 3"]));
        two.tail("ItemLabelled", 1).await;
        two.export(0, &of_two, &["--newest"]).await;
    });

    // The third build reads what the fourth one writes, and writes what the second one reads. First, only one function
    // is of the third build.
    stack(async {
        let some = deploy(2, &[("change-item", 3)]).await;
        some.add("e", pot, 6).await;
        assert_eq!(some.known("e").await, json!(["pot for 6"]));
        assert_eq!(some.row_with("e", 1).await, json!(["pot for 6"]));
        some.tail("ItemLabelled", 2).await;
    });

    stack(async {
        let three = deploy(3, &[]).await;
        three.change(take("e")).await;
        assert_eq!(three.known("e").await, json!(["pot for 600 cents", "gone"]));
        assert_eq!(three.row_with("e", 3).await, json!(["pot for 6", "gone"]));
        three.add("f", tin, 8).await;
        assert_eq!(three.row_with("f", 1).await, json!(["tin for 800 cents"]));
        three.tail("ItemLabelled", 3).await;
    });

    // The third build is rolled back, and one function is of the fourth build.
    stack(async {
        let some = deploy(2, &[("change-item", 4)]).await;
        some.add("c", jug, 7).await;
        let (status, problem) = some.post("show-item", json!({ "itemId": "c" })).await;
        assert_eq!(
            (status, &problem["type"]),
            (503, &json!("urn:ringfence:problem:newer-version")),
            "{problem}"
        );
        assert_eq!(some.known("a").await, of_first);
        some.dead_letters(2).await;
        assert_eq!(some.row("c", 1).await["status"], 503);
    });

    // The deploy is rolled back.
    stack(async {
        let back = deploy(2, &[]).await;
        assert_eq!(back.post("change-item", take("c")).await.0, 503);
        back.add("d", pan, 5).await;
        assert_eq!(back.known("d").await, json!(["pan for 5"]));
        back.change(take("f")).await;
        assert_eq!(back.known("f").await, json!(["tin for 8", "gone"]));
        assert_eq!(back.row("d", 1).await["status"], 503);
        let of_a = of_second("a", mug, 4);
        let shown = [&of_a, &of_b, &of_e, &of_f, &of_c, &of_d].map(Clone::clone);
        assert_eq!(back.tail("ItemAdded", 6).await, shown);
        back.tail("ItemLabelled", 4).await;
        let page = Console::of(back.command(&["console"])).await.page("/events").await;
        assert!(
            page.contains("&quot;cents&quot;: 700") && page.contains("&quot;price&quot;: 4"),
            "{page}"
        );
        let unread = back.run(1, &["schemas", "check"]).await;
        assert!(unread.contains("version 3: this build knows the versions up to 2"), "{unread}");
        back.export(0, &stored, &[]).await;
        let (newer, select) =
            ("itemId:c/1 has version 3 of ItemAdded", "FROM ItemAdded SELECT title");
        let error = back.export(2, &of_two, &["--newest"]).await;
        assert!(error.contains(newer) && error.contains("or export without --newest"), "{error}");
        if DUCKDB.path().is_some() {
            let error = back.run(2, &["sql", &stored, select]).await;
            assert!(error.contains(newer) && error.contains("--newest=false"), "{error}");
            back.run(0, &["sql", &stored, select, "--newest=false"]).await;
        }
    });

    // Everything is of the fourth build.
    stack(async {
        let four = deploy(4, &[]).await;
        four.change(take("c")).await;
        let of_fourth = json!(["mug for 400 cents", "gone"]);
        assert_eq!(four.known("a").await, of_fourth);
        assert_eq!(four.known("c").await, json!(["jug for 700 cents", "gone"]));
        // The view continues where it stopped. Older rows stay until a rebuild.
        assert_eq!(four.row_with("c", 2).await, json!(["jug for 700 cents", "gone"]));
        assert_eq!(four.row_with("d", 1).await, json!(["pan for 500 cents"]));
        assert_eq!(four.row("a", 2).await, of_first);
        assert_eq!(four.run(0, &["parked", "show"]).await, "0 parked\n");
        four.run(0, &["replay", "view", "items"]).await;
        assert_eq!(four.row("a", 2).await, of_fourth);
        let dead_letters = four.dead_letters(2).await;
        four.run(0, &["redrive", "--queue", &dead_letters]).await;
        let labels = four.tail("ItemLabelled", 6).await;
        let labels: BTreeSet<_> = labels.iter().map(|(data, _)| data["label"].as_str()).collect();
        let of_second = ["cup for 3", "pot for 6", "pan for 5"];
        let of_later = ["tin for 800 cents", "jug for 700 cents", "mug for 400 cents"];
        let expected = of_second.into_iter().chain(of_later).map(Some);
        assert_eq!(labels, expected.collect());
        four.dead_letters(0).await;

        let of_fourth = |item, title, cents| added(item, title, ("cents", cents), 3);
        let shown = [
            of_fourth("a", mug, 400),
            of_fourth("b", cup, 300),
            of_fourth("e", pot, 600),
            of_fourth("f", tin, 800),
            of_c.clone(),
            of_fourth("d", pan, 500),
        ];
        assert_eq!(four.tail("ItemAdded", 6).await, shown);
        let locked = |title: &str, text: &str| {
            let field = json!({ "type": "integer", "minimum": 0, "maximum": 9 });
            let text_field = json!({ "type": "string" });
            let shape = json!({
                "type": "object", "additionalProperties": false, "required": ["price", title],
                "properties": { "price": field, title: text_field },
            });
            json!({ "shape": shape, "samples": [{ "price": 3, title: text }] })
        };
        let versions = json!({ "1": locked("name", mug), "2": locked("title", cup) });
        let lock = json!({ "events": { "ItemAdded": { "versions": versions } } });
        std::fs::create_dir(data.path().join("schemas")).unwrap();
        std::fs::write(folder("schemas/shelf.json"), lock.to_string()).unwrap();
        let samples = ["console", "--samples", &folder("events")];
        let console = Console::of(four.command(&samples)).await;
        let page = console.page("/types/ItemAdded").await;
        let mut from = 0;
        for text in [
            "<h2>Fields</h2>",
            "<h2>Version 2</h2>",
            "In version 3",
            "<code>price</code></th><td>integer, 0 to 9</td><td><code>3</code></td><td>not there</td>",
            "Version 3 also has <code>cents, itemId</code>",
            "Readers get it as <code>{ &quot;cents&quot;: 300, &quot;title&quot;: &quot;cup&quot; }</code>",
            "<h2>Version 1</h2>",
            "<td>the same</td>",
            "{ &quot;cents&quot;: 300, &quot;title&quot;: &quot;mug&quot; }",
        ] {
            from +=
                page[from..].find(text).unwrap_or_else(|| panic!("{text}: {page}")) + text.len();
        }
        let page = console.page("/events").await;
        let cents = ["400", "300", "700", "500"].map(|cents| format!("&quot;cents&quot;: {cents}"));
        assert!(
            cents.iter().all(|cents| page.contains(cents)) && !page.contains("price"),
            "{page}"
        );
        let logs = data.path().to_str().unwrap();
        let boundary = four.run(0, &["boundary", "itemId:a", "--logs", logs]).await;
        assert!(boundary.contains("\"cents\":400") && !boundary.contains("price"), "{boundary}");
        let of_a = ["read", "itemId:a"];
        let read = four.run(0, &of_a).await;
        assert!(
            read.contains("  ItemAdded v3 (stored as v1)  ") && !read.contains("name"),
            "{read}"
        );
        let read = four.run(0, &[&of_a[..], &["--newest=false"]].concat()).await;
        assert!(read.contains("  ItemAdded  ") && read.contains("\"name\":\"mug\""), "{read}");
        for (page, payload, version, other) in [
            ("", "cents", "Payload v3 (stored as v1)", "href=\"/events/1?newest=false\""),
            ("?newest=false", "price", "Payload<", "href=\"/events/1\""),
        ] {
            let page = console.page(&format!("/events/1{page}")).await;
            assert!([payload, version, other].iter().all(|part| page.contains(part)), "{page}");
        }

        // An export has one shape; its list and its lines say which.
        let error = four.export(2, &of_two, &["--newest"]).await;
        assert!(
            error.contains("has shelf/ItemAdded in version 2, which is not the newest"),
            "{error}"
        );
        let refused = four.run(1, &["import", "--from", "jsonl", &of_two, "--dry-run"]).await;
        let why = "storedSchema: the log has version 1 of the payload, and the line has version 2";
        assert!(refused.contains(why), "{refused}");
        four.export(0, &of_newest, &["--newest"]).await;
        let lines = std::fs::read_to_string(format!("{of_newest}/000001.jsonl")).unwrap();
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let added = lines.filter(|line| line["type"] == "ItemAdded");
        let added: Vec<_> =
            added.map(|line| (payload(&line), line["storedSchema"].clone())).collect();
        let from = [json!(1), json!(2), json!(2), json!(2), json!(null), json!(2)];
        assert_eq!(added, iter::zip(shown, from).collect::<Vec<_>>());
        if DUCKDB.path().is_some() {
            let row = |(title, cents, version): (&str, u64, u32)| json!({ "title": title, "cents": cents, "version": version });
            let (of_first, of_third) = ([(mug, 400, 1), (cup, 300, 2)], [(jug, 700, 3)]);
            let of_second = [(pan, 500, 2), (pot, 600, 2), (tin, 800, 2)];
            let all = of_first.into_iter().chain(of_third).chain(of_second).map(row);
            let all: Vec<_> = all.collect();
            let select = "SELECT title, cents, _version AS version FROM ItemAdded ORDER BY _id";
            for (folder, events) in [(&stored, &all[..]), (&of_two, &all[..2]), (&of_newest, &all)]
            {
                assert_eq!(four.rows(folder, select).await, json!(events));
            }
            // Only this program can convert, and it does not read Parquet.
            let list = format!("{of_two}/export.list");
            let of_parquet =
                std::fs::read_to_string(&list).unwrap().replace("\"jsonl\"", "\"parquet\"");
            std::fs::write(list, of_parquet).unwrap();
            let error = four.run(2, &["sql", &of_two, select]).await;
            assert!(
                error.contains("has shelf/ItemAdded in version 2, and only exports to jsonl"),
                "{error}"
            );
        }

        let of_a = json!({ "itemId": "a" }).to_string();
        let explained = four.run(1, &["explain", "shelf/show-item", "--data", &of_a]).await;
        assert!(explained.contains("mug for 400 cents"), "{explained}");
        // The bus has events as they are stored, in their versions.
        let mut bus = four.stack.watch();
        four.run(0, &["replay", "bus", "--name", "again", "--rate", "10000"]).await;
        let notices = iter::from_fn(|| bus.try_recv().ok());
        let sent: Vec<_> = notices
            .filter_map(|notice| match notice {
                Notice::Event(event) if event["detail-type"] == "ItemAdded" => {
                    Some(payload(&event["detail"]))
                }
                // Such as a notice about a slow function.
                _ => None,
            })
            .collect();
        let of_a = (json!({ "itemId": "a", "name": mug, "price": 4 }), 1);
        assert_eq!(sent, [of_a, of_b, of_e, of_f, of_c, of_d]);
        four.run(0, &["schemas", "check"]).await;
        four.run(0, &["index", "verify"]).await;

        // The statistics have the commands of all starts.
        let logs = folder("kept/logs");
        let stats = four.run(0, &["stats", "--logs", &logs, "--json"]).await;
        let stats: Value = serde_json::from_str(&stats).unwrap();
        assert_eq!(stats["slices"]["change-item"]["commands"], 11);
    });

    // The fourth build is rolled back.
    stack(async {
        let back = deploy(3, &[]).await;
        assert_eq!(back.known("c").await, json!(["jug for 700 cents", "gone"]));
        back.change(take("d")).await;
        assert_eq!(back.row_with("d", 3).await, json!(["pan for 500 cents", "gone"]));
        back.add("g", pan, 9).await;
        assert_eq!(back.tail("ItemLabelled", 7).await[6].0["label"], "pan for 900 cents");
    });
}
