//! The index takes every event that the log takes; otherwise a stored event might never be in it.

use ringfence_aws::Retry;
use ringfence_core::{
    Append, Appended, BOUNDARY_BYTES_MAX, BoundaryId, Envelope, EventLog, NewEvent, Tag,
};
use ringfence_feed::{IndexError, Partition};
use serde_json::{Value, json};

use crate::world::{INDEX, World, changed, run};

async fn is_taken(world: &World, event: &NewEvent) -> bool {
    let (events, envelope) = (vec![event.clone()], Envelope::default());
    let append = Append { events, seen: None, record: None, envelope: &envelope };
    matches!(world.log.append(append).await, Ok(Appended::Committed(_)))
}

fn nested(levels: usize) -> Value {
    (1..levels).fold(json!(1), |inner, _| json!([inner]))
}

#[test]
fn the_longest_partition_is_indexed() {
    run(1, async {
        let world = World::new();
        let thing = |bytes: usize| {
            let tags = vec![Tag::new("thingId", "x".repeat(bytes - "thingId:".len()))];
            NewEvent { tags, ..changed(1, "x") }
        };
        assert!(!is_taken(&world, &thing(BOUNDARY_BYTES_MAX + 1)).await);
        assert!(is_taken(&world, &thing(BOUNDARY_BYTES_MAX)).await);
        world.index_all(INDEX).await;
        assert_eq!(world.check(INDEX).await.len(), 1);
        // Another program may write to an aggregate with a longer name.
        let name = |bytes: usize| {
            Partition::from(BoundaryId::stored(format!(
                "things#{}",
                "x".repeat(bytes - "things#".len())
            )))
        };
        let (longest, longer) = (name(BOUNDARY_BYTES_MAX), name(BOUNDARY_BYTES_MAX + 1));
        let indexer = world.indexer(world.client.clone(), INDEX);
        let outcomes = indexer.index([longest.clone(), longer.clone()], Retry::default()).await;
        assert_eq!(outcomes[&longest].as_ref().ok(), Some(&0), "{outcomes:?}");
        assert!(matches!(outcomes[&longer], Err(IndexError::Name { .. })), "{outcomes:?}");
    });
}

#[test]
fn the_deepest_payload_is_indexed() {
    run(2, async {
        let world = World::new();
        let deep = |levels| NewEvent { data: nested(levels), ..changed(1, "x") };
        let mut levels = 40;
        while !is_taken(&world, &deep(levels)).await {
            levels -= 1;
        }
        assert!(levels > 20, "the log takes {levels} levels");
        world.index_all(INDEX).await;
        assert_eq!(world.check(INDEX).await.len(), 1);
    });
}
