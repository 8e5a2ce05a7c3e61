//! Views that move together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join;
use ringfence_aws::wire::{Director, Edit, Fault};
use ringfence_harness::bound;
use ringfence_views::project_views::Round;
use ringfence_views::{Definition, ViewRead};
use serde_json::{Value, json};

use crate::lanes::Bus;
use crate::notes::{Lenient, Notes, catalog, noted, poison, sized, view, wiped};
use crate::rounds::Others;
use crate::world::{FIRST, LONG, World, wait};

async fn round(world: &World, views: &[Definition]) -> Round {
    let round = world.round(&world.projector(), views).await;
    assert!(round.unfinished.is_empty(), "{round:?}");
    round
}

fn both() -> [Definition; 2] {
    [view(), Definition::of::<Others>()]
}

fn named(name: &'static str, mut view: Definition) -> Definition {
    view.name = name;
    view
}

/// The readers that move together.
async fn readers(world: &World) -> Vec<String> {
    world.checkpoints().together().await.unwrap().readers.into_iter().collect()
}

/// How often the rows of the notes were noted, by a plain fold.
pub(crate) async fn expected(world: &World) -> BTreeMap<String, u64> {
    let mut rows = BTreeMap::new();
    for event in world.events().await {
        Definition::of::<Notes>()
            .fold(&mut rows, &catalog().unwrap().current(event).unwrap())
            .unwrap();
    }
    rows.into_iter().map(|(id, row)| (id, row["count"].as_u64().unwrap())).collect()
}

#[tokio::test(start_paused = true)]
async fn nine_untouched_views_cost_three_read_units_one_write_unit_and_one_line() {
    let world = World::new(1, catalog());
    let names = ["v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8"];
    let quiet = |name| {
        let mut quiet = named(name, view());
        quiet.types = &["SomethingElse"];
        quiet
    };
    let mut views: Vec<_> = names.map(quiet).into();
    world.publish([noted("n1", &["a"])]).await;
    round(&world, &views).await;
    assert_eq!(readers(&world).await, names.map(|name| format!("{name}#1")));
    let cost = async |views: &[Definition]| {
        world.publish([noted("n1", &["a"])]).await;
        world.wire.forget();
        let line = round(&world, views).await.line.json;
        let mut units = world.units();
        units.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        (line, units)
    };
    let of = |units: &[(&str, f64)]| -> Vec<_> {
        units.iter().map(|(operation, units)| ((*operation).to_owned(), *units)).collect()
    };
    let (line, units) = cost(&views).await;
    let expected = [
        ("GetItem", 1.0),    // the views that move together
        ("Query", 0.5),      // the new page
        ("Query", 0.5),      // nothing more, by a replica
        ("Query", 1.0),      // nothing more, by a strong read
        ("UpdateItem", 1.0), // all of them move
    ];
    assert_eq!(units, of(&expected));
    let found = ["outcome", "events", "rows", "view_lag", "rows_parked"];
    let found: Vec<_> = found.iter().map(|name| line[name].clone()).collect();
    assert_eq!(json!(found), json!(["present", 1, 0, 0, 0]));
    assert!(line.to_string().len() < 400, "{line}");

    // For a view that is touched the event is read, its checkpoint and the row, and the row is written.
    views[3].types = view().types;
    let expected = [
        ("BatchGetItem", 0.5),
        ("BatchGetItem", 0.5),
        ("GetItem", 1.0),
        ("GetItem", 1.0),
        ("PutItem", 1.0),
        ("Query", 0.5),
        ("Query", 0.5),
        ("Query", 1.0),
        ("UpdateItem", 1.0),
    ];
    let (line, units) = cost(&views).await;
    assert_eq!(units, of(&expected));
    let touched = json!([{ "view": "v3", "rows": 1 }]);
    assert_eq!((&line["views"], &line["rows"]), (&touched, &json!(1)));
    // Without a new event, nothing is written.
    world.wire.forget();
    round(&world, &views).await;
    assert!(world.units().iter().all(|(operation, _)| operation != "UpdateItem"));
}

