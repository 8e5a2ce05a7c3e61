//! Compares random histories with a list: reads return every written event, for any writer and any Tip.

use ringfence_aws::Random;
use ringfence_core::Envelope;
use ringfence_document_log::{Direction, MemoryStore, TipLimits};
use ringfence_harness::bound;

use crate::contract::{append, read, written};
use crate::stack::{in_process, log, name};
use ringfence_document_log::Store;

async fn history<S: Store + Clone>(store: S, seed: u64) {
    let mut random = Random::new(&[seed]);
    let usize_below = |random: &mut Random, end| usize::try_from(random.below(end)).expect("small");
    let mut version = 0;
    let mut first = 0;
    let mut tip = None;
    for step in 0..random.below(40) + 1 {
        let limits = TipLimits {
            events_max: random.chance(50).then(|| usize_below(&mut random, 6)),
            event_bytes_max: usize_below(&mut random, 1_500),
            bytes_max: usize_below(&mut random, 3_000),
        };
        let log = log(store.clone()).with_limits(limits);
        let added = random.below(4) + 1;
        let before = tip.clone();
        tip = Some(written(append(&log, tip.as_ref(), version..version + added).await));
        version += added;
        if random.chance(20) {
            let stale = append(&log, before.as_ref(), version..version + 1).await;
            let conflict = matches!(stale, ringfence_document_log::StreamAppended::Conflict(_));
            assert!(conflict, "seed {seed}, step {step}: a stale append");
        }
        let envelope = Envelope::default();
        if random.chance(10) {
            let pruned = log.prune(&name("a"), random.below(version + 1), &envelope).await;
            let pruned = pruned.unwrap_or_else(|e| panic!("seed {seed}, step {step}: {e:?}"));
            assert!(pruned.first >= first, "seed {seed}, step {step}");
            first = pruned.first;
            let strong = ringfence_core::Consistency::Strong;
            tip = log.tip(&name("a"), strong, &envelope).await.expect("an answer");
        }
        let from = first + random.below(version - first + 1);
        let to = from + random.below(version + 3 - from);
        let expected: Vec<u64> = (from..to.min(version)).collect();
        let found = read(&log, from..to, Direction::Forward).await;
        assert_eq!(found.expect("whole"), expected, "seed {seed}, step {step}: {from}..{to}");
        let mut found = read(&log, from..to, Direction::Backward).await.expect("whole");
        found.reverse();
        assert_eq!(found, expected, "seed {seed}, step {step}: {from}..{to} backward");
        let report = log.verify(&name("a"), &envelope).await.expect("an answer");
        assert_eq!(report.problems, [], "seed {seed}, step {step}");
        assert_eq!((report.first, report.version), (first, version), "seed {seed}, step {step}");
    }
}

#[tokio::test]
async fn written_events_are_read_again_in_memory() {
    for seed in 0..bound(40, 150) {
        history(MemoryStore::default(), seed).await;
    }
}

#[tokio::test]
async fn written_events_are_read_again_on_dynamodb() {
    for seed in 0..bound(3, 6) {
        history(in_process().0, seed).await;
    }
}
