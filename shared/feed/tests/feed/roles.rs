//! What the indexer asks of DynamoDB, and what the role of its function allows.

use ringfence_dynamo::Retry;
use ringfence_dynamo::wire::Wire;
use ringfence_feed::Partition;
use ringfence_local::template::Template;

use crate::streams::{AGGREGATES, DOCUMENTS, append, push};
use crate::world::{EVENTS, INDEX, World, linked, run};

#[test]
fn the_role_of_index_events_allows_what_its_indexer_asks() {
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
        // Partitions that are new, and then are not; a document's events are in calves too.
        for events in [1, 100] {
            let linked = world.append(vec![linked(1, 1), linked(2, 1)]).await;
            let mut partitions: Vec<Partition> = linked.iter().map(Partition::of).collect();
            partitions.extend(push(&world.aggregates, &[1], 3).await);
            partitions.push(append(&world.documents, 1, events, &"x".repeat(1_000)).await);
            for (partition, outcome) in indexer.index(partitions, Retry::default()).await {
                outcome.unwrap_or_else(|error| panic!("{partition}: {error:?}"));
            }
        }
        let asked = wire.take();
        assert!(asked.iter().any(|asked| asked.operation == "TransactWriteItems"));
        for asked in asked {
            let allowed = role.allow(&asked.operation, &asked.request);
            allowed.unwrap_or_else(|refused| panic!("{refused}"));
        }
    });
}
