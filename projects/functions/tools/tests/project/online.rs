//! Commands to the stack.

use std::fs;

use ringfence_local::stack_root;
use serde_json::json;

use crate::world::{Agent, Ran, World, edge, feature, iteration};

#[tokio::test(flavor = "multi_thread")]
async fn one_agent_gets_an_edge_and_works_on_it_and_another_one_is_told_who_has_it() {
    let world = World::start().await;
    let eve = world.multi();
    let (ada, bob) = (world.agent("ada"), world.agent("bob"));
    let of = edge("AUTH", "design_code");
    let claimed = ada.runs(&["claim", &of]).ends(0);
    assert_eq!(claimed["events"][0]["type"], "EdgeStarted");
    let rejected = bob.runs(&["claim", &of]).ends(1);
    assert_eq!((&rejected["code"], &rejected["claim"]), (&json!("EdgeHeld"), &claimed["claim"]));
    // Her own claim is found in the cache, which is pulled for it.
    ada.does("complete-iteration", &iteration(&of, 1)).ends(0);
    let converge = json!({ "edge": of, "convergence": "standard" });
    let barred = ada.does("converge-edge", &converge).ends(0);
    assert_eq!(barred["events"][0]["type"], "ConvergenceEscalated");
    assert_eq!(
        barred["detail"],
        "the edge has not converged: a person has to decide, by record-review"
    );
    let again = ada.does("converge-edge", &converge).ends(0);
    assert!(again["detail"].as_str().unwrap().starts_with("nothing has changed: "), "{again}");
    let none = bob.does("complete-iteration", &iteration(&of, 2));
    none.ends(2);
    assert!(none.stderr.contains("the cache has no claim of bob on shop/"), "{}", none.stderr);
    eve.pulls();
    let expected = [
        "project_initialized",
        "feature_created",
        "feature_created",
        "edge_started",
        "claim_rejected",
        "iteration_completed",
        "convergence_escalated",
    ];
    assert_eq!(eve.types(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_old_cache_adds_is_corrected_by_the_answers() {
    let world = World::start().await;
    let eve = world.multi();
    eve.creates("PAY");
    let ada = world.agent("ada");
    ada.pulls();
    let add = |feature: &str, on: &str| {
        let data = json!({ "feature": self::feature(feature), "on": self::feature(on) });
        ada.does("add-dependency", &data)
    };
    add("AUTH", "SEARCH").ends(0);
    // The cache does not know of the dependency above.
    world.requests();
    add("PAY", "AUTH").ends(0);
    assert_eq!(world.requests(), ["add-dependency", "add-dependency"]);
    let waits = ada.runs(&["claim", &edge("PAY", "design_code")]).ends(1);
    assert_eq!(
        (&waits["code"], &waits["features"]),
        (&json!("WaitsFor"), &json!([feature("AUTH")]))
    );
    assert_eq!(world.requests(), ["claim-edge", "claim-edge"]);
    // Values that a person gave are not corrected.
    let data = json!({ "edge": edge("PAY", "design_code"), "claim": "c1", "after": [] });
    let differ = ada.does("claim-edge", &data).ends(1);
    assert_eq!(differ["code"], "DependenciesDiffer");
    assert_eq!(world.requests(), ["claim-edge"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_whose_claim_was_taken_back_learns_that_it_is_stale() {
    let world = World::start().await;
    let eve = world.multi();
    let ada = world.agent("ada");
    let of = edge("AUTH", "design_code");
    ada.runs(&["claim", &of]).ends(0);
    ada.pulls();
    eve.does("force-release", &json!({ "edge": of, "reason": "gone" })).ends(0);
    let stale = |done: &Ran| assert_eq!(done.ends(1)["code"], "StaleClaim", "{}", done.stderr);
    // The index that shows who took it over can't be read, or shows that she has no claim any more.
    let data = iteration(&of, 1).to_string();
    let done = ada.runs_on_other_index(&["do", "complete-iteration", "--data", &data]);
    stale(&done);
    assert!(done.stderr.contains("warning: IndexChanged"), "{}", done.stderr);
    stale(&ada.does("complete-iteration", &iteration(&of, 1)));
    assert_eq!(ada.types().last().unwrap(), "edge_released");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_command_lines_say_what_to_write() {
    let world = World::start().await;
    let ada = world.agent("ada");
    for (arguments, expected) in [
        (&["pull"][..], "error: .ringfence has no project: name one with --project\n"),
        (&["do", "claim-edges", "--data", "{}"], "a similar value exists: 'claim-edge'"),
        (&["do", "claim-edge", "--data", "[]"], "error: --data: must be a JSON object"),
        (&["claim", "shop/REQ-F-AUTH-001"], "must be an edge of a feature"),
    ] {
        let ran = ada.runs(arguments);
        ran.ends(2);
        assert!(ran.stderr.contains(expected), "{arguments:?}: {}", ran.stderr);
    }
}

/// Asks for the help of each call in a text: a flag that does not exist is refused. Returns how many calls there are.
fn check_calls(agent: &Agent<'_>, text: &str) -> usize {
    let calls = text.lines().filter_map(|line| line.trim().strip_prefix("ringfence project "));
    calls.fold(0, |found, call| {
        let call = call.split('#').next().unwrap().trim_end_matches([' ', '\\']);
        let words: Vec<_> = call.split_whitespace().chain(["--help"]).collect();
        let ran = agent.runs(&words);
        assert_eq!(ran.status, 0, "{call}: {}", ran.stderr);
        found + 1
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_shows_an_example_and_every_call_in_the_page_has_flags_that_exist() {
    let world = World::start().await;
    let ada = world.agent("ada");
    for command in [
        "pull",
        "reconstruct",
        "compact",
        "do",
        "claim",
        "push",
        "import",
        "publish",
        "status",
        "ready",
        "claims",
        "trace",
        "zoom",
        "log",
    ] {
        let help = ada.runs(&[command, "--help"]).stdout;
        assert!(help.contains(&format!("  ringfence project {command}")), "{command}: {help}");
        check_calls(&ada, &help);
    }
    let page = fs::read_to_string(stack_root().join("README.md")).unwrap();
    let found = check_calls(&ada, &page);
    assert!(found > 5, "finds {found} calls");
}
