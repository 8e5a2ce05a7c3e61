//! What another program has recorded, in a local project.

use std::fs;

use serde_json::{Value, json};

use crate::local::{begins, fails, works};
use crate::world::{Agent, Ran, World, edge, feature, iteration};

/// A file as other programs write it.
const FILE: &str = r#"{"event_type":"project_initialized","timestamp":"2026-02-19T12:00:00Z","project":"shop"}
{"event_type":"edge_started","timestamp":"2026-02-19T13:00:00+01:00","feature":"REQ-F-AUTH-001","edge":"design→code"}
{"event_type":"iteration_completed","timestamp":"2026-02-19 12:00:01","data":{"feature":"REQ-F-AUTH-001","edge":"design→code","iteration":1,"status":"iterating","evaluators":{"passed":3,"failed":2},"source_findings":[{"description":"unclear"}],"context_hash":"sha256:abc"}}
{"event_type":"evaluator_ran","timestamp":"2026-02-19T12:00:01Z","feature":"REQ-F-AUTH-001","edge":"design→code"}
{"event_type":"evaluator_ran","timestamp":"2026-02-19T12:00:01Z","feature":"REQ-F-AUTH-001","edge":"design→code"}
{"event_type":"feature_spawned","timestamp":1771502402,"edge":"design->code","data":{"parent_vector":"REQ-F-AUTH-001","child_vector":"REQ-F-CHILD-001","reason":"gap"}}
{"event_type":"iteration_completed","timestamp":"20260219T120003Z","feature":"REQ-F-AUTH-001","edge":"design→code","status":"converged","delta":0,"req_keys":["SIGN-IN"]}
{"event_type":"feature_folded_back","timestamp":"2026-02-19T12:00:04Z","data":{"parent_vector":"REQ-F-AUTH-001","child_vector":"REQ-F-CHILD-001","outputs":["a.md"]}}
{"event_type":"edge_converged","timestamp":"2026-02-19T12:00:05Z","feature":"REQ-F-AUTH-001","edge":"design→code"}
{"event_type":"iteration_completed","timestamp":"2026-02-19T12:00:06Z","feature":"REQ-F-SEARCH-001","edge":"code↔tests","status":"blocked","delta":1}
{"event_type":"edge_started","timestamp":"2026-02-19T12:00:07Z","feature":"REQ-F-AUTH-001","edge":"design→code"}
{"event_type":"spawn_created","timestamp":"2026-02-19T12:00:08Z","feature":"REQ-F-PAY-001","title":"People pay"}
{"event_type":"edge_started","timestamp":"2026-02-19T12:00:09Z","feature":"all","edge":"design→code"}
"#;

fn imports(primary: &Agent<'_>, file: &str) -> Ran {
    let path = primary.path("../../other.jsonl");
    fs::create_dir_all(primary.path("")).unwrap();
    fs::write(&path, file).unwrap();
    primary.runs(&["--project", "shop", "import", "other.jsonl"])
}

