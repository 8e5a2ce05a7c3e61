//! The copy of the events.

use std::fs;

use serde_json::{Value, json};

use crate::local::fails;
use crate::world::{Ran, World, fix};

/// One more feature of a project of another name.
fn another(world: &World, feature: &str) {
    let eve = world.agent("eve");
    let config = json!({ "edges": [{ "edge": "only" }] });
    eve.does("init-project", &json!({ "project": "other", "config": config })).ends(0);
    let feature = format!("other/REQ-F-{feature}-001");
    let feature = json!({ "feature": feature, "title": "A", "kind": "spike" });
    eve.does("create-feature", &feature).ends(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_copies_the_events_of_one_project_in_the_order_of_the_index() {
    let world = World::start().await;
    another(&world, "A");
    let eve = world.multi();
    // A name that is misspelt gets no folder.
    for command in [&["pull"][..], &["reconstruct"], &["claim", "--next"]] {
        let none = "the index has no project shp; it has other, shop. ";
        fails(&eve.runs(&[&["--project", "shp"], command].concat()), none);
        assert!(!eve.path("../shp").exists());
    }
    let ran = eve.runs(&["--project", "shop", "pull"]);
    assert_eq!((ran.status, &*ran.stdout), (0, "3 events added to shop\n"), "{}", ran.stderr);
    let created = ["project_initialized", "feature_created", "feature_created"];
    assert_eq!(eve.types(), created);
    let first = &eve.lines("events.jsonl")[1];
    assert_eq!(
        [&first["project"], &first["feature"], &first["edge"], &first["agent_id"]],
        [&json!("shop"), &json!("REQ-F-AUTH-001"), &Value::Null, &json!("eve")]
    );
    assert_eq!(first["checkpoint"], 4);
    assert_eq!(first["event_id"], "feature:shop%2FREQ-F-AUTH-001/1");
    // From now on the project need not be named.
    assert_eq!(eve.runs(&["pull"]).stdout, "0 events added to shop\n");
    eve.creates("PAY");
    another(&world, "B");
    assert_eq!(eve.runs(&["pull"]).stdout, "1 events added to shop\n");
    assert_eq!(eve.runs(&["pull"]).stdout, "0 events added to shop\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_crash_at_any_step_a_pull_ends_with_the_same_bytes() {
    let world = World::start().await;
    another(&world, "A");
    let eve = world.multi();
    eve.pulls();
    let (before, skipped) = (eve.text("events.jsonl"), eve.text("pull.json"));
    eve.creates("PAY");
    eve.creates("ADMIN");
    another(&world, "B");
    eve.pulls();
    let (after, skips) = (eve.text("events.jsonl"), eve.text("pull.json"));
    let file = eve.path("events.jsonl");
    let cuts = (before.len()..after.len()).step_by(211).chain([after.len() - 1, after.len()]);
    for cut in cuts {
        for pulled in [&*skipped, &skips, "", "{"] {
            fs::write(&file, &after[..cut]).unwrap();
            fs::write(eve.path("pull.json"), pulled).unwrap();
            eve.pulls();
            assert_eq!(eve.text("events.jsonl"), after, "cut at {cut}, pull.json {pulled:?}");
        }
    }
    assert_eq!(eve.runs(&["reconstruct"]).stdout, "5 events of shop\n");
    assert_eq!(eve.text("events.jsonl"), after);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_pulls_at_once_copy_each_event_once() {
    let world = World::start().await;
    let eve = world.multi();
    let pull = || eve.command(&["--project", "shop", "pull"]).spawn().unwrap();
    for pull in [pull(), pull(), pull()] {
        Ran::of(pull.wait_with_output().unwrap()).ends(0);
    }
    let pulled = eve.text("events.jsonl");
    assert_eq!(pulled.lines().count(), 3);
    eve.runs(&["reconstruct"]).ends(0);
    assert_eq!(eve.text("events.jsonl"), pulled);
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_and_another_index_are_errors_that_a_reconstruction_mends() {
    let world = World::start().await;
    let primary = world.single_with_copy();
    let good = primary.text("events.jsonl");
    primary.does_offline("create-feature", &fix("PAY")).ends(0);
    let waiting = primary.text("outbox.jsonl");
    assert_eq!(waiting.lines().count(), 1);

    fs::write(primary.path("events.jsonl"), good.replacen("AUTH", "AUTX", 1)).unwrap();
    fails(&primary.runs(&["pull"]), "line 2 of .ringfence/shop/events.jsonl is damaged");
    primary.runs(&["reconstruct"]).ends(0);
    assert_eq!(primary.text("events.jsonl"), good);

    fails(&primary.runs_on_other_index(&["pull"]), "error: IndexChanged: ");
    assert_eq!(primary.text("events.jsonl"), good);
    // If the index has no such project, the copy stays.
    let none = "the index has no project shop; it has none at all";
    fails(&primary.runs_on_other_index(&["reconstruct"]), none);
    assert_eq!(primary.text("events.jsonl"), good);
    assert_eq!(primary.text("outbox.jsonl"), waiting);
}
