//! Events of a copy of the log go back into their places.

use ringfence::{BoundaryId, FilingError, LogError, NewEvent, SequencedEvent, Tag};
use ringfence_dcb_log::Imported;

use crate::reads::{catalog, noted, plan, read};
use crate::stack::{Stack, envelope};

#[tokio::test]
async fn an_event_of_a_copy_goes_back_into_its_own_place() {
    let (stack, copy) = (Stack::start(catalog()).await, Stack::start(catalog()).await);
    let log = stack.log();
    let mut events = Vec::new();
    for note in ["one", "two"] {
        let event = NewEvent::from(noted("b", "r", note));
        let Imported::Now(event) = log.import(note, event, &envelope()).await.expect("an import")
        else {
            panic!("it is there")
        };
        events.push(event);
    }
    let (first, second) = (events[0].clone(), events[1].clone());
    let restored = copy.log();
    restored.restorable(first.clone()).expect("it can");
    assert_eq!(restored.restore(first.clone()).await.expect("it is put"), first);
    // A later version and metadata stay, although the catalog knows no later version.
    let second = SequencedEvent { version: 3, ..second };
    assert_eq!(restored.restore(second.clone()).await.expect("it is put"), second);
    let read = read(&copy, &plan(&copy, &[&[("readerId", "r")]])).await.expect("a read");
    assert_eq!(
        read.iter().map(SequencedEvent::id).collect::<Vec<_>>(),
        ["bookId:b/1", "bookId:b/2"]
    );
    // Its slot is taken.
    let again = restored.restore(first.clone()).await;
    assert!(matches!(again, Err(LogError::Conflict(_))), "{again:?}");
    // The fence of its reader has a later event, so it gets a later time.
    let other = SequencedEvent { partition: BoundaryId::tag("bookId", "c"), ..first.clone() };
    let tags = vec![Tag::new("bookId", "c"), Tag::new("readerId", "r")];
    let late = restored.restore(SequencedEvent { tags, ..other.clone() }).await.expect("it is put");
    assert_eq!((late.slot, late.at), (1, second.at + 1));
    for misplaced in [other, SequencedEvent { slot: 0, ..first }] {
        let refused = restored.restorable(misplaced);
        assert!(
            matches!(refused, Err(LogError::Filing(FilingError::Misplaced { .. }))),
            "{refused:?}"
        );
    }
    copy.check_fences().await;
}
