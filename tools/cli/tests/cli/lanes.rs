//! `ringfence parked lanes`, `retry-lane` and `skip-lane`, and `ringfence replay reactor`.

use std::time::Duration;

use ringfence_aws::Clock;
use ringfence_feed::Index;
use ringfence_programs::shop::AskSupplier;
use ringfence_reactors::{Lanes, Outside, ReactorTable};
use serde_json::json;

use crate::console::Console;
use crate::world::{INDEX, VIEWS, World};

const REACTOR: &str = "ask-supplier";
const DESK: &str = "productId:desk";

/// Runs the reactor, and returns the number of its effects.
pub(crate) async fn run(world: &World, is_refused: bool) -> u64 {
    let handler = Outside::new(AskSupplier { is_refused }).unwrap();
    let (client, clock) = (world.client.clone(), Clock::system());
    let index = Index::new(client.clone(), INDEX, world.bodies());
    let lanes = Lanes { handler, index, table: ReactorTable::new(client, VIEWS, clock) };
    lanes.run(Duration::from_secs(60)).await.unwrap().effects
}

#[tokio::test(flavor = "multi_thread")]
async fn parked_lanes_are_shown_retried_and_skipped_and_a_reactor_is_sent_back() {
    let world = World::start().await;
    assert_eq!(world.run(&["parked", "lanes"]), (0, "0 parked, 0 waiting\n".to_owned()));
    for (product, order) in [("lamp", "o1"), ("lamp", "o2"), ("desk", "o1")] {
        world.indexed_demand(product, order).await;
    }
    assert_eq!(run(&world, true).await, 0);
    let shown = |next: [&str; 2]| {
        let line = |lane, event, product, next| {
            format!(
                "{REACTOR} {lane}: event {event}: {product} is sold out\\u000afor ever; tries: 1; {next}\n"
            )
        };
        let desk = line(DESK, format!("{DESK}/1"), "desk", next[0]);
        let lamp = line("productId:lamp", "productId:lamp/1".to_owned(), "lamp", next[1]);
        (1, format!("{desk}{lamp}2 parked, 0 waiting\n"))
    };
    let waits = "it waits for a person";
    assert_eq!(world.run(&["parked", "lanes"]), shown([waits, waits]));
    let (_, lanes) = world.json(&["parked", "lanes", REACTOR]);
    assert_eq!(
        (&lanes["lanes"][0]["lane"], &lanes["lanes"][0]["next"]),
        (&json!(DESK), &json!(null))
    );

    let (status, verdict) = world.json(&["status"]);
    let found = &verdict["findings"][0];
    assert_eq!((status, &found["what"], &found["count"]), (1, &json!("lane"), &json!(2)));
    assert_eq!(found["text"], json!("2 lanes are parked in ask-supplier"));
    assert!(found["cause"].as_str().unwrap().contains("sold out"), "{found}");

    let console = Console::start(&world, &["--write"]).await;
    let page = console.page("/lanes").await;
    for shown in [
        "2 lanes are parked",
        "aria-label=\"Retry lane productId:desk of ask-supplier\"",
        "<span class=\"dot wrong\" aria-hidden=\"true\"></span>is parked</span>",
        "href=\"/events/productId%3Adesk/1\">productId:desk/1</a>",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    let skip = "/lanes/ask%2Dsupplier/skip?lane=productId%3Adesk&event=productId%3Adesk%2F1";
    assert!(page.contains(&skip.replace('&', "&amp;")), "{page}");
    let asks = console.page(skip).await;
    assert!(asks.contains("Skip the event productId:desk/1</button>"), "{asks}");
    assert!(asks.contains(" and 1 read units"), "{asks}");
    assert_eq!(console.refused(&format!("{skip}0")).await.0, 404, "the lane has no such event");

    let replay = ["replay", "reactor", REACTOR, "--from", "start"];
    let why = ["--why", "it is in the store"];
    for (arguments, error) in [
        (&replay[..], "ask-supplier has parked lanes; retry or skip them first"),
        (
            &["parked", "retry-lane", REACTOR, "productId:desk/2"],
            "no lane of ask-supplier waits for event productId:desk/2",
        ),
        (&["parked", "lanes", "ask"], "there is no reactor ask: the reactors are ask-supplier"),
        (&["parked", "skip-lane", REACTOR, "productId:lamp/1"], "--why"),
        (&["parked", "skip-lane", REACTOR, "productId:lamp/1", "--why", " "], "why: say in 1 to"),
        (&["parked", "retry-lane", REACTOR], "<EVENT>"),
        (
            &[&replay[..], &["--again", "all"]].concat(),
            "give the name of the reactor, ask-supplier",
        ),
    ] {
        let said = world.error(arguments);
        assert!(said.contains(error), "{arguments:?}: {said}");
    }
    let nothing = (0, String::new());
    let skip_lane = [&["parked", "skip-lane", REACTOR, "productId:lamp/1"], &why[..]].concat();
    assert_eq!(world.run(&skip_lane), nothing);
    // Its retry is already requested.
    assert_eq!(world.run(&["parked", "retry-lane", REACTOR, "--all"]), nothing);
    let asked = ["a person has asked to retry it", "a person has asked to skip the event"];
    assert_eq!(world.run(&["parked", "lanes"]), shown(asked));
    assert_eq!(world.json(&["status"]).0, 0, "a person has decided");
    assert_eq!(run(&world, false).await, 2, "the first event of the lamp is skipped");
    assert_eq!(world.run(&["parked", "lanes"]), (0, "0 parked, 0 waiting\n".to_owned()));
    // A person has an old page of the console.
    assert_eq!(console.refused(skip).await.0, 404, "the lane has moved on");
    let long = "x".repeat(1_025);
    for why in ["", " ", &long] {
        let fields = [("lane", DESK), ("event", "productId:desk/1"), ("ask", "skip"), ("why", why)];
        let refused = console.post(&format!("/lanes/{REACTOR}"), &fields).await;
        assert_eq!(refused.status(), 400);
        assert!(refused.text().await.unwrap().contains("why: say in 1 to 1024 bytes"));
    }
    let fields = [("lane", DESK), ("event", "productId:desk/1"), ("ask", "Retry")];
    let refused = console.post(&format!("/lanes/{REACTOR}"), &fields).await;
    assert!(refused.text().await.unwrap().contains("ask: write retry or skip."));
    let fields = [("lane", DESK), ("event", "productId:desk/1"), ("ask", "retry")];
    let moved = console.post(&format!("/lanes/{REACTOR}"), &fields).await;
    assert_eq!(moved.status(), 409);
    let page = moved.text().await.unwrap();
    assert!(page.contains("lane productId:desk has moved on"), "{page}");
    assert!(page.contains("aria-current=\"page\"") && page.contains("no lane is parked"), "{page}");

    assert_eq!(world.run(&replay), nothing);
    assert_eq!(run(&world, false).await, 0, "everything is done");
    assert_eq!(world.run(&[&replay[..], &["--again", REACTOR]].concat()), nothing);
    assert_eq!(run(&world, false).await, 3);
}
