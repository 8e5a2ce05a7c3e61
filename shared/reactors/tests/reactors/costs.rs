//! The cost of reactors, in units of DynamoDB.

use ringfence_reactors::BATCH_EVENTS_MAX;

use crate::world::{LONG, World, asked};

/// The units of a run, read and written, of the index, of the events and of the reactor's items.
async fn units<const PARKS: bool>(world: &World) -> (f64, f64) {
    let lanes = world.function::<PARKS>(&world.clock);
    let before = [lanes.index.usage(), lanes.table.meter().snapshot()];
    lanes.run(LONG).await.unwrap();
    let after = [lanes.index.usage(), lanes.table.meter().snapshot()];
    let used = after.iter().zip(&before).map(|(after, before)| after.since(before));
    used.fold((0.0, 0.0), |(read, written), used| {
        (read + used.tables.read, written + used.tables.write)
    })
}

#[tokio::test(start_paused = true)]
async fn an_effect_costs_one_write_unit_or_two_and_a_run_some_more() {
    let world = World::new(1);
    world.run().await.unwrap();
    // An idle run reads the checkpoint, the end of the index, and the parked lanes.
    assert_eq!(units::<false>(&world).await, (3.5, 0.0));
    let events = u32::try_from(BATCH_EVENTS_MAX).unwrap();
    let lanes = 10_u32;
    let publish = async || {
        world.publish((0..events).map(|n| asked(&format!("o{}", n % lanes), 1))).await;
    };
    publish().await;
    let (_, written) = units::<false>(&world).await;
    // The lease is taken and given back, and the checkpoint moves once for the batch.
    assert!((written - f64::from(3 + events)).abs() < 0.1, "{written}");
    publish().await;
    let (_, written) = units::<true>(&world).await;
    assert!((written - f64::from(3 + 2 * events)).abs() < 0.1, "{written}");
}