fn members(lines: &[Value], event_type: &str, member: &str) -> Vec<Value> {
    let of_type = lines.iter().filter(|line| line["event_type"] == event_type);
    of_type.map(|line| line["data"][member].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lines_of_another_program_become_events_in_their_order_and_none_is_lost() {
    let world = World::start().await;
    let primary = world.agent("primary");
    let imported = imports(&primary, FILE);
    imported.ends(0);
    assert_eq!(
        imported.stdout,
        "13 lines imported, 4 of them kept as they are; 0 were there before\n"
    );
    let expected = [
        "project_initialized",
        "foreign_recorded",
        // No line has created the feature.
        "feature_created",
        "edge_started",
        "iteration_completed",
        "foreign_recorded",
        "foreign_recorded",
        "spawn_created",
        "feature_created",
        "iteration_completed",
        "spawn_folded_back",
        "edge_converged",
        // No line has begun the work.
        "feature_created",
        "edge_started",
        "iteration_completed",
        // The edge was done.
        "edge_reopened",
        "edge_started",
        "feature_created",
        "foreign_recorded",
    ];
    assert_eq!(primary.types(), expected);
    let lines = primary.lines("events.jsonl");
    assert_eq!(members(&lines, "edge_started", "claim"), ["import-1", "import-1", "import-2"]);
    assert_eq!(members(&lines, "edge_started", "agent"), ["primary"; 3]);
    assert_eq!(members(&lines, "edge_started", "run"), [1, 1, 2]);
    assert_eq!(members(&lines, "iteration_completed", "iteration"), [1, 2, 1]);
    assert_eq!(members(&lines, "iteration_completed", "delta"), [2, 0, 1]);
    let findings = members(&lines, "iteration_completed", "sourceFindings");
    assert_eq!(findings[0], json!([r#"{"description":"unclear"}"#]));
    let features = members(&lines, "feature_created", "title");
    assert_eq!(features, ["REQ-F-AUTH-001", "REQ-F-CHILD-001", "REQ-F-SEARCH-001", "People pay"]);
    assert_eq!(members(&lines, "feature_created", "parent")[1], feature("AUTH"));
    let foreign = members(&lines, "foreign_recorded", "line");
    let ids = foreign.iter().map(|line| line.as_str().unwrap().rsplit_once('-').unwrap());
    let ids: Vec<_> = ids.collect();
    assert_eq!((ids[1].0, ids[1].1, ids[2].1), (ids[2].0, "1", "2"));
    // Whatever the spelling, the time is kept. Both events of a line have it.
    let times = lines[4..].iter().map(|line| line["meta"]["effectiveAt"].as_str().unwrap());
    let seconds: Vec<&str> = times.map(|time| &time[17..19]).collect();
    let expected = "01 01 01 02 02 03 04 05 06 06 06 07 07 08 09";
    assert_eq!(seconds.join(" "), expected);
    let status = primary.runs(&["status"]).ends(0);
    assert_eq!([&status["row"]["features"], &status["row"]["iterations"]], [4, 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_imported_again_when_it_has_grown_and_each_line_once() {
    let world = World::start().await;
    let edges = json!([{ "edge": "design_code" }, { "edge": "code_tests" }]);
    let [primary, whole] =
        ["primary"; 2].map(|name| begins(&world, name, json!({ "edges": edges })));
    let lines: Vec<&str> = FILE.split_inclusive('\n').collect();
    imports(&whole, FILE).ends(0);
    for end in 2..=lines.len() {
        imports(&primary, &lines[..end].concat()).ends(0);
    }
    assert_eq!(primary.types(), whole.types());
    let text = primary.text("events.jsonl");
    let again = imports(&primary, FILE);
    assert_eq!(
        again.stdout,
        "0 lines imported, 0 of them kept as they are; 13 were there before\n"
    );
    assert_eq!(primary.text("events.jsonl"), text);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_imported_goes_on_here_and_then_in_a_stack() {
    let world = World::start().await;
    let primary = world.agent("primary");
    imports(&primary, FILE).ends(0);
    // The claims of the import are the agent's.
    primary.does("complete-iteration", &iteration(&edge("SEARCH", "code_tests"), 2)).ends(0);
    works(&primary);
    let before = primary.lines("events.jsonl");
    primary.runs(&["publish"]).ends(0);
    world.indexes(&before).await;
    primary.pulls();
    assert_eq!(primary.types().len(), before.len());
    works(&primary);
    fails(&imports(&primary, FILE), "is a copy of a stack's project");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feature_takes_the_new_rules_of_its_project_if_the_file_has_a_new_edge() {
    let world = World::start().await;
    let primary = begins(&world, "primary", json!({ "edges": [{ "edge": "design_code" }] }));
    let line = |edge: &str| {
        let (event_type, timestamp) = ("edge_converged", "2026-02-19T12:00:00Z");
        let line = json!({
            "event_type": event_type, "timestamp": timestamp, "feature": "REQ-F-AUTH-001", "edge": edge,
        });
        format!("{line}\n")
    };
    let first = line("design_code") + &line("design_code").replace("AUTH", "SEARCH");
    let both = first.clone() + &line("code_tests");
    imports(&primary, &first).ends(0);
    fails(&imports(&primary, &both), "line 3: the graph of shop has no edge code_tests");
    let config = json!({ "edges": [{ "edge": "design_code" }, { "edge": "code_tests" }] });
    let config = json!({ "project": "shop", "config": config });
    primary.does("reconfigure-project", &config).ends(0);
    let before = primary.types().len();
    imports(&primary, &both).ends(0);
    assert_eq!(
        primary.types()[before..],
        ["feature_reconfigured", "edge_started", "edge_converged"]
    );
    // So does a feature at whose new edge a child is born.
    let born = json!({
        "event_type": "feature_spawned", "timestamp": "2026-02-19T12:00:01Z", "edge": "code_tests",
        "data": { "parent_vector": "REQ-F-SEARCH-001", "child_vector": "REQ-F-CHILD-001" },
    });
    let before = primary.types().len();
    imports(&primary, &format!("{both}{born}\n")).ends(0);
    let expected = ["feature_reconfigured", "edge_started", "spawn_created", "feature_created"];
    assert_eq!(primary.types()[before..], expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_the_project_is_refused_and_nothing_is_written() {
    let world = World::start().await;
    let refused = |primary: &Agent<'_>, file: &str, with: &str| {
        let text = primary.text("events.jsonl");
        fails(&imports(primary, file), with);
        assert_eq!(primary.text("events.jsonl"), text);
    };
    let primary = world.agent("primary");
    refused(&primary, "{}\nnothing\n", "other.jsonl: line 2 is not a JSON object");
    refused(&primary, "{}\n", "the edges of the file make no graph");
    let edges = json!([{ "edge": "design_code" }]);
    let other = begins(&world, "primary", json!({ "edges": edges }));
    refused(&other, FILE, "line 10: the graph of shop has no edge code_tests");
    let roles = json!({ "eve": "human" });
    let eve = begins(&world, "eve", json!({ "mode": "multi", "edges": edges, "roles": roles }));
    refused(&eve, FILE, "shop is in multi mode");
    // Somebody has worked on an edge that the file goes on with.
    let half: String = FILE.split_inclusive('\n').take(7).collect();
    imports(&primary, &half).ends(0);
    primary.does("complete-iteration", &iteration(&edge("AUTH", "design_code"), 3)).ends(0);
    let nine: String = FILE.split_inclusive('\n').take(9).collect();
    refused(
        &primary,
        &nine,
        "shop/REQ-F-AUTH-001/design_code: converged after 3 iterations here, and converged after 2 iterations by the file",
    );
}