#[tokio::test(start_paused = true)]
async fn a_view_leaves_the_others_if_it_parks_or_is_rebuilt_and_joins_again() {
    let (world, lenient) = (World::new(2, catalog()), Definition::of::<Lenient>());
    let (projector, mended) = (world.projector(), [lenient, Definition::of::<Others>()]);
    world.publish([noted("n1", &["a"]), wiped("n1", &["b"])]).await;
    round(&world, &both()).await;
    assert_eq!(readers(&world).await, ["notes#1", "others#1"]);

    // A parked event is reported by each run, until the view can read it.
    world.publish([poison("n1")]).await;
    for _ in 0..2 {
        let line = round(&world, &both()).await.line.json;
        assert_eq!(
            (readers(&world).await, &line["rows_parked"]),
            (vec!["others#1".into()], &json!(1))
        );
        world.publish([wiped("n1", &["b"])]).await;
    }
    projector.retry(&lenient, &|_| {}).await.unwrap();
    round(&world, &mended).await;
    assert_eq!(readers(&world).await, ["notes#1", "others#1"]);

    // The served generation is kept current while another one is built.
    world.wire.inject("PutItem", 0, Fault::error("AccessDeniedException"));
    projector.rebuild(&lenient, &|_| {}).await.unwrap_err();
    assert_eq!(readers(&world).await, ["others#1"]);
    world.publish([noted("n1", &["a"])]).await;
    let line = round(&world, &mended).await.line.json;
    let generations: Vec<_> =
        line["views"].as_array().unwrap().iter().map(|it| &it["generation"]).collect();
    assert_eq!(json!(generations), json!([1]));
    let live = projector.rebuild(&lenient, &|_| {}).await.unwrap();
    round(&world, &mended).await;
    assert_eq!(readers(&world).await, [&format!("notes#{live}"), "others#1"]);

    // So is a parked row.
    world.publish([sized("n1", vec!["c".to_owned()], 400_000)]).await;
    let line = round(&world, &mended).await.line.json;
    assert_eq!((readers(&world).await, &line["rows_parked"]), (vec!["others#1".into()], &json!(1)));

    // A view that the program does not have leaves where it is, and goes on there if it comes back.
    let other = [named("more", Definition::of::<Others>())];
    world.publish([noted("n1", &["a"])]).await;
    round(&world, &[mended[1], other[0]]).await;
    let end = world.index.end().await.unwrap();
    round(&world, &other).await;
    assert_eq!(world.checkpoints().load("others#1").await.unwrap(), Some(end));
    assert_eq!(readers(&world).await, ["more#1"]);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_is_slow_delays_no_other_one() {
    let world = World::new(3, catalog());
    world.publish([noted("n1", &["a"]), wiped("n1", &["b"])]).await;
    round(&world, &both()).await;
    world.publish([noted("n1", &["a"])]).await;
    // Its rows, with the others and then alone.
    for put in [0, 1] {
        world.wire.inject("PutItem", put, Fault::Delay(Duration::from_secs(20)));
    }
    let (running, views) = (world.projector(), both());
    let running = world.round(&running, &views);
    let meanwhile = async {
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        assert_eq!(readers(&world).await, ["others#1"]);
        world.publish([wiped("n1", &["c"])]).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        world.rows("others", FIRST).await.len()
    };
    let (ended, rows) = join(running, meanwhile).await;
    assert_eq!((rows, ended.unfinished), (2, vec![]));
    let left = json!({ "notes": "its rows took longer than 1s" });
    assert_eq!(ended.line.json["left"], left);
    assert_eq!(world.counts(FIRST).await, expected(&world).await);
    // The others have passed it meanwhile.
    round(&world, &both()).await;
    assert_eq!(readers(&world).await, ["notes#1", "others#1"]);
}

/// Each goes on alone, and reads only the logs of its own events.
#[tokio::test(start_paused = true)]
async fn views_part_if_events_can_not_be_read_from_their_log() {
    let world = World::new(5, catalog());
    world.publish([noted("n1", &["a"]), wiped("n1", &["b"])]).await;
    round(&world, &both()).await;
    world.publish([noted("n2", &["a"]), wiped("n3", &["a"])]).await;
    world.wire.inject("BatchGetItem", 0, Fault::error("AccessDeniedException"));
    let round = world.round(&world.projector(), &both()).await;
    assert!(world.wire.is_spent() && round.unfinished.is_empty(), "{round:?}");
    let (left, why) = (&round.line.json["left"], "can't be read from their log");
    assert_eq!(left.to_string().matches(why).count(), 2);
    assert_eq!(world.counts(FIRST).await, expected(&world).await);
    assert_eq!(readers(&world).await, ["notes#1", "others#1"], "they have met again");
}

#[tokio::test(start_paused = true)]
async fn an_event_that_does_not_touch_a_view_is_waited_for_without_a_write_of_the_view() {
    let world = World::new(4, catalog());
    world.publish([noted("n1", &["a"]), wiped("n1", &["b"])]).await;
    round(&world, &both()).await;
    let event = world.publish([noted("n2", &["c"])]).await.remove(0);
    let others = Definition::of::<Others>();
    let reader = ringfence_views::ViewReader::new(
        world.client.clone(),
        world.index.clone(),
        "views",
        &[others],
    );
    let at = |number: i64| Some(number.try_into().unwrap());
    // While nobody runs the views, an answer about an event that the view does not read takes a second and a read.
    world.wire.forget();
    let began = tokio::time::Instant::now();
    let read = reader.row("others", "b", Some(&wait(&event, 10_000))).await.unwrap();
    assert!(matches!(read, ViewRead::Found(Some(_))), "{read:?}");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    let queries = world.units().into_iter().filter(|(operation, _)| operation == "Query");
    assert_eq!(queries.collect::<Vec<_>>(), [("Query".to_owned(), 1.0)]);
    let read = world.publish([wiped("n2", &["c"])]).await.remove(0);
    let behind = reader.row("others", "b", Some(&wait(&read, 10_000))).await.unwrap();
    assert_eq!(behind, ViewRead::Behind { until: at(4), at: at(2) });
    round(&world, &both()).await;
    let event = world.publish([noted("n2", &["c"])]).await.remove(0);
    round(&world, &both()).await;
    world.wire.forget();
    let ViewRead::Found(row) = reader.row("others", "b", Some(&wait(&event, 0))).await.unwrap()
    else {
        panic!("it is shown");
    };
    assert!(row.is_some());
    // Generation, where the event is, own checkpoint, that of all, row; then row and checkpoint as of a moment.
    let operations = world.units().into_iter().map(|(operation, _)| operation);
    assert_eq!(
        operations.collect::<Vec<_>>(),
        ["GetItem", "GetItem", "GetItem", "GetItem", "GetItem", "TransactGetItems"]
    );
    let standing = reader.standing(&["others"], at(6).unwrap()).await.unwrap();
    assert_eq!(standing[0].as_ref().map(|standing| standing.served), at(5));
    let all = world.checkpoints().readers().await.unwrap();
    assert!(all.len() == 2 && all.iter().all(|reader| Some(reader.checkpoint) == at(5)), "{all:?}");
}

/// Crashes before a request is sent, or before its answer arrives.
pub(crate) struct Crash {
    pub(crate) requests: AtomicUsize,
    pub(crate) at: usize,
    pub(crate) is_sent: bool,
    /// A mistake in the requests that move the views which move together.
    pub(crate) mutant: Option<Mutant>,
}

type Mutant = fn(&mut Value);

/// They move past one event more than was folded.
fn further(request: &mut Value) {
    let to = &mut request["ExpressionAttributeValues"][":to"]["N"];
    *to = (to.as_str().unwrap().parse::<u64>().unwrap() + 1).to_string().into();
}

/// They move whichever views there are by now.
fn unaware(request: &mut Value) {
    request["ConditionExpression"] = "#checkpoint = :from".into();
    request["ExpressionAttributeNames"].as_object_mut().unwrap().remove("#readers");
    request["ExpressionAttributeValues"].as_object_mut().unwrap().remove(":readers");
}

impl Director for Crash {
    fn faults(&self, operation: &str, request: &Value) -> Vec<Fault> {
        let n = self.requests.fetch_add(1, Ordering::Relaxed);
        let moves = operation == "UpdateItem" && request["Key"]["id"]["S"] == "TOGETHER";
        let crash = match self.is_sent {
            true => Fault::Late(2 * LONG),
            false => Fault::Delay(2 * LONG),
        };
        let mutant = self.mutant.filter(|_| moves).map(|edit| Fault::Request(Edit::new(edit)));
        mutant.into_iter().chain((n >= self.at).then_some(crash)).collect()
    }

    fn carried_out(&self, _operation: &str, _request: &Value, _status: u16) {}
}

/// A run crashes at a request; the next ones go on. Returns whether it crashed, whether all rows are right, and whether
/// all readers of lanes were notified.
async fn crashed(at: usize, is_sent: bool, mutant: Option<Mutant>) -> (bool, bool, bool) {
    let (world, bus) = (World::new(5, catalog()), Bus::default());
    let new = named("new", view());
    let views = [view(), Definition::of::<Others>(), new];
    world.publish([noted("n1", &["a"]), wiped("n1", &["b"])]).await;
    // Two views move together, and the third is new.
    round(&world, &both()).await;
    // The readers of lanes move with them, unless they are new too. Then a process remembers all of them.
    let warm = bus.projector(&world);
    if at.is_multiple_of(2) {
        bus.go_on(&warm, &world, &both()).await;
        bus.go_on(&warm, &world, &both()).await;
    }
    bus.take();
    world.publish([noted("n1", &["a"]), noted("n2", &["r1", "r2"]), wiped("n1", &["a"])]).await;
    let requests = AtomicUsize::new(0);
    world.direct(&Arc::new(Crash { requests, at, is_sent, mutant }));
    let crashed = tokio::time::timeout(LONG / 2, bus.round(&world, &views)).await.is_err();
    let requests = AtomicUsize::new(0);
    world.direct(&Arc::new(Crash { requests, at: usize::MAX, is_sent, mutant }));
    bus.go_on(&warm, &world, &views).await;
    let mut is_notified = bus.take() == ["of-noted", "of-wiped"];
    world.publish([wiped("n1", &["c"]), noted("n1", &["c"])]).await;
    bus.round(&world, &views).await;
    is_notified &= bus.take() == ["of-noted", "of-wiped"];
    let expected = expected(&world).await;
    let count = |rows: BTreeMap<String, Value>| -> BTreeMap<_, _> {
        rows.into_iter().map(|(id, row)| (id, row["count"].as_u64().unwrap())).collect()
    };
    let notes = [count(world.rows("notes", FIRST).await), count(world.rows("new", FIRST).await)];
    let others: BTreeSet<_> = world.rows("others", FIRST).await.into_keys().collect();
    let others = others == BTreeSet::from(["a", "b", "c"].map(str::to_owned));
    (crashed, others && notes == [expected.clone(), expected], is_notified)
}

#[tokio::test(start_paused = true)]
async fn no_event_is_lost_or_folded_twice_if_a_run_crashes_at_any_request() {
    // Every fifth request, and in `cargo proof` each.
    for (is_sent, first) in [(false, 0), (true, bound(2, 0))] {
        for at in (first..).step_by(bound(5, 1)) {
            let (crashes, is_right, is_notified) = crashed(at, is_sent, None).await;
            assert!(
                is_right && is_notified,
                "request {at}, sent: {is_sent}: {is_right} {is_notified}"
            );
            if !crashes {
                assert!(at > 20, "it has only {at} requests");
                break;
            }
        }
    }
    let (_, is_right, is_notified) = crashed(usize::MAX - 1, false, Some(further)).await;
    assert!(!is_right, "nobody notices a checkpoint past an event that is not folded");
    assert!(
        !is_notified,
        "nobody notices a checkpoint past an event whose readers are not notified"
    );
}

/// A run does not know a view that joins after it has looked. It may not move the view past the events that it reads.
#[tokio::test(start_paused = true)]
async fn a_view_that_joins_is_not_moved_by_a_run_that_does_not_know_it() {
    for mutant in [None, Some(unaware as Mutant)] {
        let (world, others) = (World::new(6, catalog()), [Definition::of::<Others>()]);
        world.publish([noted("n1", &["a"])]).await;
        round(&world, &others).await;
        let (ms, requests, at) = (Duration::from_millis, AtomicUsize::new(0), usize::MAX);
        world.direct(&Arc::new(Crash { requests, at, is_sent: false, mutant }));
        // The notes are folded, and join five seconds later, however often that is sent.
        (0..9).for_each(|n| world.wire.inject("TransactWriteItems", n, Fault::Stray(ms(5_000))));
        let (projector, both) = (world.projector(), both());
        let joining = world.round(&projector, &both);
        let moving = async {
            tokio::time::sleep(ms(4_950)).await;
            world.publish([noted("n1", &["a"])]).await;
            world.wire.inject("UpdateItem", 0, Fault::Delay(ms(100)));
            round(&world, &others).await;
        };
        join(joining, moving).await;
        round(&world, &both).await;
        let rows = world.counts(FIRST).await;
        assert_eq!(rows == expected(&world).await, mutant.is_none(), "{rows:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_join_that_arrives_late_takes_no_view_that_has_parked_or_is_rebuilt_by_now() {
    for parks in [true, false] {
        let (world, ms) = (World::new(7, catalog()), Duration::from_millis);
        world.publish([noted("n1", &["a"])]).await;
        round(&world, &[Definition::of::<Others>()]).await;
        (0..9).for_each(|n| world.wire.inject("TransactWriteItems", n, Fault::Stray(ms(5_000))));
        round(&world, &both()).await;
        let meanwhile = world.projector();
        if parks {
            world.publish([poison("n1")]).await;
            assert_eq!(world.run(&view(), FIRST).await.unwrap().unread.len(), 1);
        } else {
            world.wire.inject("PutItem", 0, Fault::error("AccessDeniedException"));
            meanwhile.rebuild(&view(), &|_| {}).await.unwrap_err();
        }
        assert!(meanwhile.register(&view()).await.unwrap().building.is_some() != parks);
        tokio::time::sleep(ms(10_000)).await;
        assert_eq!(readers(&world).await, ["others#1"], "parks: {parks}");
    }
}
