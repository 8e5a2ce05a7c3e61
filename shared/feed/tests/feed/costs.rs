//! Exact requests and units of an indexed event and of a replayed one.
//!
//! The item of an event has just less than 1,024 bytes, as it counts for the price of an append.

use futures::StreamExt;
use ringfence_aws::{Retry, attribute_bytes, item_bytes};
use ringfence_core::NewEvent;
use ringfence_feed::{Checkpoint, Notification, Until};

use crate::world::{EVENTS, INDEX, World, changed, partition, record, run};

/// The cost of an index run: requests, read units of the log and of the index, write units.
#[derive(Debug, PartialEq)]
struct Cost {
    requests: u32,
    read: f64,
    write: f64,
}

/// Makes an event of almost 1,024 bytes.
const NOTE_BYTES: usize = 865;

fn event(thing: u64) -> NewEvent {
    changed(thing, &"x".repeat(NOTE_BYTES))
}

/// Whether the indexer has put the last page, and whether records show it the events.
#[derive(Clone, Copy, PartialEq)]
enum With {
    EndAndRecords,
    Records,
    End,
}

/// Appends, one event a transaction, and indexes what was appended.
async fn cost(things: impl Iterator<Item = u64>, with: With) -> (Cost, World) {
    let world = World::new();
    // No partition is new.
    for thing in 0..97 {
        world.append(vec![event(thing)]).await;
    }
    world.index_all(INDEX).await;
    let (indexer, meter) = world.metered(world.client.clone(), INDEX);
    if with != With::Records {
        let other = world.append(vec![event(97)]).await.remove(0);
        indexer.index([other.partition], Retry::default()).await;
    }
    let mut notifications: Vec<Notification> = Vec::new();
    for thing in things {
        let event = world.append(vec![event(thing)]).await.remove(0);
        notifications.push(match with {
            With::End => event.partition.into(),
            With::EndAndRecords | With::Records => record(&world, &event).await,
        });
    }
    for event in world.items(EVENTS).await.iter().filter(|item| item.contains_key("event")) {
        assert!((1_000..=1_024).contains(&item_bytes(event)), "{} bytes", item_bytes(event));
    }
    let before = [meter.snapshot(), indexer.meter().snapshot()];
    let outcomes = indexer.index(notifications, Retry::default()).await;
    assert!(outcomes.values().all(Result::is_ok), "{outcomes:?}");
    let log = meter.snapshot().since(&before[0]);
    let index = indexer.meter().snapshot().since(&before[1]);
    let (read, write) = (log.total().read + index.total().read, index.total().write);
    let requests = log.reads + log.writes + index.reads + index.writes;
    (Cost { requests, read, write }, world)
}

#[test]
fn an_event_alone() {
    run(0, async {
        let (cost, _) = cost([1].into_iter(), With::EndAndRecords).await;
        // The progress is read: 1. The page: 1; the progress: 1.
        assert_eq!(cost, Cost { requests: 3, read: 1.0, write: 2.0 });
    });
}

#[test]
fn an_event_alone_that_no_record_shows() {
    run(1, async {
        let (cost, _) = cost([1].into_iter(), With::End).await;
        // And the partition: 1.
        assert_eq!(cost, Cost { requests: 4, read: 2.0, write: 2.0 });
    });
}

#[test]
fn an_event_alone_when_the_end_is_not_known() {
    run(2, async {
        let (cost, _) = cost([1].into_iter(), With::Records).await;
        // The last page has 97 entries: 2.
        assert_eq!(cost, Cost { requests: 4, read: 2.0 + 1.0, write: 2.0 });
    });
}

#[test]
fn a_hundred_events_of_one_partition() {
    run(3, async {
        let (cost, world) = cost([1; 100].into_iter(), With::EndAndRecords).await;
        // 0.01 and 0.07 an event: the page takes 1 for each of its KB.
        assert_eq!(cost, Cost { requests: 3, read: 1.0, write: 7.0 });
        let mut pages = world.items(INDEX).await;
        pages.retain(|page| page.get("n").is_some_and(|n| n.as_n().is_ok_and(|n| n == "198")));
        let [page] = &pages[..] else { panic!("{} pages", pages.len()) };
        // The partition and the type of each have 17 bytes, and the rest of an entry has 35.
        assert_eq!(attribute_bytes(&page["e"]), 5_194);
    });
}

