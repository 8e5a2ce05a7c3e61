//! Several views, while the stream delivers anything and projectors crash: each equals its rebuild and
//! a plain fold of the index.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{join, join3};
use ringfence_aws::{Random, Retry};
use ringfence_core::{BoundaryId, NewEvent, Reads, SequencedEvent};
use ringfence_harness::bound;
use ringfence_views::project_views::run_views;
use ringfence_views::{Definition, Generation, Projector, View};
use serde_json::Value;

use crate::limits::Toggled;
use crate::notes::{Consumed, Notes, Row, catalog, noted, wiped};
use crate::rounds::Others;
use crate::weather::Weather;
use crate::world::World;

/// Batches of the stream in a run.
const BATCHES: u64 = 5;
/// Records in a batch: 2,500 deliveries in a run.
const RECORDS: usize = 500;
/// Events in a run.
const EVENTS: u64 = 50;

/// How often each note was noted and wiped: one row for each note, which is never deleted.
struct Counts;

impl View for Counts {
    const NAME: &'static str = "counts";
    type Reads = Consumed;
    type Row = (u64, u64);

    fn rows(event: &Consumed) -> Vec<String> {
        let (Consumed::Noted { note_id, .. } | Consumed::Wiped { note_id, .. }) = event;
        vec![note_id.to_string()]
    }

    fn evolve(row: Option<Self::Row>, _id: &str, event: &Consumed) -> Option<Self::Row> {
        let (noted, wiped) = row.unwrap_or_default();
        Some(match event {
            Consumed::Noted { .. } => (noted + 1, wiped),
            Consumed::Wiped { .. } => (noted, wiped + 1),
        })
    }
}

/// The notes in their order: one row, which every event touches.
struct Journal;

impl View for Journal {
    const NAME: &'static str = "journal";
    type Reads = Consumed;
    type Row = Vec<String>;

    fn rows(_: &Consumed) -> Vec<String> {
        vec!["all".to_owned()]
    }

    fn evolve(row: Option<Vec<String>>, _id: &str, event: &Consumed) -> Option<Vec<String>> {
        let mut lines = row.unwrap_or_default();
        lines.push(match event {
            Consumed::Noted { note_id, rows, .. } => format!("{note_id} in {rows:?}"),
            Consumed::Wiped { note_id, rows } => format!("{note_id} from {rows:?}"),
        });
        Some(lines)
    }
}

/// An event that is folded twice, or onto nothing, makes other rows.
struct Switched;

impl View for Switched {
    const NAME: &'static str = "switched";
    type Reads = Consumed;
    type Row = Row;

    fn rows(event: &Consumed) -> Vec<String> {
        Toggled::rows(event)
    }

    fn evolve(row: Option<Row>, id: &str, event: &Consumed) -> Option<Row> {
        match event {
            Consumed::Noted { .. } => Toggled::evolve(row, id, event),
            Consumed::Wiped { .. } => row,
        }
    }
}

/// Most events touch no row of the last one.
fn views() -> [Definition; 5] {
    let [mut notes, counts] = [Definition::of::<Notes>(), Definition::of::<Counts>()];
    let [journal, others] = [Definition::of::<Journal>(), Definition::of::<Others>()];
    let mut switched = Definition::of::<Switched>();
    (notes.shards, switched.shards) = (2, 3);
    [notes, counts, journal, others, switched]
}

fn event(random: &mut Random) -> NewEvent {
    let note = format!("n{}", random.below(6));
    let rows: Vec<&str> = ["a", "b", "c"].into_iter().filter(|_| random.chance(50)).collect();
    if random.chance(25) { wiped(&note, &rows) } else { noted(&note, &rows) }
}

