//! What the indexer asks of DynamoDB, and what the role of its function allows.

use std::collections::BTreeSet;

use ringfence_dynamo::Retry;
use ringfence_dynamo::wire::Wire;
use ringfence_feed::Partition;
use ringfence_local::template::{Template, excess};

use crate::streams::{AGGREGATES, DOCUMENTS, append, push};
use crate::world::{EVENTS, INDEX, World, linked, run};

#[test]
fn the_role_of_index_events_allows_what_its_indexer_asks_and_no_more() {
    let tables = [
        ("EventTable", EVENTS),
        ("AggregateTable", AGGREGATES),
        ("DocumentTable", DOCUMENTS),
        ("IndexTable", INDEX),
    ];
    let template = Template::of_workspace().expect("template.yaml");
    let role = template.role("index-events", &tables).expect("the function's role");
    run(0, async {
        let world = World::new();
        let wire = Wire::default();
        let indexer = world.indexer(world.wired(&wire), INDEX);
        // Partitions that are new, and then are not; of a document's new events some are in a calf by then.
        for appends in [1, 3] {
            let linked = world.append(vec![linked(1, 1), linked(2, 1)]).await;
            let mut partitions: Vec<Partition> = linked.iter().map(Partition::of).collect();
            partitions.extend(push(&world.aggregates, &[1], 3).await);
            for _ in 0..appends {
                partitions.push(append(&world.documents, 1, 50, &"x".repeat(1_000)).await);
            }
            for (partition, outcome) in indexer.index(partitions, Retry::default()).await {
                outcome.unwrap_or_else(|error| panic!("{partition}: {error:?}"));
            }
        }
        let asked = wire.take().into_iter();
        let allowed = asked.map(|asked| role.allow(&asked.operation, &asked.request));
        let needed =
            allowed.flat_map(|allowed| allowed.unwrap_or_else(|refused| panic!("{refused}")));
        let needed = needed.collect();
        assert_eq!(excess(&[(role, needed)]), BTreeSet::new());
    });
}
