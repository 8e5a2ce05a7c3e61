//! Imports of another program's work into a local project.

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
{"event_type":"iteration_completed","timestamp":"2026-02-19T12:00:06Z","feature_id":"REQ-F-SEARCH-001","edge":"code↔tests","payload":{"status":"blocked","delta":1}}
{"event_type":"edge_claim","timestamp":"2026-02-19T12:00:07Z","agent_id":"primary","payload":{"feature_id":"REQ-F-AUTH-001","edge":"design→code"}}
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
        "13 lines imported, 3 of them kept as they are; 0 were there before\n\
         kept edge_started (1): it names no feature and edge of a project, such as REQ-F-AUTH-001 and design_code; \
         lines 13\n\
         kept evaluator_ran (2): no event of a project is of this type; lines 4, 5\n"
    );
    let expected = [
        "project_initialized",
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
    assert_eq!((ids[0].0, ids[0].1, ids[1].1), (ids[1].0, "1", "2"));
    let why = members(&lines, "foreign_recorded", "why");
    assert_eq!(why[0], "no event of a project is of this type");
    // The time is kept in every spelling. Both events of a line have it.
    let times = lines[3..].iter().map(|line| line["meta"]["effectiveAt"].as_str().unwrap());
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
    // Its lines are known there, too.
    let again = imports(&primary, FILE);
    again.ends(0);
    assert!(again.stdout.starts_with("0 lines imported, "), "{}", again.stdout);
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
    refused(&primary, "{}\nnothing\n", "other.jsonl: line 2: is not JSON, from character 2 on");
    refused(&primary, "{}\n", "the edges of the file make no graph");
    let edges = json!([{ "edge": "design_code" }]);
    let other = begins(&world, "primary", json!({ "edges": edges }));
    refused(&other, FILE, "line 10: the graph of shop has no edge code_tests");
    let large = json!({ "event_type": "noted", "text": "x".repeat(400_000) });
    refused(&other, &format!("{{}}\n{large}\n"), "line 2: ForeignRecorded: ");
    // If a time or a number can't be read, the line is kept.
    let work = json!({
        "event_type": "iteration_completed", "feature": "REQ-F-AUTH-001", "edge": "design_code",
    });
    let with = |member: &str, value: Value| {
        let mut line = work.clone();
        line[member] = value;
        format!("{line}\n")
    };
    let wrong = [
        ("delta", json!(-3)),
        ("evaluators", json!({ "failed": "two" })),
        ("timestamp", json!("yesterday")),
    ];
    let file: String = wrong.into_iter().map(|(member, value)| with(member, value)).collect();
    let kept = imports(&other, &file);
    assert_eq!(
        kept.stdout,
        "3 lines imported, 3 of them kept as they are; 0 were there before\n\
         kept iteration_completed (2): its number of failed checks can't be read: it has to be an integer from 0 to \
         4294967295; lines 1, 2\n\
         kept iteration_completed (1): its time can't be read: it has to be one such as 2026-02-19T12:00:00Z, and not \
         before 1970; lines 3\n"
    );
}

/// A file of several agents, with a line of each type that a project has.
fn of_agents() -> Vec<Value> {
    let line = |event_type: &str, more: Value| {
        let mut line = json!({ "event_type": event_type, "timestamp": "2026-02-19T12:00:00Z" });
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line
    };
    let on = |feature: &str, agent: &str| json!({ "feature": format!("REQ-F-{feature}-001"), "edge": "design→code", "agent_id": agent });
    let and = |mut value: Value, more: Value| {
        value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        value
    };
    let lines = vec![
        line("project_initialized", json!({})),
        line("edge_started", on("AUTH", "ada")),
        line("claim_rejected", on("AUTH", "bob")),
        line(
            "iteration_completed",
            and(on("AUTH", "ada"), json!({ "status": "converged", "delta": 0 })),
        ),
        line("convergence_escalated", and(on("AUTH", "ada"), json!({ "role": "coder" }))),
        line("review_completed", and(on("AUTH", "eve"), json!({ "outcome": "approved" }))),
        line("edge_converged", on("AUTH", "ada")),
        line("edge_started", on("SEARCH", "bob")),
        line("claim_expired", on("SEARCH", "bob")),
        line("edge_started", on("SEARCH", "carl")),
        line(
            "spawn_created",
            and(
                on("SEARCH", "carl"),
                json!({
                    "data": { "parent": "REQ-F-SEARCH-001", "child": "REQ-F-CHILD-001" },
                }),
            ),
        ),
        line("spawn_folded_back", json!({ "child": "REQ-F-CHILD-001" })),
        line("edge_released", on("SEARCH", "carl")),
        line("checkpoint_created", json!({ "context_hash": "sha256:abc", "message": "first" })),
        line(
            "gaps_validated",
            json!({ "data": {
                "total_req_keys": 3, "full_coverage": 1, "partial_coverage": 1, "no_coverage": 1,
            }}),
        ),
        line("intent_raised", json!({ "intent_id": "INT-042", "trigger": "a gap" })),
        line("release_created", json!({ "version": "v1.0.0", "features": ["REQ-F-AUTH-001"] })),
    ];
    let ids = lines.into_iter().enumerate();
    ids.map(|(n, line)| and(line, json!({ "event_id": format!("e-{n}") }))).collect()
}

