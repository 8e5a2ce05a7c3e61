//! A boundary is newly declared for events that exist, and repaired beside writers.

use ringfence_aws::Clock;
use ringfence_core::events;
use ringfence_harness::bound;

use crate::reads::{catalog, noted, plan, seen};
use crate::repair::{REQUESTS_MAX, stepped_repair, strong_events};
use crate::stack::{NOW_MS, Stack, append, committed, envelope};
use crate::verify::{READER, before, decide, verify};

/// Two notes of the reader `r` in different books, which no fence of the reader counts.
async fn older_notes() -> Stack {
    let stack = Stack::start(catalog()).await;
    for (hours, book_id) in [(4, "b"), (2, "c")] {
        let clock = Clock::fixed(NOW_MS - hours * 3_600_000);
        let old = stack.log_of(&before::catalog(), &clock);
        let [book_id, reader_id, note] = [book_id, "r", "old"].map(str::to_owned);
        let note = before::Noted { book_id, reader_id, note };
        committed(append(&old, events![note], &envelope()).await);
    }
    stack
}

/// Writers append a note of the reader before some requests of a repair. Their clocks lag by `hours`. Returns how
/// many requests the repair made.
async fn repair_beside(slots: [usize; 2], hours: u64) -> usize {
    let stack = older_notes().await;
    let at = format!("writers before requests {slots:?}, {hours} hours behind");
    let writers = slots.map(|_| stack.log_at(&Clock::fixed(NOW_MS - hours * 3_600_000)));
    let write = async |request: usize, _: &str| {
        for (n, writer) in writers.iter().enumerate().filter(|(n, _)| slots[*n] == request) {
            let note = noted(&format!("new-{n}"), "r", "new");
            committed(append(writer, events![note], &envelope()).await);
        }
    };
    let (report, requests) = stepped_repair(&stack, &write).await;
    assert!(report.in_order(), "{at}: {report:?}");
    for request in requests..REQUESTS_MAX {
        write(request, "").await;
    }
    stack.check_fences().await;
    assert!(verify(&stack).await.in_order(), "{at}");
    // A decision on all notes of the reader can commit. A decision that misses the oldest one can't.
    let plan = plan(&stack, &[&[("readerId", "r")]]);
    let events = strong_events(&stack.log(), &plan).await;
    let fewer = decide(&stack, READER, &seen(&plan, &events[1..])).await;
    assert!(fewer.is_err(), "{at}: {fewer:?}");
    decide(&stack, READER, &seen(&plan, &events)).await.unwrap_or_else(|e| panic!("{at}: {e:?}"));
    requests
}

#[tokio::test]
async fn a_repair_beside_writers_counts_every_older_event_of_a_new_boundary() {
    // The writers' times lie below, between and above the times of the older events.
    for hours in [5, 3, 1] {
        let requests = repair_beside([REQUESTS_MAX; 2], hours).await;
        for slot in (0..=requests + 3).step_by(bound(3, 1)) {
            repair_beside([slot, REQUESTS_MAX], hours).await;
        }
    }
    for first in (0..14).step_by(bound(2, 1)) {
        for second in (first..14).step_by(bound(6, 1)) {
            repair_beside([first, second], 1).await;
        }
    }
}
