//! The lease on the end of the index is only a hint. A wrong lease does the index no harm.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use futures::future::{join, join_all};
use ringfence_aws::wire::{Fault, Wire};
use ringfence_aws::{Item, Random, Retry};
use ringfence_core::{NewEvent, Tag};
use ringfence_feed::{Indexer, Partition};
use tokio::time::{sleep, timeout};

use crate::world::{INDEX, World, changed, partition, record, run};

fn of(n: u64) -> Partition {
    partition(&changed(n, "x")).into()
}

fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

fn number(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// Writes the lease.
async fn put_lease<const N: usize>(world: &World, says: [(&str, AttributeValue); N]) {
    let mut lease = Item::from([("p".to_owned(), text("$Lease-0")), ("i".to_owned(), number(0))]);
    lease.extend(says.map(|(name, value)| (name.to_owned(), value)));
    let put = world.client.put_item().table_name(INDEX).set_item(Some(lease));
    put.send().await.expect("someone writes the lease");
}

/// Writes anything into the lease: an end near the index's end, and any place as the one before which all is settled.
pub(crate) async fn spoil(world: &World, random: &mut Random) {
    let until = number(world.clock.now_ms() + random.below(3_000));
    let index = world.index(world.client.clone());
    let end = index.end().await.map(i64::from).expect("an end").unsigned_abs();
    let mut near = || number((end + random.below(7)).saturating_sub(3));
    let says = [("end", near()), ("s", near())];
    put_lease(
        world,
        [("owner", text("another")), ("until", until), says[0].clone(), says[1].clone()],
    )
    .await;
}

/// Indexers that take the lease, because they were in each other's way, and two events in the index by each. Their
/// partition has so long a name that each of their pages costs more than the lease.
async fn crowd_of<const N: usize>(world: &World, clients: [Client; N]) -> [Indexer; N] {
    let indexers = clients.map(|client| world.indexer(client, INDEX));
    for indexer in indexers.iter().chain(&indexers) {
        let tags = vec![Tag::new("thingId", "x".repeat(2_000))];
        let event = world.append(vec![NewEvent { tags, ..changed(0, "x") }]).await.remove(0);
        indexer.index([event.partition], Retry::default()).await;
    }
    assert_eq!(world.check(INDEX).await.len(), 2 * N);
    indexers
}

/// Two of them.
async fn crowd(world: &World, wire: &Wire) -> [Indexer; 2] {
    crowd_of(world, [world.wired(wire), world.client.clone()]).await
}

#[test]
fn a_lease_only_says_where_to_read() {
    let said = |end: u64, s: u64| [("end", number(end)), ("s", number(s))];
    let leases = [
        // Beyond the end.
        said(1_000, 1_000),
        said(1_000_000, 1_000_000),
        // The ends of pages: an old one, and the last one, which is not settled.
        said(3, 3),
        said(8, 8),
        said(8, 4),
        // In a page, and before it.
        said(6, 5),
        said(7, 1),
        said(9, 0),
        [("end", text("soon")), ("s", text("x"))],
    ];
    for lease in leases {
        run(1, async {
            let world = World::new();
            let [indexer, _] = crowd(&world, &Wire::default()).await;
            let page = [1, 2, 1, 3].map(|n| changed(n, "x")).to_vec();
            world.append(page).await;
            // The page is put, and two of its partitions do not move.
            let wire = Wire::default();
            wire.inject("UpdateItem", 1, Fault::error("AccessDeniedException"));
            wire.inject("UpdateItem", 2, Fault::error("AccessDeniedException"));
            let other = world.indexer(world.wired(&wire), INDEX);
            other.index([of(1), of(2), of(3)], Retry::default()).await;
            put_lease(&world, lease.clone()).await;
            world.append(vec![changed(1, "y"), changed(2, "y"), changed(3, "y")]).await;
            let outcomes = indexer.index([of(1), of(2), of(3)], Retry::default()).await;
            assert!(outcomes.values().all(Result::is_ok), "{lease:?}: {outcomes:?}");
            assert_eq!(world.check(INDEX).await.len(), 11, "{lease:?}");
        });
    }
}

/// A page of more than five partitions, so its settling is announced.
#[test]
fn the_lease_lists_a_page_only_after_it_is_settled() {
    run(6, async {
        let (world, wire) = (World::new(), Wire::default());
        let [indexer, _] = crowd(&world, &wire).await;
        let index = async |note| {
            world.append((1..=8).map(|n| changed(n, note)).collect()).await;
            indexer.index((1..=8).map(of), Retry::default()).await;
            let lease = world.client.get_item().table_name(INDEX).key("p", text("$Lease-0"));
            let lease = lease.key("i", number(0)).send().await.expect("an answer").item;
            lease.expect("a lease").remove("settled")
        };
        // One of its moves, after the lease is taken and given back.
        wire.inject("UpdateItem", 4, Fault::error("AccessDeniedException"));
        assert_eq!(index("x").await, None);
        assert!(wire.is_spent());
        // The first page too, once its partitions have moved.
        let settled = ["12", "20"].map(str::to_owned).to_vec();
        assert_eq!(index("y").await, Some(AttributeValue::Ns(settled)));
        world.check(INDEX).await;
    });
}

/// The holder of the lease gives it back before its page is settled, and the next one puts its own page meanwhile.
#[test]
fn a_lease_is_given_back_before_the_page_is_settled() {
    run(5, async {
        let (world, wire) = (World::new(), Wire::default());
        let [indexer, other] = crowd(&world, &wire).await;
        let events = world.append((1..=8).map(|n| changed(n, "x")).collect()).await;
        let mut records = Vec::new();
        for event in &events {
            records.push(record(&world, event).await);
        }
        wire.forget();
        // After the lease is taken and given back.
        for update in 2..10 {
            wire.inject("UpdateItem", update, Fault::Delay(Duration::from_secs(60)));
        }
        let first = indexer.index(records.clone(), Retry::default());
        let second = async {
            sleep(Duration::from_secs(1)).await;
            let event = world.append(vec![changed(1, "y")]).await.remove(0);
            // The first records come again too, before the first indexer is done with them.
            records.push(record(&world, &event).await);
            let outcomes = other.index(records, Retry::default()).await;
            assert_eq!(outcomes[&of(1)].as_ref().ok(), Some(&1), "{outcomes:?}");
            for event in events.iter().chain([&event]) {
                let index = world.index(world.client.clone());
                let known = index.indexed(&event.partition, event.slot).await;
                assert!(known.expect("a progress").is_some(), "{}", event.id());
            }
            world.clock.now_ms()
        };
        let (outcomes, second_ms) = futures::join!(first, second);
        assert!(wire.is_spent() && outcomes.values().all(Result::is_ok), "{outcomes:?}");
        assert!(world.clock.now_ms() > second_ms + 50_000, "it waited for the first one");
        assert_eq!(world.check(INDEX).await.len(), 4 + 9);
    });
}

/// Eight pages are not settled: their indexers are slow, or gone, or have never asked for the lease.
#[test]
fn an_indexer_leaves_a_page_to_the_one_that_settles_it_unless_that_is_gone() {
    for (is_gone, is_leased) in [(false, true), (true, true), (false, false)] {
        run(7, async {
            let (world, wires) = (World::new(), [(); 9].map(|()| Wire::default()));
            let indexers = crowd_of(&world, wires.each_ref().map(|wire| world.wired(wire))).await;
            let page = |n: u64| (8 * n..8 * n + 8).map(of);
            let owner = async |n: u64, indexer: &Indexer, wire: &Wire| {
                sleep(Duration::from_millis(n)).await;
                let fresh = world.indexer(world.wired(wire), INDEX);
                let indexer = if is_leased { indexer } else { &fresh };
                wire.forget();
                // After the lease is taken and given back.
                for update in 0..8 {
                    let update = update + if is_leased { 2 } else { 0 };
                    wire.inject("UpdateItem", update, Fault::Delay(Duration::from_secs(1)));
                }
                let time = Duration::from_millis(if is_gone { 10 } else { 2_000 });
                drop(timeout(time, indexer.index(page(n), Retry::default())).await);
            };
            for n in 1..=9 {
                world.append((8 * n..8 * n + 8).map(|n| changed(n, "x")).collect()).await;
            }
            let ([owners @ .., next], [wires @ .., _]) = (&indexers, &wires);
            let owners = (1..).zip(owners).zip(wires).map(|((n, it), wire)| owner(n, it, wire));
            let next = async {
                sleep(Duration::from_millis(500)).await;
                let (now_ms, before) = (world.clock.now_ms(), next.meter().snapshot());
                let outcomes = next.index(page(9), Retry::default()).await;
                assert!(outcomes.values().all(|it| it.as_ref().ok() == Some(&1)), "{outcomes:?}");
                let used = next.meter().snapshot().since(&before).total();
                (world.clock.now_ms() - now_ms, used.read)
            };
            let (_, (waited_ms, read)) = join(join_all(owners), next).await;
            // The last eight pages, and the progress of its partitions; and of those of the first page.
            let (most, least_ms, most_ms) = match (is_gone, is_leased) {
                (false, true) => (1.0 + 8.0, 500, 720),
                (true, _) => (1.0 + 8.0 + 8.0, 1_000, 3_000),
                // And its first put is refused, because the lease does not know these pages.
                (false, false) => (1.0 + 8.0 + 8.0 + 1.0 + 8.0, 0, 10),
            };
            assert_eq!(read, most);
            assert!((least_ms..=most_ms).contains(&waited_ms), "{waited_ms} ms");
            world.index_all(INDEX).await;
            assert_eq!(world.check(INDEX).await.len(), 18 + 72);
        });
    }
}

/// A holder that is gone, one whose clock is an hour ahead, and one that is never done.
#[test]
fn nobody_holds_up_an_indexer_for_long() {
    let wait = |until_ms: u64, time_ms: Option<u64>| {
        run(2, async move {
            let world = World::new();
            let [indexer, _] = crowd(&world, &Wire::default()).await;
            world.append(vec![changed(1, "x")]).await;
            let now_ms = world.clock.now_ms();
            put_lease(&world, [("owner", text("another")), ("until", number(now_ms + until_ms))])
                .await;
            let retry = Retry::default();
            let retry = time_ms.map_or(retry, |ms| retry.within(Duration::from_millis(ms)));
            let outcomes = indexer.index([of(1)], retry).await;
            assert!(outcomes.values().all(Result::is_ok), "{outcomes:?}");
            assert_eq!(world.check(INDEX).await.len(), 5);
            world.clock.now_ms() - now_ms
        })
    };
    let gone_ms = wait(2_000, None);
    assert!((2_000..=2_400).contains(&gone_ms), "{gone_ms} ms");
    let ahead_ms = wait(3_600_000, None);
    assert_eq!(ahead_ms, 0);
    let busy_ms = wait(3_900, Some(1_000));
    assert!((500..1_000).contains(&busy_ms), "{busy_ms} ms");
}

#[test]
fn a_turn_of_several_pages_keeps_the_lease() {
    run(4, async {
        let (mut world, wire) = (World::new(), Wire::default());
        world.epoch_entries = 1;
        let [indexer, _] = crowd(&world, &wire).await;
        for _ in 0..3 {
            world.append(vec![changed(1, "x")]).await;
        }
        for page in 0..3 {
            wire.inject("PutItem", page, Fault::Delay(Duration::from_millis(1_200)));
        }
        let until = async {
            sleep(Duration::from_millis(2_900)).await;
            let lease = world.client.get_item().table_name(INDEX).key("p", text("$Lease-0"));
            let lease = lease.key("i", number(0)).send().await.expect("an answer").item;
            lease.expect("a lease")["until"].as_n().expect("a number").parse::<u64>()
        };
        let (outcomes, until) = futures::join!(indexer.index([of(1)], Retry::default()), until);
        assert!(wire.is_spent() && outcomes.values().all(Result::is_ok), "{outcomes:?}");
        assert!(until.expect("a time") > world.clock.now_ms(), "it is over before the last page");
    });
}

/// An indexer that is alone, or puts small pages, never takes the lease: see `costs` and `shards`.
#[test]
fn a_turn_costs_two_writes_and_a_look_at_the_pages_of_others() {
    run(3, async {
        let world = World::new();
        let wire = Wire::default();
        let [indexer, other] = crowd(&world, &wire).await;
        let next = async |indexer: &Indexer| {
            let event = world.append(vec![changed(1, "x")]).await.remove(0);
            let notification = record(&world, &event).await;
            wire.forget();
            let before = indexer.meter().snapshot();
            let outcomes = indexer.index([notification], Retry::default()).await;
            assert!(outcomes.values().all(Result::is_ok), "{outcomes:?}");
            let used = indexer.meter().snapshot().since(&before).total();
            let sent = wire.take().into_iter().map(|exchange| exchange.operation);
            (sent.collect::<Vec<_>>().join(" "), (used.read, used.write))
        };
        let turn = next(&indexer).await;
        let put = "BatchGetItem PutItem UpdateItem UpdateItem";
        // The end in the lease is another one's. Its page is read, for 1, the progress that tells whether that is
        // settled, for 1, and the progress of the event, for 1. Lease, page, progress and lease are written, for 4.
        assert_eq!(turn, (format!("UpdateItem Query {put}"), (3.0, 4.0)));
        // The end in the lease is its own.
        assert_eq!(next(&indexer).await, (format!("UpdateItem {put}"), (1.0, 4.0)));
        next(&other).await;
        // The other one's page is of the same partition.
        assert_eq!(next(&indexer).await, (turn.0, (2.0, 4.0)));
        world.check(INDEX).await;
    });
}
