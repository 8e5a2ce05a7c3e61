//! Several agents at once.

use ringfence_harness::bound;
use serde_json::{Value, json};

use crate::world::{World, edge, feature, iteration};

const EDGES: [&str; 2] = ["design_code", "code_tests"];
const FEATURES: [&str; 4] = ["AUTH", "SEARCH", "PAY", "SHIP"];

/// The agents that take the next edge at once, each as a process.
const RACERS: [&str; 16] = [
    "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8",
];

#[tokio::test(flavor = "multi_thread")]
async fn each_edge_goes_to_one_of_sixteen_programs_that_take_the_next_one() {
    let count = bound(5, 30);
    let world = World::start().await;
    let eve = world.agent("eve");
    let edges: Vec<Value> = (0..count).map(|n| json!({ "edge": format!("part_{n}") })).collect();
    let config = json!({ "mode": "multi", "roles": { "iam:eve": "human" }, "edges": edges });
    eve.does("init-project", &json!({ "project": "shop", "config": config })).ends(0);
    for name in ["AUTH", "SEARCH"] {
        eve.creates(name);
    }
    let claims = |name: &'static str| {
        let agent = world.agent(name);
        let mut got = Vec::new();
        loop {
            let claimed = agent.runs(&["--project", "shop", "claim", "--next"]);
            let document: Value = serde_json::from_str(&claimed.stdout).unwrap();
            if claimed.status != 0 {
                assert_eq!(document["code"], "NothingReady", "{document}");
                return got;
            }
            got.push(document["edge"].as_str().unwrap().to_owned());
        }
    };
    let mut got: Vec<String> = std::thread::scope(|scope| {
        let racers: Vec<_> = RACERS.iter().map(|name| scope.spawn(|| claims(name))).collect();
        racers.into_iter().flat_map(|racer| racer.join().unwrap()).collect()
    });
    got.sort();
    let of = |name| (0..count).map(move |n| edge(name, &format!("part_{n}")));
    let mut all: Vec<_> = of("AUTH").chain(of("SEARCH")).collect();
    all.sort();
    assert_eq!(got, all);
    eve.pulls();
    let started = eve.types().iter().filter(|it| *it == "edge_started").count();
    assert_eq!(started, all.len());
}

/// Takes the next edge, does its work and ends it, until nothing is left.
fn works(world: &World, name: &'static str) {
    let agent = world.agent(name);
    loop {
        let claimed = agent.runs(&["--project", "shop", "claim", "--next"]);
        if claimed.status == 0 {
            let document: Value = serde_json::from_str(&claimed.stdout).unwrap();
            let of = document["edge"].as_str().unwrap();
            agent.does("complete-iteration", &iteration(of, 1)).ends(0);
            let converge = json!({ "edge": of, "convergence": "standard" });
            agent.does("converge-edge", &converge).ends(0);
        } else if agent.runs(&["status"]).ends(0)["status"] == "allDone" {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_that_take_what_is_next_do_each_edge_once_and_in_order() {
    let world = World::start().await;
    let eve = world.agent("eve");
    let agents = &["ada", "bob", "carl"][..bound(2, 3)];
    let roles = agents.iter().map(|name| (format!("iam:{name}"), "coder".to_owned()));
    let mut roles: std::collections::BTreeMap<_, _> = roles.collect();
    roles.insert("iam:eve".to_owned(), "human".to_owned());
    let config = json!({
        "mode": "multi", "roles": roles, "authority": { "coder": { "edges": EDGES } },
        "edges": [{ "edge": EDGES[0] }, { "edge": EDGES[1], "after": [EDGES[0]] }],
    });
    eve.does("init-project", &json!({ "project": "shop", "config": config })).ends(0);
    for name in FEATURES {
        eve.creates(name);
    }
    let on = json!({ "feature": feature("PAY"), "on": feature("AUTH") });
    eve.does("add-dependency", &on).ends(0);
    std::thread::scope(|scope| {
        for name in agents {
            let world = &world;
            scope.spawn(move || works(world, name));
        }
    });
    eve.pulls();
    let lines = eve.lines("events.jsonl");
    let places = |event_type: &str, of: &str| {
        let is_it = |line: &Value| line["event_type"] == event_type && line["data"]["edge"] == of;
        let places = lines.iter().enumerate().filter(|(_, line)| is_it(line));
        places.map(|(n, _)| n).collect::<Vec<_>>()
    };
    for of in FEATURES.iter().flat_map(|name| EDGES.map(|it| edge(name, it))) {
        for event_type in ["edge_started", "iteration_completed", "edge_converged"] {
            assert_eq!(places(event_type, &of).len(), 1, "{event_type} {of}");
        }
    }
    let [design, tests] = EDGES.map(|it| edge("AUTH", it));
    let converged = |of: &str| places("edge_converged", of)[0];
    assert!(converged(&design) < places("edge_started", &tests)[0]);
    assert!(converged(&tests) < places("edge_started", &edge("PAY", EDGES[0]))[0]);
}
