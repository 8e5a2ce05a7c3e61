//! The oracle's rules for claims.

use futures::executor::block_on;
use projects::Projects;
use projects::facts::{claim_expired, iterated, released, started};
use ringfence_core::{Append, Context, Envelope, EventLog, MemoryLog, NewEvent, events};
use ringfence_oracle::claims::check;

#[test]
fn claims_that_overlap_or_work_after_their_end_are_noticed() {
    let check = |given: Vec<NewEvent>| {
        let log = MemoryLog::new(Projects::catalog().expect("free of contradictions"));
        for event in given {
            let envelope = Envelope::default();
            let append =
                Append { events: vec![event], seen: None, record: None, envelope: &envelope };
            block_on(log.append(append)).expect("appended");
        }
        check(&log.events().into_iter().map(|event| (event.id(), event)).collect())
    };
    let (one, two) = (|| started("ada", "c1", 1), || started("bob", "c2", 2));
    let fine = events![one(), iterated("c1", 1, 1), claim_expired("ada", "c1", 1), two()];
    assert_eq!(check(fine), Ok(()));
    for wrong in [
        // Two claims hold the edge.
        events![one(), two()],
        // The number begins again.
        events![one(), released("ada", "c1"), started("bob", "c2", 1)],
        events![two()],
        events![one(), claim_expired("ada", "c1", 1), released("ada", "c1")],
        // Work under a claim that is over, or under another one.
        events![one(), released("ada", "c1"), iterated("c1", 1, 1)],
        events![one(), claim_expired("ada", "c1", 1), two(), iterated("c1", 1, 1)],
        events![one(), iterated("c2", 1, 1)],
        events![one(), released("ada", "c1"), released("ada", "c1")],
    ] {
        assert!(check(wrong.clone()).is_err(), "{wrong:?}");
    }
}
