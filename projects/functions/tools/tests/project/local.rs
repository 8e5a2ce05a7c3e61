//! Projects without a stack.

use std::fs;

use serde_json::{Value, json};

use crate::world::{Agent, Ran, World, edge, feature, fix, iteration};

/// An agent that begins a project without a stack.
pub(crate) fn begins<'w>(world: &'w World, name: &'static str, config: Value) -> Agent<'w> {
    let agent = world.agent(name);
    let init = json!({ "project": "shop", "config": config }).to_string();
    let begun = agent.runs(&["do", "init-project", "--data", &init, "--local"]).ends(0);
    assert_eq!(begun["events"][0]["type"], "ProjectInitialized");
    agent
}

/// The project of `primary`, with two features of two edges.
pub(crate) fn local(world: &World) -> Agent<'_> {
    let edges = json!([
        { "edge": "design_code" },
        { "edge": "code_tests", "after": ["design_code"] },
    ]);
    let primary = begins(world, "primary", json!({ "edges": edges }));
    primary.creates("AUTH");
    primary.creates("SEARCH");
    primary
}

/// Takes the next edge, does its work and ends it.
pub(crate) fn works(primary: &Agent<'_>) -> Value {
    let claimed = primary.runs(&["claim", "--next"]).ends(0);
    let of = claimed["edge"].as_str().unwrap();
    primary.does("complete-iteration", &iteration(of, 1)).ends(0);
    let converge = json!({ "edge": of, "convergence": "standard" });
    primary.does("converge-edge", &converge).ends(0);
    claimed
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_project_is_worked_on_to_its_end_without_a_stack() {
    let world = World::start().await;
    let primary = local(&world);
    for epoch in [1; 4] {
        assert_eq!(works(&primary)["events"][0]["slot"], epoch);
    }
    assert_eq!(primary.runs(&["claim", "--next"]).ends(1)["code"], "NothingReady");
    let again = primary.runs(&["claim", &edge("AUTH", "design_code")]).ends(1);
    assert_eq!(again["code"], "AlreadyConverged");
    let status = primary.runs(&["status"]);
    assert_eq!(status.ends(0)["status"], "allDone");
    assert_eq!(status.stderr, "");
    assert_eq!(world.requests(), [""; 0]);
    assert!(!primary.path("outbox.jsonl").exists());
}

/// Gives commands that name neither an agent nor a claim.
fn works_alone(agent: &Agent<'_>, slice: &str, data: &Value, status: i32) -> Value {
    let mut command = agent.command(&["do", slice, "--data", &data.to_string()]);
    Ran::of(command.env_remove("RINGFENCE_AGENT").output().unwrap()).ends(status)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_works_alone_names_neither_itself_nor_a_claim_here_and_in_a_stack() {
    let world = World::start().await;
    for agent in [local(&world), world.single()] {
        let of = edge("AUTH", "design_code");
        let types = |answer: &Value| {
            let events = answer["events"].as_array().unwrap().iter();
            events.map(|event| event["type"].clone()).collect::<Vec<_>>()
        };
        let first = works_alone(&agent, "complete-iteration", &iteration(&of, 1), 0);
        assert_eq!(types(&first), ["EdgeStarted", "IterationCompleted"]);
        let second = works_alone(&agent, "complete-iteration", &iteration(&of, 2), 0);
        assert_eq!(types(&second), ["IterationCompleted"]);
        let converge = json!({ "edge": of, "convergence": "standard" });
        let ended = works_alone(&agent, "converge-edge", &converge, 0);
        assert_eq!(types(&ended), ["EdgeConverged"]);
        // An edge waits for the edges and features before it.
        let next = edge("PAY", "code_tests");
        let pay = json!({
            "feature": "shop/REQ-F-PAY-001", "title": "PAY", "kind": "fix",
            "dependencies": ["shop/REQ-F-SEARCH-001"],
        });
        works_alone(&agent, "create-feature", &pay, 0);
        let early = works_alone(&agent, "complete-iteration", &iteration(&next, 1), 1);
        assert_eq!(early["code"], "WaitsFor");
    }
    let eve = world.agent("eve");
    let config = json!({
        "mode": "multi", "edges": [{ "edge": "code" }], "roles": { "iam:eve": "human" },
    });
    let init = json!({ "project": "many", "config": config });
    assert_eq!(works_alone(&eve, "init-project", &init, 1)["code"], "AgentMissing");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_of_several_events_says_how_many_follow() {
    let world = World::start().await;
    let primary = local(&world);
    let of = edge("AUTH", "design_code");
    primary.runs(&["claim", &of]).ends(0);
    let child = json!({
        "edge": of, "child": "shop/REQ-F-CHILD-001", "title": "CHILD", "kind": "spike", "blocks": false,
        "reason": "nobody knows",
    });
    primary.does("spawn-feature", &child).ends(0);
    let lines = primary.lines("events.jsonl");
    let member = |name: &str| lines.iter().map(|line| line[name].clone()).collect::<Vec<_>>();
    assert_eq!(member("rest"), [0, 0, 0, 0, 1, 0]);
    assert_eq!(member("checkpoint"), [1, 2, 3, 4, 5, 6]);
    // An append that broke off has not taken place.
    let text = primary.text("events.jsonl");
    fs::write(primary.path("events.jsonl"), &text[..text.len() - 1]).unwrap();
    let ran = primary.runs(&["log", "--type", "spawn_created"]);
    assert_eq!((ran.status, &*ran.stdout), (0, ""));
    assert!(ran.stderr.starts_with("warning: from line 5 on, .ringfence/shop/"), "{}", ran.stderr);
    primary.does("spawn-feature", &child).ends(0);
    assert_eq!(primary.lines("events.jsonl").len(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_at_once_get_an_edge_each() {
    let world = World::start().await;
    let primary = local(&world);
    let claimed: Vec<Ran> = std::thread::scope(|scope| {
        let claim = |_| scope.spawn(|| primary.runs(&["claim", "--next"]));
        let claims: Vec<_> = (0..6).map(claim).collect();
        claims.into_iter().map(|claim| claim.join().unwrap()).collect()
    });
    let (granted, left): (Vec<_>, Vec<_>) = claimed.iter().partition(|ran| ran.status == 0);
    let mut edges: Vec<_> = granted.iter().map(|ran| ran.ends(0)["edge"].clone()).collect();
    edges.sort_by_key(Value::to_string);
    assert_eq!(edges, [edge("AUTH", "design_code"), edge("SEARCH", "design_code")]);
    assert!(left.iter().all(|ran| ran.ends(1)["code"] == "NothingReady"));
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_share_a_local_project_and_learn_once_that_another_one_has_an_edge() {
    let world = World::start().await;
    let config = json!({
        "mode": "multi", "edges": [{ "edge": "design_code" }], "roles": { "eve": "human" },
    });
    let eve = begins(&world, "eve", config);
    eve.creates("AUTH");
    let of = edge("AUTH", "design_code");
    let claim = |agent: &str, status| eve.runs(&["claim", &of, "--agent", agent]).ends(status);
    let held = claim("ada", 0)["claim"].clone();
    let rejected = claim("bob", 1);
    assert_eq!([&rejected["code"], &rejected["claim"]], [&json!("EdgeHeld"), &held]);
    assert_eq!(rejected["events"][0]["type"], "ClaimRejected");
    assert_eq!(claim("bob", 1)["events"], Value::Null);
    // A person answers a question under the claim of the agent that asked it.
    let of = edge("WHY", "design_code");
    let question = json!({ "feature": feature("WHY"), "title": "WHY", "kind": "spike" });
    eve.does("create-feature", &question).ends(0);
    eve.runs(&["claim", &of, "--agent", "ada"]).ends(0);
    let answer = json!({ "edge": of, "convergence": "questionAnswered" });
    assert_eq!(eve.does("converge-edge", &answer).ends(0)["events"][0]["type"], "EdgeConverged");
}

#[track_caller]
pub(crate) fn fails(ran: &Ran, with: &str) {
    ran.ends(2);
    assert!(ran.stderr.contains(with), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_a_local_project_is_not_overwritten_by_a_copy() {
    let world = World::start().await;
    world.single();
    let primary = local(&world);
    let text = primary.text("events.jsonl");
    for command in ["pull", "reconstruct"] {
        fails(&primary.runs(&[command]), "shop is a local project: `ringfence project publish`");
    }
    // Not even if it is damaged.
    fs::write(primary.path("events.jsonl"), text.replacen("shop", "shap", 1)).unwrap();
    fails(&primary.runs(&["reconstruct"]), "shop is a local project");
    fails(&primary.runs(&["status"]), "the project is local, so take the file from a copy");
    // Nor if another program has changed the ends of all lines.
    fs::write(primary.path("events.jsonl"), text.replace('\n', "\r\n")).unwrap();
    fails(&primary.runs(&["reconstruct"]), "shop is a local project");
    // A file without a readable line is replaced, and kept.
    let unknown = text.replace("shop", "shap");
    fs::write(primary.path("events.jsonl"), &unknown).unwrap();
    let ran = primary.runs(&["reconstruct"]);
    ran.ends(0);
    assert!(
        ran.stderr.contains("no line with the right sum: it is replaced, and kept in"),
        "{}",
        ran.stderr
    );
    assert_eq!(primary.text("events.jsonl.torn"), unknown);
    // Nor is a whole line cut off if it does not follow the one before, as after a merge of two copies.
    let merged = format!("{text}{}\n", text.lines().last().unwrap());
    fs::write(primary.path("events.jsonl"), &merged).unwrap();
    fails(&primary.runs(&["log"]), "line 4 of .ringfence/shop/events.jsonl is whole, but does not");
    fails(&primary.does("create-feature", &fix("PAY")), "line 4 of ");
    assert_eq!(primary.text("events.jsonl"), merged);
    // And a local project does not begin where a copy is.
    let other = world.agent("primary");
    other.pulls();
    let data =
        json!({ "project": "shop", "config": { "edges": [{ "edge": "code" }] } }).to_string();
    let begun = other.runs(&["do", "init-project", "--data", &data, "--local"]);
    fails(&begun, ".ringfence/shop/ is a copy of a stack's project");
}
