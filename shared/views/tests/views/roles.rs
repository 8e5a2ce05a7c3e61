//! What project-views and query-views ask of DynamoDB, and what the roles of their functions allow.

use std::collections::BTreeSet;

use ringfence_dynamo::wire::Exchange;
use ringfence_local::template::{Template, excess};
use ringfence_views::query_views::answer;
use serde_json::json;

use crate::notes::{catalog, noted, sized, view, wiped};
use crate::world::{FIRST, LONG, World};

/// Compares what a function has asked with its role.
#[track_caller]
fn check(asked: Vec<Exchange>, function: &str) {
    let template = Template::of_workspace().expect("template.yaml");
    let tables = [("IndexTable", "index"), ("ViewTable", "views")];
    let role = template.role(function, &tables).expect("the function's role");
    let allowed = asked.iter().map(|asked| role.allow(&asked.operation, &asked.request));
    let needed = allowed.flat_map(|allowed| allowed.unwrap_or_else(|refused| panic!("{refused}")));
    let needed = needed.collect();
    assert_eq!(excess(&[(role, needed)]), BTreeSet::new());
}

#[tokio::test(start_paused = true)]
async fn the_role_of_project_views_allows_what_its_rounds_ask_and_no_more() {
    let world = World::new(1, catalog());
    let rows: Vec<String> = (0..150).map(|n| format!("r{n}")).collect();
    let too_large = sized("n1", vec!["a".to_owned()], 400_000);
    let rounds = [
        noted("n1", &["a", "b"]),
        wiped("n1", &["b", "unknown"]),
        sized("n2", rows, 0), // more rows than a transaction holds
        too_large,            // parks the row
        noted("n1", &["a"]),  // leaves it parked
        noted("n1", &[]),     // moves the checkpoint alone
    ];
    let mut asked = Vec::new();
    for event in rounds {
        world.publish([event]).await;
        let _ = world.wire.take();
        let round =
            ringfence_views::project_views::ring(&world.projector(), &[view()], LONG, &world.clock)
                .await;
        assert_eq!(round.unfinished, Vec::<String>::new());
        asked.extend(world.wire.take());
    }
    check(asked, "project-views");
}

#[tokio::test(start_paused = true)]
async fn the_role_of_query_views_allows_what_its_answers_ask_and_no_more() {
    let world = World::new(2, catalog());
    world.publish([noted("n1", &["a", "b"])]).await;
    world.run(&view(), FIRST).await.unwrap();
    let event = world.publish([noted("n1", &["a"])]).await.remove(0);
    let _ = world.wire.take();
    let wait = json!({
        "view": "notes", "id": "a", "wait": 1,
        "partition": event.partition.to_string(), "position": event.position,
    });
    for question in [json!({ "view": "notes", "id": "a" }), json!({ "view": "notes" }), wait] {
        let answered = answer(&world.reader(), &question, "request-1", LONG).await;
        assert_ne!(answered.outcome, "malformed", "{:?}", answered.answer);
    }
    check(world.wire.take(), "query-views");
}
