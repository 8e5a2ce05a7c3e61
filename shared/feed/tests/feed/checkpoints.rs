//! The checkpoints of named readers.

use std::time::Duration;

use futures::future::join;
use ringfence_aws::wire::{Fault, Wire};
use ringfence_feed::{Checkpoint, Checkpoints, FeedError};
use tokio::time::sleep;

use crate::world::{VIEWS, World, run};

fn at(n: i64) -> Checkpoint {
    Checkpoint::try_from(n).expect("not negative")
}

#[test]
fn a_reader_moves_only_from_where_it_is() {
    run(0, async {
        let checkpoints = Checkpoints::new(World::new().client.clone(), VIEWS);
        assert_eq!(checkpoints.load("a#1").await.expect("none"), None);
        checkpoints.advance("a#1", None, at(3)).await.expect("the first");
        checkpoints.advance("a#1", Some(at(3)), at(7)).await.expect("the second");
        let moved = checkpoints.advance("a#1", Some(at(3)), at(9)).await.expect_err("it has moved");
        let (expected, found) = (Some(at(3)), Some(at(7)));
        assert!(
            matches!(&moved, FeedError::Moved { reader, expected: e, found: f }
                if reader == "a#1" && (*e, *f) == (expected, found)),
            "{moved:?}"
        );
        assert!(checkpoints.advance("a#1", None, at(9)).await.is_err());
        let same = checkpoints.advance("a#1", Some(at(3)), at(7)).await;
        assert!(same.is_err(), "it was another run that moved it there");
        checkpoints.set("a#1", at(1)).await.expect("an operator may");
        assert_eq!(checkpoints.load("a#1").await.expect("one"), Some(at(1)));
        assert_eq!(checkpoints.load("a#2").await.expect("another reader"), None);
    });
}

#[test]
fn a_lost_answer_is_not_taken_for_a_move_of_another_reader() {
    run(1, async {
        let wire = Wire::default();
        let world = World::new();
        let checkpoints = Checkpoints::new(world.wired(&wire), VIEWS);
        wire.inject("UpdateItem", 0, Fault::LostAfter);
        checkpoints.advance("a", None, at(3)).await.expect("it was ours");
        wire.inject("UpdateItem", 0, Fault::LostBefore);
        checkpoints.advance("a", Some(at(3)), at(4)).await.expect("it is sent again");
        assert!(wire.is_spent());
        assert_eq!(checkpoints.load("a").await.expect("one"), Some(at(4)));
    });
}

#[test]
fn an_operators_move_that_is_sent_late_or_again_moves_nothing() {
    run(3, async {
        let wire = Wire::default();
        let world = World::new();
        let checkpoints = Checkpoints::new(world.wired(&wire), VIEWS);
        let late = Duration::from_secs(20);
        checkpoints.advance("a", None, at(5)).await.expect("the first");
        wire.inject("UpdateItem", 0, Fault::Stray(late));
        checkpoints.set("a", at(3)).await.expect("it is sent again");
        // The reader comes to the same place once more, at another time.
        std::thread::sleep(Duration::from_millis(2));
        checkpoints.advance("a", at(3), at(5)).await.expect("it goes on");
        sleep(2 * late).await;
        assert_eq!(checkpoints.load("a").await.expect("one"), Some(at(5)));
        // It goes on before the move is sent again.
        wire.inject("UpdateItem", 0, Fault::LostAfter);
        let (set, moved) =
            join(checkpoints.set("a", at(3)), checkpoints.advance("a", at(3), at(4))).await;
        moved.expect("it was there");
        assert!(matches!(set, Err(FeedError::Moved { .. })), "{set:?}");
        assert_eq!(checkpoints.load("a").await.expect("one"), Some(at(4)));
        // A move by another one in between is no reason to give up.
        wire.inject("GetItem", 0, Fault::Late(late));
        let meanwhile = async {
            sleep(late / 2).await;
            checkpoints.advance("a", at(4), at(6)).await
        };
        let (set, moved) = join(checkpoints.set("a", at(2)), meanwhile).await;
        set.and(moved).expect("both");
        assert_eq!(checkpoints.load("a").await.expect("one"), Some(at(2)));
        assert!(wire.is_spent());
    });
}

#[test]
fn a_checkpoint_moves_with_what_its_reader_writes_or_not_at_all() {
    run(2, async {
        let world = World::new();
        let checkpoints = Checkpoints::new(world.client.clone(), VIEWS);
        let send = async |from, to| {
            let action = checkpoints.action("a", from, to);
            world.client.transact_write_items().transact_items(action).send().await
        };
        send(None, at(5)).await.expect("the first");
        assert!(send(None, at(6)).await.is_err());
        send(Some(at(5)), at(6)).await.expect("the second");
        assert!(send(Some(at(5)), at(7)).await.is_err());
        assert_eq!(checkpoints.load("a").await.expect("one"), Some(at(6)));
    });
}
