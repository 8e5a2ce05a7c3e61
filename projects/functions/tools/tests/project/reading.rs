//! The output of the commands that read the copy.

use std::fs::File;
use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{Agent, Fault, Ran, World, edge, feature, iteration};

/// The printed lines of a command that only reads.
#[track_caller]
fn read(agent: &Agent<'_>, arguments: &[&str]) -> Vec<Value> {
    let ran = agent.runs(arguments);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn members(lines: &[Value], member: &str) -> Vec<Value> {
    lines.iter().map(|line| line[member].clone()).collect()
}

/// Ada has claimed AUTH, and has converged an iteration that answers to a requirement.
fn ada_works(world: &World) -> Agent<'_> {
    world.multi();
    let ada = world.agent("ada");
    let of = edge("AUTH", "design_code");
    ada.runs(&["claim", &of]).ends(0);
    let mut iteration = iteration(&of, 1);
    iteration["reqKeys"] = json!(["SIGN-IN"]);
    ada.does("complete-iteration", &iteration).ends(0);
    ada.pulls();
    ada
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_of_a_project_is_read_without_a_network() {
    let world = World::start().await;
    let ada = ada_works(&world);
    world.requests();
    let status = &read(&ada, &["status"])[0];
    assert_eq!([&status["project"], &status["status"]], ["shop", "inProgress"]);
    assert_eq!([&status["row"]["features"], &status["row"]["iterations"]], [2, 1]);
    let (auth, search) = (edge("AUTH", "design_code"), edge("SEARCH", "design_code"));
    assert_eq!(members(&read(&ada, &["ready"]), "edge"), [&*search]);
    assert_eq!(read(&ada, &["ready", "--feature", "REQ-F-AUTH-001"]), [Value::Null; 0]);
    let claims = read(&ada, &["claims"]);
    assert_eq!([&claims[0]["edge"], &claims[0]["agent"]], [&*auth, "ada"]);
    assert_eq!((claims.len(), &claims[0]["epoch"]), (1, &json!(1)));
    let until_ms = claims[0]["leaseUntilMs"].as_u64().unwrap();
    assert_eq!(claims[0]["leaseUntil"], ringfence_core::rfc3339(until_ms));
    assert_eq!(claims[0]["overdue"], false);
    assert_eq!(read(&ada, &["claims", "--agent", "bob"]), [Value::Null; 0]);
    assert_eq!(read(&ada, &["claims", "--edge", "code_tests"]), [Value::Null; 0]);
    let trace = read(&ada, &["trace"]);
    assert_eq!((trace.len(), &trace[0]["requirement"]), (1, &json!("SIGN-IN")));
    assert_eq!(trace[0]["features"]["REQ-F-AUTH-001"]["design_code"]["iteration"], 1);
    assert_eq!(trace[0]["missing"], json!({ "REQ-F-AUTH-001": [] }));
    assert_eq!(world.requests(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requirement_is_traced_to_its_releases_gaps_and_events() {
    let world = World::start().await;
    let ada = ada_works(&world);
    let (eve, of) = (world.agent("eve"), edge("AUTH", "design_code"));
    let answer = json!({ "edge": of, "convergence": "standard" });
    ada.does("converge-edge", &answer).ends(0);
    // A person has to look at it, because Ada has no role.
    let review = json!({
        "edge": of, "run": 1, "iteration": 1, "decision": "approved", "feedback": "fine",
    });
    eve.does("record-review", &review).ends(0);
    let validated = json!({
        "project": "shop", "gaps": "0a".repeat(32), "asOf": "monday",
        "counts": { "total": 2, "full": 1, "partial": 0, "none": 1 },
        "requirements": [{ "reqKey": "SIGN-IN", "met": "full" }, { "reqKey": "SIGN-OUT", "met": "none" }],
    });
    eve.does("validate-gaps", &validated).ends(0);
    let release = json!({
        "project": "shop", "version": "1.0.0", "features": [feature("AUTH")], "notes": "first",
    });
    eve.does("create-release", &release).ends(0);
    ada.pulls();
    let trace = read(&ada, &["trace"]);
    assert_eq!(members(&trace, "requirement"), ["SIGN-IN", "SIGN-OUT"]);
    assert_eq!(trace[0]["releases"], json!({ "1.0.0": ["REQ-F-AUTH-001"] }));
    assert_eq!(trace[0]["gap"]["met"], "full");
    let types = |trace: &Value| members(trace["events"].as_array().unwrap(), "event_type");
    let expected = ["iteration_completed", "edge_converged", "gaps_validated", "release_created"];
    assert_eq!(types(&trace[0]), expected);
    assert_eq!(
        (&trace[1]["gap"]["met"], types(&trace[1])),
        (&json!("none"), vec![json!("gaps_validated")])
    );
    assert_eq!(
        members(&read(&ada, &["trace", "--feature", "REQ-F-AUTH-001"]), "requirement"),
        ["SIGN-IN"]
    );

    let zoom = |at: &str| read(&ada, &["zoom", at]);
    let edges = zoom("REQ-F-AUTH-001");
    assert_eq!([&edges[0]["edge"], &edges[0]["events"]], [&json!("design_code"), &json!(5)]);
    let iterations = zoom("REQ-F-AUTH-001/design_code");
    assert_eq!([&iterations[0]["run"], &iterations[0]["iteration"]], [1, 1]);
    assert_eq!(iterations[0]["reqKeys"], json!(["SIGN-IN"]));
    let events = zoom("REQ-F-AUTH-001/design_code/1");
    let expected = [
        "edge_started",
        "iteration_completed",
        "convergence_escalated",
        "review_completed",
        "edge_converged",
    ];
    assert_eq!(members(&events, "event_type"), expected);
    let event = zoom(events[1]["event_id"].as_str().unwrap());
    assert_eq!(event[0]["data"]["reqKeys"], json!(["SIGN-IN"]));
    let nothing = ada.runs(&["zoom", "REQ-F-AUTH-001/design_code/2"]);
    nothing.ends(2);
    assert!(nothing.stderr.contains("the copy has nothing of this"), "{}", nothing.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_filtered_by_feature_edge_agent_type_and_time() {
    let world = World::start().await;
    let ada = ada_works(&world);
    let types = |more: &[&str]| members(&read(&ada, &[&["log"], more].concat()), "event_type");
    let [begun, created, started, done] =
        ["project_initialized", "feature_created", "edge_started", "iteration_completed"];
    assert_eq!(types(&[]), [begun, created, created, started, done]);
    assert_eq!(types(&["--feature", "REQ-F-AUTH-001"]), [created, started, done]);
    assert_eq!(types(&["--edge", "design_code"]), [started, done]);
    assert_eq!(types(&["--agent", "eve"]), [begun, created, created]);
    assert_eq!(types(&["--type", "EdgeStarted"]), [started]);
    assert_eq!(types(&["--type", started, "--agent", "eve"]), [""; 0]);
    let times = members(&read(&ada, &["log"]), "timestamp");
    let time = |n: usize| times[n].as_str().unwrap();
    assert_eq!(types(&["--since", time(3)]), [started, done]);
    assert_eq!(types(&["--until", time(3)]), [begun, created, created]);
    let wrong = ada.runs(&["log", "--since", "yesterday"]);
    wrong.ends(2);
    assert!(wrong.stderr.contains("must be a time of RFC 3339"), "{}", wrong.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_says_how_old_it_is_and_what_waits() {
    let world = World::start().await;
    let primary = world.single();
    let never = primary.runs(&["--project", "shop", "status"]);
    assert_eq!(never.ends(0)["status"], "noProject");
    assert!(never.stderr.contains("warning: the events were never pulled"), "{}", never.stderr);
    primary.pulls();
    let new = primary.runs(&["status"]);
    assert!(new.stderr.starts_with("as pulled 0 min "), "{}", new.stderr);
    let pulled = File::options().write(true).open(primary.path("pull.json")).unwrap();
    let changed = pulled.metadata().unwrap().modified().unwrap();
    pulled.set_modified(changed - Duration::from_secs(3_600)).unwrap();
    primary.runs(&["claim", &edge("AUTH", "design_code"), "--offline"]).ends(0);
    let old = primary.runs(&["status"]);
    assert!(old.stderr.starts_with("warning: as pulled 60 min "), "{}", old.stderr);
    assert!(old.stderr.contains("warning: commands wait and are not shown (1)"), "{}", old.stderr);
    // A pull that finds nothing new says that the copy is new.
    primary.pulls();
    assert!(primary.runs(&["status"]).stderr.starts_with("as pulled 0 min "));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_wants_the_next_edge_gets_a_free_one() {
    let world = World::start().await;
    world.multi();
    let agents = ["ada", "bob", "carl"].map(|name| world.agent(name));
    for agent in &agents {
        agent.pulls();
    }
    let next = |agent: &Agent<'_>, status| {
        agent.runs(&["--project", "shop", "claim", "--next"]).ends(status)
    };
    let mut got = vec![next(&agents[0], 0)["edge"].clone(), next(&agents[1], 0)["edge"].clone()];
    got.sort_by_key(Value::to_string);
    assert_eq!(got, [edge("AUTH", "design_code"), edge("SEARCH", "design_code")]);
    let nothing = next(&agents[2], 1);
    assert_eq!((&nothing["code"], &nothing["holds"]), (&json!("NothingReady"), &Value::Null));
    let own = next(&agents[0], 1);
    assert_eq!((&own["code"], own["holds"].as_array().unwrap().len()), (&json!("NothingReady"), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn ready_edges_that_others_have_by_now_are_tried_in_turn() {
    let world = World::start().await;
    world.multi();
    // Another program of Bob's chooses the same edge first.
    let (twin, bob) = (world.agent("bob"), world.agent("bob"));
    bob.pulls();
    let first = twin.runs(&["--project", "shop", "claim", "--next"]).ends(0);
    // Without the index this one does not know of the claim.
    let mut claim = bob.command(&["claim", "--next"]);
    let output = claim.env_remove("INDEX_TABLE").output().unwrap();
    let second = Ran::of(output).ends(0);
    assert_ne!(second["edge"], first["edge"]);
    assert_eq!(world.requests()[3..], ["claim-edge", "claim-edge", "claim-edge"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_came_too_late_looks_again_before_it_tries_another_edge() {
    let world = World::start().await;
    world.multi().creates("PAY");
    let (ada, bob) = (world.agent("ada"), world.agent("bob"));
    bob.pulls();
    world.requests();
    world.fails([Fault::Waits]);
    let claims = bob.command(&["claim", "--next"]).spawn().unwrap();
    world.awaits_request();
    for feature in ["AUTH", "SEARCH", "PAY"] {
        ada.runs(&["claim", &edge(feature, "design_code")]).ends(0);
    }
    world.goes_on();
    let nothing = Ran::of(claims.wait_with_output().unwrap()).ends(1);
    assert_eq!(
        (&nothing["code"], &nothing["lastRefusal"]["code"]),
        (&json!("NothingReady"), &json!("EdgeHeld"))
    );
    assert_eq!(world.requests().len(), 3, "those of Ada");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_edge_offline_is_one_that_no_waiting_command_has_claimed() {
    let world = World::start().await;
    let primary = world.single_with_copy();
    let next =
        |status| primary.runs(&["claim", "--next", "--offline"]).ends(status)["edge"].clone();
    let (first, second) = (next(0), next(0));
    assert_ne!(first, second);
    assert_eq!(next(1), Value::Null);
    primary.runs(&["push"]).ends(0);
}