fn text(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_of_all_types_go_into_a_project_that_goes_on_and_each_once_by_its_id() {
    let world = World::start().await;
    let config = json!({
        "mode": "multi", "edges": [{ "edge": "design_code" }], "roles": { "eve": "human" },
    });
    let eve = begins(&world, "eve", config);
    let lines = of_agents();
    let imported = imports(&eve, &text(&lines));
    imported.ends(0);
    let kept = "17 lines imported, 1 of them kept as they are; 0 were there before\n\
                kept project_initialized (1): the project has begun already; lines 1\n";
    assert_eq!(imported.stdout, kept);
    let expected = [
        "project_initialized",
        "foreign_recorded",
        "feature_created",
        "edge_started",
        "claim_rejected",
        "iteration_completed",
        "convergence_escalated",
        "review_completed",
        "edge_converged",
        "feature_created",
        "edge_started",
        "claim_expired",
        "edge_started",
        "spawn_created",
        "feature_created",
        "spawn_folded_back",
        "edge_released",
        "checkpoint_created",
        "gaps_validated",
        "intent_raised",
        "release_created",
    ];
    assert_eq!(eve.types(), expected);
    let events = eve.lines("events.jsonl");
    assert_eq!(members(&events, "edge_started", "agent"), ["ada", "bob", "carl"]);
    assert_eq!(members(&events, "claim_rejected", "holder"), ["ada"]);
    // Work goes on here, and the file grows. Lines that do not fit are kept, with the reason.
    let search = edge("SEARCH", "design_code");
    eve.runs(&["claim", &search]).ends(0);
    let mut grown = lines.clone();
    grown[1]["note"] = json!("said otherwise, under the same id");
    let mut more = vec![lines[9].clone(), lines[6].clone(), lines[16].clone(), lines[12].clone()];
    for (n, line) in more.iter_mut().enumerate() {
        line["event_id"] = json!(format!("more-{n}"));
    }
    more[3]["feature"] = json!("REQ-F-AUTH-001");
    let again = imports(&eve, &text(&[grown, more].concat()));
    let expected = "4 lines imported, 4 of them kept as they are; 17 were there before\n\
                    kept edge_converged (1): the edge has converged already; lines 19\n\
                    kept edge_released (1): nobody holds the edge; lines 21\n\
                    kept edge_started (1): eve holds the edge already; lines 18\n\
                    kept release_created (1): the project has this already; lines 20\n";
    assert_eq!((again.status, &*again.stdout), (0, expected), "{}", again.stderr);
    assert_eq!(members(&eve.lines("events.jsonl"), "edge_started", "agent").len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_was_done_here_meanwhile_comes_before_the_lines_that_are_new() {
    let world = World::start().await;
    let primary = world.agent("primary");
    let half: String = FILE.split_inclusive('\n').take(7).collect();
    imports(&primary, &half).ends(0);
    primary.does("complete-iteration", &iteration(&edge("AUTH", "design_code"), 3)).ends(0);
    let nine: String = FILE.split_inclusive('\n').take(9).collect();
    imports(&primary, &nine).ends(0);
    let lines = primary.lines("events.jsonl");
    assert_eq!(members(&lines, "edge_converged", "iteration"), [3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_go_into_a_project_of_a_stack_that_others_work_on() {
    let world = World::start().await;
    let eve = world.multi();
    eve.pulls();
    let lines = of_agents();
    // Somebody claims an edge that the file is about, and the copy does not know of it.
    let bob = world.agent("bob");
    bob.runs(&["claim", &edge("AUTH", "design_code")]).ends(0);
    let half = imports(&eve, &text(&lines[..3]));
    let expected = "3 lines imported, 2 of them kept as they are; 0 were there before\n\
                    kept edge_started (1): bob holds the edge already; lines 2\n\
                    kept project_initialized (1): the project has begun already; lines 1\n";
    assert_eq!((half.status, &*half.stdout), (0, expected), "{}", half.stderr);
    // Imported events come into the index like all others.
    let attempt = "attempt:shop%2FREQ-F-AUTH-001%2Fdesign_code%2Fbob/1";
    world.indexes(&[json!({ "event_id": attempt })]).await;
    eve.pulls();
    assert_eq!(eve.types().last().unwrap(), "claim_rejected");
}
