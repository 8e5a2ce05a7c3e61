//! Every state after four steps, and in `cargo proof` five: an edge is ready if a claim would get it, and rows follow
//! leases as slices do.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use projects::facts::{AUTH, created, multi};
use projects::views::Holding;
use projects::views::project_claims::ProjectClaims;
use projects::views::project_features::{EdgeRow, FeatureRow, ProjectFeatures};
use projects::{Edges, FeatureCreated, FeatureRows, OnExpiry, ProjectState, Rules, ready, status};
use ringfence_core::kit::id;
use ringfence_harness::bound;
use ringfence_views::{View, fold};

use crate::world::{Step, World, current};

fn rows<V: View>(world: &World) -> BTreeMap<String, V::Row> {
    let mut rows = BTreeMap::new();
    world.events.iter().for_each(|event| fold::<V>(&mut rows, &current(event)).unwrap());
    rows
}

/// Compares rows and decisions. Returns a description that tells the state from others.
fn check(world: &World) -> String {
    let features: FeatureRows = rows::<ProjectFeatures>(world);
    let claims = rows::<ProjectClaims>(world);
    let found: BTreeSet<_> = ready(&features, world.now_ms).into_iter().map(|it| it.edge).collect();
    let known = world.known::<Edges>();
    for edge in world.edges() {
        let expected = world.is_ready(&edge);
        assert_eq!(found.contains(&edge), expected, "{edge}: {:#?}", world.events);
        let (edge, row) = (known.edge(&edge), claims.get(&edge.to_string()));
        let holder = row.and_then(|row| row.holder.as_ref());
        let current = edge.current().map(|claim| (claim.epoch, edge.lease_until_ms()));
        let shown = holder.filter(|holder| !holder.expired);
        let until_ms = row.and_then(|row| row.lease.until_ms());
        assert_eq!(shown.map(|it| (it.epoch, until_ms)), current, "{:#?}", world.events);
        let overdue = row.and_then(|row| row.overdue(world.now_ms)).is_some();
        assert_eq!(overdue, edge.is_overdue(world.now_ms));
        assert_eq!(row.is_some_and(|row| row.lease.is_suspended()), edge.awaits_review());
    }
    let rows: (&FeatureRows, &BTreeMap<String, Holding>) = (&features, &claims);
    format!("{} {}", serde_json::to_string(&rows).unwrap(), world.now_ms)
}

/// The worlds that one more step leads to, each state once.
fn next(worlds: &[World], known: &mut BTreeSet<String>) -> Vec<World> {
    let mut found = Vec::new();
    for world in worlds {
        for step in Step::all() {
            let mut next = world.clone();
            if next.take(step) && known.insert(check(&next)) {
                found.push(next);
            }
        }
    }
    found
}

#[test]
fn an_edge_is_ready_if_a_claim_would_get_it_and_no_person_has_to_look() {
    // The rules are in the rows, so the two have no common state.
    let states = |on_expiry| {
        let mut states = BTreeSet::new();
        let mut worlds = vec![World::new(Rules { on_expiry, ..multi().rules() })];
        for _ in 0..bound(4, 5) {
            worlds = next(&worlds, &mut states);
        }
        states.len()
    };
    let states: usize = thread::scope(|scope| {
        let both = [OnExpiry::Takeable, OnExpiry::SignalOnly];
        both.map(|on_expiry| scope.spawn(move || states(on_expiry)))
            .into_iter()
            .map(|it| it.join().unwrap())
            .sum()
    });
    assert!(states > bound(600, 3_000), "{states} states");
}