#[test]
fn events_of_ninety_seven_partitions() {
    run(4, async {
        let (cost, _) = cost(0..97, With::EndAndRecords).await;
        // 1 and 1.06 an event: each partition has its progress.
        assert_eq!(cost, Cost { requests: 2 + 97, read: 97.0, write: 103.0 });
    });
}

#[test]
fn what_is_indexed_already_costs_its_progress() {
    run(5, async {
        let (_, world) = cost([1].into_iter(), With::EndAndRecords).await;
        let notifications = world.records(&partition(&event(1)).into()).await;
        let (indexer, meter) = world.metered(world.client.clone(), INDEX);
        indexer.index(notifications.clone(), Retry::default()).await;
        let before = indexer.meter().snapshot();
        indexer.index(notifications, Retry::default()).await;
        let (log, index) = (meter.snapshot(), indexer.meter().snapshot());
        let index = index.since(&before);
        assert_eq!((log.reads, index.reads, index.writes), (0, 1, 0));
        assert_eq!(index.total().read, 1.0);
    });
}

/// Another indexer has put three pages, two of them with 240 entries.
#[test]
fn a_lost_race_for_one_event_costs_no_more_than_the_last_page_and_two_progresses() {
    run(7, async {
        let world = World::new();
        let indexer = world.indexer(world.client.clone(), INDEX);
        let first = world.append(vec![event(0)]).await.remove(0);
        indexer.index([first.partition], Retry::default()).await;
        let other = world.indexer(world.client.clone(), INDEX);
        for appends in [6, 6, 1] {
            for _ in 0..appends {
                world.append(vec![event(1); 40]).await;
            }
            other.index([partition(&event(1))], Retry::default()).await;
        }
        let next = world.append(vec![event(0)]).await.remove(0);
        let notification = record(&world, &next).await;
        let before = indexer.meter().snapshot();
        let outcomes = indexer.index([notification], Retry::default()).await;
        assert!(outcomes.values().all(Result::is_ok), "{outcomes:?}");
        let index = indexer.meter().snapshot().since(&before);
        // Before the put the event's progress: 1. After it the last page: 1, that progress and the page's: 2. The page
        // before it would be 4.
        assert_eq!((index.reads, index.total().read), (3, 1.0 + 1.0 + 2.0));
        assert_eq!(world.check(INDEX).await.len(), 522);
    });
}

#[test]
fn a_replayed_event() {
    run(6, async {
        let world = World::new();
        for _ in 0..25 {
            world.append(vec![event(1); 40]).await;
        }
        world.index_all(INDEX).await;
        let index = world.index(world.client.clone());
        assert_eq!(index.read(Checkpoint::START, Until::Present).count().await, 1_000);
        let usage = index.meter().snapshot();
        // A replica's answer with all of 52 KB, and two with nothing: a replica's and a strong one.
        assert_eq!((usage.reads, usage.total().read), (3, 6.5 + 0.5 + 1.0));
        // The end is not looked for behind the page that a notification has named.
        let pages = world.items(INDEX).await.into_iter().filter(|item| item.contains_key("n"));
        let last = pages.map(|page| page["i"].as_n().unwrap().parse::<i64>().unwrap()).max();
        let until = Until::Past(last.unwrap().try_into().unwrap());
        assert_eq!(index.read(Checkpoint::START, until).count().await, 1_000);
        let past = index.meter().snapshot().since(&usage);
        assert_eq!((past.reads, past.total().read), (1, 6.5));
        // The events: ten queries for a hundred events each, which follow one another.
        let all = index.usage().since(&index.meter().snapshot());
        assert_eq!((all.reads, all.total().read), (2 * 10, 2.0 * 129.5));
    });
}