/// The rows by a plain fold.
fn fold<V: View>(events: &[SequencedEvent]) -> BTreeMap<String, Value> {
    let mut rows: BTreeMap<String, V::Row> = BTreeMap::new();
    for event in events.iter().filter(|event| V::Reads::TYPES.contains(&&*event.event_type)) {
        let event = V::Reads::decode(&catalog().unwrap().current(event).unwrap()).unwrap();
        for id in V::rows(&event).into_iter().collect::<BTreeSet<_>>() {
            let row = V::evolve(rows.remove(&id), &id, &event);
            rows.extend(row.map(|row| (id, row)));
        }
    }
    rows.into_iter().map(|(id, row)| (id, serde_json::to_value(row).unwrap())).collect()
}

/// One invocation of a process, until it is done or cut off.
async fn project(world: &World, projector: &Projector, crash_ms: u64, wait_ms: u64) {
    tokio::time::sleep(Duration::from_millis(wait_ms)).await;
    let (until, time) = (world.notification(), Duration::from_secs(60));
    let views = views();
    let round = run_views(projector, &views, until, time, &world.clock, "r-1");
    let _ = tokio::time::timeout(Duration::from_millis(crash_ms), round).await;
}

async fn run(seed: u64) {
    let world = World::new(seed, catalog());
    let weather = Arc::new(Weather::new(seed, [0, 5, 15, 25][(seed % 4) as usize]));
    let mut random = Random::new(&[seed, 2]);
    world.direct(&weather);
    let processes = [world.projector(), world.projector()];
    let mut appended: Vec<BoundaryId> = Vec::new();
    for _ in 0..BATCHES {
        for _ in 0..EVENTS / BATCHES {
            appended.push(world.append(vec![event(&mut random)]).await[0].partition.clone());
        }
        let mut delivered = || {
            let mut any = || usize::try_from(random.below(appended.len() as u64)).unwrap();
            (0..RECORDS / 2).map(|_| appended[any()].clone()).collect::<Vec<_>>()
        };
        let (one, two) = (delivered(), delivered());
        let mut ms = |most| random.below(most);
        let index = async |partitions, crash_ms| {
            let index = world.indexer.index(partitions, Retry::default());
            let _ = tokio::time::timeout(Duration::from_millis(crash_ms), index).await;
        };
        let indexers = join(index(one, ms(400)), index(two, ms(400)));
        let (crash_ms, wait_ms) = ([ms(300), ms(300)], [ms(100), ms(100)]);
        let projectors = [0, 1].map(|n| project(&world, &processes[n], crash_ms[n], wait_ms[n]));
        let [first, second] = projectors;
        join3(indexers, first, second).await;
        let next = event(&mut random);
        appended.push(world.append(vec![next]).await[0].partition.clone());
    }
    weather.calm();
    world.indexer.index(appended.clone(), Retry::default()).await;
    let events = world.events().await;
    assert_eq!(events.len(), appended.len(), "seed {seed}: events of the index");
    project(&world, &processes[0], 60_000, 0).await;
    // Puts that were given up have arrived.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let [notes, counts] = [fold::<Notes>(&events), fold::<Counts>(&events)];
    let [journal, others] = [fold::<Journal>(&events), fold::<Others>(&events)];
    let folds = [notes, counts, journal, others, fold::<Switched>(&events)];
    assert_eq!(world.checkpoints().together().await.unwrap().readers.len(), 5, "seed {seed}");
    for (view, fold) in views().iter().zip(&folds) {
        let context = format!("seed {seed}, {}", view.name);
        let (first, mut other) = (Generation::first(view), *view);
        other.shards = 4 - view.shards;
        assert_eq!(world.rows(view.name, first).await, *fold, "{context}: against a plain fold");
        let live = world.projector().rebuild(&other, &|_| {}).await.unwrap();
        assert_eq!((live.number, live.shards), (2, other.shards), "{context}");
        assert_eq!(world.rows(view.name, live).await, *fold, "{context}: against its rebuild");
        assert!(world.rows(view.name, first).await.is_empty(), "{context}: old rows");
    }
}

#[tokio::test(start_paused = true)]
async fn each_view_equals_its_rebuild_after_any_deliveries() {
    // After 100,000 deliveries in `cargo proof`.
    for seed in 0..bound(4, 40) {
        run(seed).await;
    }
}