#[test]
fn time_boxes_come_first_then_what_is_almost_done_then_priority_and_age() {
    let definition =
        |time_box_ms, priority| FeatureCreated { time_box_ms, priority, ..created(AUTH) };
    let done = EdgeRow { converged_ms: Some(1), ..EdgeRow::default() };
    let row = |name: &str, definition: FeatureCreated, created_ms, edges: &[&str]| {
        let id_text = format!("shop/REQ-F-{name}-001");
        let definition = Some(FeatureCreated { feature: id(&id_text), ..definition });
        let edges = edges.iter().map(|edge| (id(edge), done.clone())).collect();
        let created_ms = Some(created_ms);
        (id_text, FeatureRow { definition, created_ms, edges, ..FeatureRow::default() })
    };
    let features = FeatureRows::from([
        row("A-OLD", definition(None, 0), 10, &[]),
        row("B-URGENT", definition(None, 1), 20, &[]),
        row("C-ALMOST", definition(None, 0), 30, &["requirements_design"]),
        row("D-BOX", definition(Some(500), 0), 40, &[]),
        row("E-BOX", definition(Some(400), 0), 50, &[]),
        row("F-OLDEST", definition(None, 0), 1, &[]),
        row("G-DONE", definition(None, 9), 1, &["requirements_design", "design_code"]),
    ]);
    let found = ready(&features, 100);
    let names: Vec<_> = found.iter().map(|it| it.edge.feature.feature.to_string()).collect();
    let order = ["E-BOX", "D-BOX", "C-ALMOST", "B-URGENT", "F-OLDEST", "A-OLD"];
    assert_eq!(names, order.map(|name| format!("REQ-F-{name}-001")));
    assert_eq!((found[0].time_box_until_ms, found[2].edges_left), (Some(450), 1));
}

#[test]
fn each_state_of_a_project_is_named() {
    use ProjectState::*;
    use projects::{ReviewDecision, Status};

    let mut world = World::new(multi().rules());
    let stands = |world: &World| status(true, &rows::<ProjectFeatures>(world), world.now_ms);
    assert_eq!(status(false, &FeatureRows::new(), 0), NoProject);
    assert_eq!(status(true, &FeatureRows::new(), 0), NoFeatures);
    assert_eq!(stands(&world), InProgress, "it can begin");
    for step in [Step::Claim(0), Step::Iterate(0, Status::InProgress)] {
        world.take(step);
        assert_eq!(stands(&world), InProgress, "{step:?}");
    }
    world.take(Step::Iterate(0, Status::InProgress));
    assert_eq!(stands(&world), Stuck);
    let mut without = rows::<ProjectFeatures>(&world);
    for feature in without.values_mut() {
        let rules = &mut feature.definition.as_mut().unwrap().rules;
        rules.edges.retain(|rule| !feature.edges.contains_key(&rule.edge));
        rules.edges.iter_mut().for_each(|rule| rule.after.clear());
    }
    assert_eq!(status(true, &without, world.now_ms), InProgress, "the edge has no rule any more");
    world.take(Step::Spawn(0));
    assert_eq!(stands(&world), InProgress, "a child follows");
    world.take(Step::Wait(3 * 3_600_000));
    world.take(Step::Fold(0));
    world.take(Step::Renew(0));
    world.take(Step::Claim(2));
    world.take(Step::Iterate(2, Status::Converged));
    world.take(Step::Ask(2));
    world.take(Step::Iterate(0, Status::Converged));
    assert_eq!(stands(&world), InProgress);
    world.take(Step::Ask(0));
    assert_eq!(stands(&world), AllBlocked, "a person has to look at both");

    let mut world = World::new(multi().rules());
    for n in [0, 1] {
        let decided = Step::Review(n, ReviewDecision::Approved);
        for step in [Step::Claim(n), Step::Iterate(n, Status::Converged), decided] {
            assert_eq!(stands(&world), InProgress, "before {step:?}");
            world.take(step);
        }
    }
    assert_eq!(stands(&world), AllDone);

    let mut world = World::new(Rules { on_expiry: OnExpiry::SignalOnly, ..multi().rules() });
    world.take(Step::Claim(0));
    assert_eq!(stands(&world), InProgress);
    world.take(Step::Wait(3 * 3_600_000));
    assert_eq!(stands(&world), AllBlocked, "nobody is at work, and nobody may take the edge over");
}
