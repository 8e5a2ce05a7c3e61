//! A write that arrives late changes no row that shows more by now.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join;
use ringfence_aws::Failure;
use ringfence_aws::wire::{Director, Edit, Fault};
use ringfence_views::{Definition, Ran, ViewError};
use serde_json::{Value, json};

use crate::limits::Toggled;
use crate::notes::{catalog, noted};
use crate::world::{FIRST, LONG, World};

/// Mistakes that must be noticed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mutant {
    /// Rows are put without a condition.
    Unconditioned,
    /// A row that is removed leaves no tombstone.
    NoTombstone,
    /// A tombstone goes too early.
    Short,
    /// The checkpoint moves though a row was not put.
    CheckpointFirst,
}

/// One write of a run arrives only when everything else is over.
struct Late {
    writes: AtomicUsize,
    at: usize,
    /// Whether the run ends there. Otherwise it sends the write again.
    ends: bool,
    mutant: Option<Mutant>,
}

fn unconditioned(request: &mut Value) {
    let names = ["ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues"];
    names.iter().for_each(|name| drop(request.as_object_mut().unwrap().remove(*name)));
}

fn each_tombstone(request: &mut Value, change: impl Fn(&mut Value)) {
    let actions = request["TransactItems"].as_array_mut().into_iter().flatten();
    let is_tombstone = |action: &&mut Value| action["Put"]["Item"].get("removed").is_some();
    actions.filter(is_tombstone).for_each(change);
}

fn no_tombstone(action: &mut Value) {
    let mut delete = action["Put"].take();
    let item = delete["Item"].take();
    delete["Key"] = json!({ "view": item["view"], "id": item["id"] });
    delete.as_object_mut().unwrap().remove("Item");
    *action = json!({ "Delete": delete });
}

impl Mutant {
    fn edit(self) -> Fault {
        Fault::Request(Edit::new(move |request| match self {
            Self::Unconditioned if request.get("Item").is_some() => unconditioned(request),
            Self::NoTombstone => each_tombstone(request, no_tombstone),
            Self::Short => {
                let short = |action: &mut Value| {
                    action["Put"]["Item"]["expiresAt"] = json!({ "N": "1" });
                };
                each_tombstone(request, short);
            }
            _ => {}
        }))
    }
}

impl Director for Late {
    fn faults(&self, operation: &str, _request: &Value) -> Vec<Fault> {
        let mut faults: Vec<_> = self.mutant.map(Mutant::edit).into_iter().collect();
        if !["PutItem", "UpdateItem", "TransactWriteItems"].contains(&operation) {
            return faults;
        }
        match self.writes.fetch_add(1, Ordering::Relaxed) {
            n if n == self.at => faults.push(match self.mutant {
                Some(Mutant::CheckpointFirst) if operation == "PutItem" => {
                    Fault::Answer(200, json!({}))
                }
                _ => Fault::Stray(Duration::from_secs(3_600)),
            }),
            n if n > self.at && self.ends => faults.push(Fault::Delay(2 * LONG)),
            _ => {}
        }
        faults
    }

    fn carried_out(&self, _operation: &str, _request: &Value, _status: u16) {}
}

/// Whether the rows are right in the end. `None` if the run has fewer writes.
async fn is_right(at: usize, ends: bool, mutant: Option<Mutant>) -> Option<bool> {
    let (world, view) = (World::new(1, catalog()), Definition::of::<Toggled>());
    let toggle = |rows: &[&str]| noted("n1", rows);
    world.publish([toggle(&["a"])]).await;
    world.run(&view, FIRST).await.unwrap();
    let late = Arc::new(Late { writes: AtomicUsize::new(0), at, ends, mutant });
    let calm = Arc::new(Late { writes: AtomicUsize::new(0), at: usize::MAX, ends, mutant });
    // The first run removes `a`, and makes `b`, `c` and `d`.
    world.publish([toggle(&["a", "b", "c", "d"])]).await;
    world.direct(&late);
    let ran = tokio::time::timeout(LONG / 2, world.run(&view, FIRST)).await;
    let has_more = late.writes.load(Ordering::Relaxed) > at;
    world.direct(&calm);
    // The next ones remove `b`, and make `a` again. `e` comes and goes in one batch.
    world.publish([toggle(&["b", "e"]), toggle(&["a", "e"])]).await;
    world.run(&view, FIRST).await.unwrap();
    world.sweep().await;
    tokio::time::sleep(Duration::from_secs(7_200)).await;
    world.publish([toggle(&["d", "e"])]).await;
    world.run(&view, FIRST).await.unwrap();
    assert_eq!(ran.is_err(), ends && has_more, "{at}");
    let rows: Vec<_> = world.counts(FIRST).await.into_keys().collect();
    has_more.then(|| rows == ["a", "c", "e"])
}

#[tokio::test(start_paused = true)]
async fn a_write_that_arrives_late_changes_nothing() {
    use Mutant::{CheckpointFirst, NoTombstone, Short, Unconditioned};
    let mutants = [Unconditioned, NoTombstone, Short, CheckpointFirst].map(Some);
    for mutant in [None].into_iter().chain(mutants) {
        let (mut wrong, mut writes) = (Vec::new(), 0);
        for ends in [false, true] {
            for at in 0.. {
                let Some(is_right) = is_right(at, ends, mutant).await else { break };
                writes += 1;
                wrong.extend((!is_right).then_some((at, ends)));
            }
        }
        assert!(writes >= 8, "{writes} writes");
        assert_eq!(wrong.is_empty(), mutant.is_none(), "{mutant:?}: {wrong:?}");
    }
}

/// A laptop that sleeps does not know how far the view is. The tombstone of a row that it has not seen may be gone.
#[tokio::test(start_paused = true)]
async fn a_run_that_has_stood_still_for_a_day_puts_no_row() {
    let (world, view) = (World::new(2, catalog()), Definition::of::<Toggled>());
    let hours = |hours: u64| Duration::from_secs(hours * 3_600);
    // The first event is a batch.
    let rows: Vec<_> = (0..100).map(|n| format!("r{n}")).collect();
    let rows: Vec<_> = rows.iter().map(String::as_str).collect();
    world.projector().register(&view).await.unwrap();
    world.publish([noted("n1", &rows)]).await;
    world.wire.inject("Query", 0, Fault::Delay(hours(30)));
    let sleeps = async {
        let mut ran = Ran::default();
        world.projector().run(&view, FIRST, 10 * LONG * 24, &mut ran).await
    };
    let meanwhile = async {
        tokio::time::sleep(hours(1)).await;
        world.publish([noted("n1", &["r7"])]).await;
        for _ in 0..2 {
            world.run(&view, FIRST).await.unwrap();
        }
        tokio::time::sleep(hours(26)).await;
        assert_eq!(world.sweep().await, 1);
    };
    let (slept, ()) = join(sleeps, meanwhile).await;
    let ViewError::Store { source, .. } = slept.unwrap_err() else { panic!("it is refused") };
    assert!(matches!(source.failure, Failure::Permanent { .. }), "{source:?}");
    world.run(&view, FIRST).await.unwrap();
    assert_eq!(world.counts(FIRST).await.len(), 99);
}
