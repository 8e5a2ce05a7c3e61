//! Notes on what is due.

use std::time::Duration;

use ringfence_aws::wire::Fault;
use ringfence_views::{DueNote, DueReader};
use tokio::time::sleep;

use crate::notes::{catalog, view};
use crate::world::World;

#[tokio::test(start_paused = true)]
async fn a_note_that_is_written_or_removed_late_takes_the_place_of_no_newer_one() {
    let world = World::new(1, catalog());
    let (due, reader) = (view(), DueReader::new(world.client.clone(), "views"));
    let late = Duration::from_secs(20);
    let note = |tries| DueNote {
        cause: "orderId:o/1".to_owned(),
        tries,
        next_ms: u64::from(tries),
        why: "no".to_owned(),
    };
    let [first, second, third] = [1, 2, 3].map(note);
    world.wire.inject("PutItem", 0, Fault::Stray(late));
    reader.note(&due, "o", None, &first).await.unwrap();
    reader.note(&due, "o", Some(&first), &second).await.unwrap();
    sleep(2 * late).await;
    assert_eq!(reader.notes(&due).await.unwrap()["o"], second);
    world.wire.inject("DeleteItem", 0, Fault::Stray(late));
    reader.forget(&due, "o", &second).await.unwrap();
    assert_eq!(reader.notes(&due).await.unwrap().len(), 0);
    reader.note(&due, "o", None, &third).await.unwrap();
    sleep(2 * late).await;
    assert_eq!(reader.notes(&due).await.unwrap()["o"], third);
    assert!(world.wire.is_spent());
}
