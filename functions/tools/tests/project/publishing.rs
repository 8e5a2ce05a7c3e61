//! A local project that becomes one of a stack.

use std::fs;

use serde_json::{Value, json};

use crate::local::{fails, local, works};
use crate::world::World;

/// What a line says of its event. Where it is in the index is not the same as in the file.
fn told(lines: &[Value]) -> Vec<Value> {
    let mut told: Vec<Value> = lines
        .iter()
        .map(|line| {
            let mut line = line.clone();
            for of_file in ["checkpoint", "rest", "sum"] {
                line.as_object_mut().unwrap().remove(of_file);
            }
            line
        })
        .collect();
    told.sort_by_key(|line| line["timestamp"].to_string());
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn a_published_project_has_the_same_events_and_its_file_is_a_copy() {
    let world = World::start().await;
    let primary = local(&world);
    works(&primary);
    let before = primary.lines("events.jsonl");
    let published = primary.runs(&["publish"]);
    published.ends(0);
    let expected = "6 imported, 0 were there before\nthe index has 0 of them by now: `ringfence project pull` brings the rest\n";
    assert_eq!(published.stdout, expected);
    world.indexes(&before).await;
    primary.pulls();
    assert_eq!(told(&primary.lines("events.jsonl")), told(&before));
    assert_eq!(primary.lines("events.jsonl")[0]["rest"], Value::Null);
    // It goes on in the stack.
    works(&primary);
    assert_eq!(world.requests().last().unwrap(), "converge-edge");
    fails(&primary.runs(&["publish"]), "shop is not local");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publishing_that_ends_anywhere_is_repeated_and_adds_each_event_once() {
    let world = World::start().await;
    let primary = local(&world);
    works(&primary);
    let all = primary.text("events.jsonl");
    let lines: Vec<&str> = all.split_inclusive('\n').collect();
    // The run before had imported some of the events, and ended at the latest before the file was a copy.
    for (imported, before) in [(2, 0), (1, 2), (3, 3), (0, 6)] {
        fs::write(primary.path("events.jsonl"), lines[..imported + before].concat()).unwrap();
        let published = primary.runs(&["publish"]);
        published.ends(0);
        let expected = format!("{imported} imported, {before} were there before\n");
        assert!(published.stdout.starts_with(&expected), "{}", published.stdout);
    }
    let reader = world.agent("reader");
    world
        .indexes(&lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<_>>())
        .await;
    reader.pulls();
    assert_eq!(reader.lines("events.jsonl").len(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_published_over_another_project_of_the_name() {
    let world = World::start().await;
    world.single();
    let primary = local(&world);
    let text = primary.text("events.jsonl");
    let refused = primary.runs(&["publish"]);
    fails(&refused, "nothing is written: the stack has an event project:shop/1 that is not");
    assert_eq!(primary.text("events.jsonl"), text);
    let reader = world.agent("reader");
    reader.pulls();
    assert_eq!(reader.types(), ["project_initialized", "feature_created", "feature_created"]);
    // Nor if only the file goes on with what both have begun with: two copies of one local project.
    let (one, other) =
        (World::start().await, json!({ "project": "shop", "sha256": "0a".repeat(32) }));
    let first = local(&one);
    let second = one.agent("primary");
    fs::create_dir_all(second.path("")).unwrap();
    fs::copy(first.path("events.jsonl"), second.path("events.jsonl")).unwrap();
    for (agent, note) in [(&first, "first"), (&second, "second")] {
        let mut checkpoint = other.clone();
        (checkpoint["uri"], checkpoint["note"]) = (json!("s3://files"), json!(note));
        agent.does("create-checkpoint", &checkpoint).ends(0);
    }
    first.runs(&["publish"]).ends(0);
    fails(&second.runs(&["publish"]), "nothing is written: the stack has an event checkpoint:shop");
}
