//! A copy without the old events of features that are done.

use std::fs;

use serde_json::{Value, json};

use crate::local::fails;
use crate::world::{Agent, Ran, World, edge, feature, fix, iteration};

/// An edge is claimed, worked on, and ended.
fn works(primary: &Agent<'_>, feature: &str) {
    for name in ["design_code", "code_tests"] {
        let of = edge(feature, name);
        primary.runs(&["claim", &of]).ends(0);
        let mut iteration = iteration(&of, 1);
        iteration["reqKeys"] = json!([format!("{feature}-1")]);
        primary.does("complete-iteration", &iteration).ends(0);
        let converge = json!({ "edge": of, "convergence": "standard" });
        primary.does("converge-edge", &converge).ends(0);
    }
}

/// Compacts a copy in which the work on one feature is done. Returns the copy as it was before.
fn compacts(primary: &Agent<'_>) -> String {
    works(primary, "AUTH");
    primary.pulls();
    let good = primary.text("events.jsonl");
    primary.runs(&["compact", "--keep", "0d"]).ends(0);
    good
}

/// The output of a copy, without the events of requirements, because those of folded features are gone.
fn shown(agent: &Agent<'_>) -> Vec<Value> {
    let shown = ["status", "ready", "claims", "trace"].map(|command| {
        let ran = agent.runs(&[command]);
        ran.ends(0);
        let lines = ran.stdout.lines().map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            line.as_object_mut().unwrap().remove("events");
            line
        });
        lines.collect::<Vec<_>>().into()
    });
    shown.into()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compacted_copy_shows_the_same_and_work_goes_on() {
    let world = World::start().await;
    let primary = world.single();
    works(&primary, "AUTH");
    primary.runs(&["claim", &edge("SEARCH", "design_code")]).ends(0);
    primary.pulls();
    let (before, shows) = (primary.text("events.jsonl"), shown(&primary));
    let kept = primary.runs(&["compact", "--keep", "30d"]);
    assert_eq!(kept.stdout, "features folded: 0, events: 0\n", "{}", kept.stderr);
    assert_eq!(primary.text("events.jsonl"), before);

    let folded = primary.runs(&["compact", "--keep", "0d"]);
    assert_eq!(folded.stdout, "features folded: 1, events: 7\n", "{}", folded.stderr);
    assert_eq!(
        primary.types_behind_snapshot(),
        ["project_initialized", "feature_created", "edge_started"]
    );
    assert_eq!(shown(&primary), shows);
    let log = primary.runs(&["log"]);
    assert_eq!(log.stdout.lines().count(), 3);
    assert!(
        log.stderr.contains("warning: events of features that were done by "),
        "{}",
        log.stderr
    );
    let compacted = primary.text("events.jsonl");
    let again = primary.runs(&["compact", "--keep", "0d"]);
    assert_eq!(
        (&*again.stdout, primary.text("events.jsonl")),
        ("features folded: 0, events: 0\n", compacted)
    );

    // Without the stack, commands about other features are decided.
    let of = edge("SEARCH", "design_code");
    primary.does_offline("complete-iteration", &iteration(&of, 1)).ends(0);
    let reopen = json!({ "edge": edge("AUTH", "design_code"), "reason": "more is wanted" });
    let refused = primary.does_offline("reopen-edge", &reopen);
    refused.ends(2);
    let why = format!("error: the events of {} are folded", feature("AUTH"));
    assert!(refused.stderr.contains(&why), "{}", refused.stderr);
    // With it, all are.
    primary.runs(&["push"]).ends(0);
    primary.does("reopen-edge", &reopen).ends(0);
    assert_eq!(primary.runs(&["pull"]).stdout, "2 events added to shop\n");
    let reader = world.agent("primary");
    reader.pulls();
    assert_eq!(shown(&primary), shown(&reader));
    let ran = primary.runs_on_other_index(&["pull"]);
    ran.ends(2);
    assert!(ran.stderr.starts_with("error: IndexChanged: "), "{}", ran.stderr);

    // AUTH is ready again, and is not offered without the stack.
    let edge_of = |ran: Ran| ran.ends(0)["edge"].clone();
    assert_eq!(
        edge_of(reader.runs(&["claim", "--next", "--offline"])),
        edge("AUTH", "design_code")
    );
    let offline = primary.runs(&["claim", "--next", "--offline"]);
    let mut unreachable = primary.command(&["claim", "--next"]);
    let unreachable = unreachable.env("API_URL", "http://127.0.0.1:1").output().unwrap();
    let why = format!("the events of {} are folded", feature("AUTH"));
    for next in [offline, Ran::of(unreachable)] {
        let next = next.ends(1);
        assert_eq!(next["code"], "NothingReady");
        let detail = next["lastRefusal"]["detail"].as_str().unwrap();
        assert!(detail.starts_with(&why), "{detail}");
    }
    primary.runs(&["reconstruct"]).ends(0);
    assert_eq!(primary.text("events.jsonl"), reader.text("events.jsonl"));
    assert!(primary.text("events.jsonl").starts_with(&before));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_snapshot_is_an_error_that_a_reconstruction_mends() {
    let world = World::start().await;
    let primary = world.single();
    let good = compacts(&primary);
    let text = primary.text("events.jsonl").replacen("AUTH", "AUTX", 1);
    fs::write(primary.path("events.jsonl"), text).unwrap();
    for command in ["status", "pull", "log"] {
        let ran = primary.runs(&[command]);
        ran.ends(2);
        let named =
            "line 1 of .ringfence/shop/events.jsonl is damaged: `ringfence project reconstruct`";
        assert!(ran.stderr.contains(named), "{}", ran.stderr);
    }
    let ran = primary.runs(&["compact", "--keep", "0d"]);
    ran.ends(2);
    primary.runs(&["reconstruct"]).ends(0);
    assert_eq!(primary.text("events.jsonl"), good);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_folder_of_another_project_is_neither_read_nor_written() {
    let world = World::start().await;
    let primary = world.single();
    let good = compacts(&primary);
    let compacted = primary.text("events.jsonl");
    primary.does_offline("create-feature", &fix("PAY")).ends(0);
    // Like a disk on which `shop` and `Shop` are one name.
    let shop = primary.path("");
    let other = shop.with_file_name("Shop");
    fs::rename(&shop, &other).unwrap();
    let refuses = |file: &str, commands: &[&[&str]]| {
        for command in commands {
            let ran = primary.runs(&[&["--project", "Shop"], *command].concat());
            ran.ends(2);
            let error = format!(".ringfence/Shop/{file} is of the project shop and not of Shop");
            assert!(ran.stderr.contains(&error), "{command:?}: {}", ran.stderr);
        }
    };
    let reads: [&[&str]; 3] = [&["status"], &["log"], &["compact", "--keep", "0d"]];
    refuses("events.jsonl", &reads);
    refuses("events.jsonl", &[&["pull"], &["reconstruct"]]);
    assert_eq!(fs::read_to_string(other.join("events.jsonl")).unwrap(), compacted);
    refuses("outbox.jsonl", &[&["push"]]);
    fs::remove_file(other.join("outbox.jsonl")).unwrap();
    fs::remove_file(other.join("events.jsonl")).unwrap();
    // The place of one project's pull does not count for the other.
    fails(
        &primary.runs(&["--project", "Shop", "pull"]),
        "the index has no project Shop; it has shop. ",
    );
    fs::rename(&other, &shop).unwrap();
    primary.pulls();
    assert_eq!(primary.text("events.jsonl"), good);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_copy_is_compacted_and_only_by_days() {
    let world = World::start().await;
    let primary = world.agent("primary");
    let config = json!({ "edges": [{ "edge": "only" }] });
    let begin = json!({ "project": "shop", "config": config }).to_string();
    primary.runs(&["do", "init-project", "--local", "--data", &begin]).ends(0);
    let local = primary.runs(&["compact", "--keep", "0d"]);
    local.ends(2);
    assert!(
        local.stderr.contains("shop is a local project: its file is its log"),
        "{}",
        local.stderr
    );
    for keep in ["30", "d", "-1d", "1w", "999999999999999999d"] {
        let wrong = primary.runs(&["compact", &format!("--keep={keep}")]);
        wrong.ends(2);
        assert!(wrong.stderr.contains("must be a number of days, such as 30d"), "{}", wrong.stderr);
    }
}
