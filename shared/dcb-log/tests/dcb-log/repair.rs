//! Repair beside writers, beside another repair, and with requests that fail.

use std::pin::pin;
use std::sync::Arc;

use futures::TryStreamExt;
use ringfence_aws::wire::{Fault, Wire};
use ringfence_aws::{Clock, Item};
use ringfence_core::{Catalog, Consistency, Event, EventLog, Plan, SequencedEvent, events};
use ringfence_dcb_log::{DcbLog, DcbReport};
use ringfence_harness::bound;
use tokio::sync::Barrier;

use crate::reads::{Noted, noted, seen};
use crate::stack::{NOW_MS, Stack, TABLE, append, committed, envelope};
use crate::verify::{
    BOOK, Damage, Fenced, KINDS, OPTIONS, READER, damages, decide, fence_key, library, number,
    plan_of, repair, verify,
};

pub(crate) async fn fence(stack: &Stack, boundary: &str) -> Option<Item> {
    let get = stack.client.get_item().table_name(TABLE).set_key(Some(fence_key(boundary)));
    get.send().await.expect("a fence or none").item
}

/// Requests of one repair, at most.
pub(crate) const REQUESTS_MAX: usize = 40;

/// Runs `checked`. Before each of its requests goes out on `wire`, it runs `step` with the number and operation of
/// the request. Also returns how many requests there were.
pub(crate) async fn stepped<T>(
    wire: &Wire,
    checked: impl Future<Output = T>,
    mut step: impl AsyncFnMut(usize, &str),
) -> (T, usize) {
    let gate = Arc::new(Barrier::new(2));
    for operation in ["Scan", "TransactGetItems", "BatchGetItem", "PutItem", "UpdateItem"] {
        for _ in 0..REQUESTS_MAX {
            wire.inject(operation, 0, Fault::Meet(gate.clone()));
        }
    }
    let mut checked = pin!(checked);
    for request in 0..REQUESTS_MAX {
        let waiting = loop {
            tokio::select! {
                biased;
                ended = &mut checked => return (ended, request),
                () = tokio::task::yield_now() => {}
            }
            if let Some(exchange) = wire.take().pop() {
                break exchange.operation;
            }
        };
        step(request, &waiting).await;
        gate.wait().await;
    }
    panic!("more than {REQUESTS_MAX} requests");
}

pub(crate) async fn stepped_repair(
    stack: &Stack,
    step: impl AsyncFnMut(usize, &str),
) -> (DcbReport, usize) {
    let wire = Wire::default();
    let log = stack.log_through(&wire, &stack.catalog);
    let (report, requests) = stepped(&wire, log.repair_fences(&OPTIONS), step).await;
    (report.expect("a report"), requests)
}

/// A writer appends. Its clock is behind the time of the second note, and it has no other fence in common with that
/// note.
async fn interfere(stack: &Stack, fenced: Fenced) {
    let slow = stack.log_at(&Clock::fixed(NOW_MS - 5_400_000));
    let (book, reader) = if fenced == BOOK { ("b", "p") } else { ("d", "r") };
    committed(append(&slow, events![noted(book, reader, "between")], &envelope()).await);
}

pub(crate) async fn strong_events(log: &DcbLog, plan: &Plan) -> Vec<SequencedEvent> {
    let read = log.read(plan, Consistency::Strong, &envelope()).try_collect().await;
    read.expect("a read of everything")
}

/// One writer reads everything. Another one may append before request `other` of the repair. The first one appends,
/// based on its read, before request `own`. Returns how many requests the repair made.
async fn interleave(fenced: Fenced, n: usize, other: Option<usize>, own: usize) -> usize {
    let (stack, times) = library(fenced).await;
    let (damage, _) = &damages(&times)[n];
    let at = format!("{}: {damage:?}, other before {other:?}, own before {own}", fenced.0);
    let plan = plan_of(&stack, fenced);
    let seen = seen(&plan, &strong_events(&stack.log(), &plan).await);
    damage.inflict(&stack, fenced.0).await;
    let write = async |request: usize, _: &str| {
        if Some(request) == other {
            interfere(&stack, fenced).await;
        }
        if request == own {
            let fence = fence(&stack, fenced.0).await.unwrap_or_default();
            let decided = decide(&stack, fenced, &seen).await;
            // Once the fence is mended, the writer commits exactly if nobody has committed since its read.
            if fence.contains_key("repaired") {
                assert_eq!(decided.is_ok(), other.is_none(), "{at}: {decided:?}");
            }
        }
    };
    let (report, requests) = stepped_repair(&stack, &write).await;
    for request in requests..REQUESTS_MAX {
        write(request, "").await;
    }
    assert!(report.in_order(), "{at}: {report:?}");
    assert!(verify(&stack).await.in_order(), "{at}");
    stack.check_fences().await;
    requests
}

#[tokio::test]
async fn no_order_of_a_repair_and_writers_loses_an_update() {
    let mut runs = 0;
    let damages =
        [READER, BOOK].into_iter().flat_map(|fenced| (0..KINDS).map(move |n| (fenced, n)));
    for (n, (fenced, damage)) in damages.enumerate() {
        let requests = interleave(fenced, damage, None, REQUESTS_MAX).await;
        // `cargo test` uses every other request. There the other writer comes before the same request, or not at all.
        for own in (n % bound(2, 1)..=requests).step_by(bound(2, 1)) {
            for other in (bound(own, 0)..=own).map(Some).chain([None]) {
                interleave(fenced, damage, other, own).await;
                runs += 1;
            }
        }
    }
    println!("{runs} orders");
}

#[tokio::test]
async fn verifying_during_writes_finds_no_false_difference() {
    let (stack, _) = library(BOOK).await;
    let wire = Wire::default();
    let log = stack.log_through(&wire, &stack.catalog);
    let write = async |_, _: &str| {
        for book in ["b", "c", "d"] {
            append(&stack.log(), events![noted(book, "r", "more")], &envelope()).await.expect("ok");
        }
    };
    let (report, requests) = stepped(&wire, log.verify_fences(&OPTIONS), write).await;
    let report = report.expect("a report");
    assert!(report.in_order(), "{report:?}");
    assert!(requests > 2, "the fences were read once more");
}

#[tokio::test]
async fn a_boundary_that_never_rests_is_mended() {
    let cases = damages(&[0, 0]).len();
    for (fenced, case) in [READER, BOOK].into_iter().flat_map(|f| (0..cases).map(move |n| (f, n))) {
        let (stack, times) = library(fenced).await;
        let (damage, _) = &damages(&times)[case];
        // Writers can't add to a count that is a string, nor follow such a head.
        if matches!(damage, Damage::Set(_, value) if value.is_s()) {
            continue;
        }
        damage.inflict(&stack, fenced.0).await;
        // Before each request but the last one, which needs the time of one round trip.
        let write = async |_, operation: &str| {
            if operation != "PutItem" {
                interfere(&stack, fenced).await;
            }
        };
        let (report, _) = stepped_repair(&stack, write).await;
        assert!(report.in_order(), "{damage:?}: {report:?}");
        stack.check_fences().await;
    }
}

#[tokio::test]
async fn two_repairs_and_a_writer_do_not_add_twice() {
    for (n, (fenced, counted)) in
        [(READER, 1), (READER, 3), (BOOK, 1), (BOOK, 3)].into_iter().enumerate()
    {
        // In `cargo test` each uses different requests.
        for slot in (bound(n, 0)..).step_by(bound(4, 1)) {
            let (stack, _) = library(fenced).await;
            Damage::Set("cnt#Noted", number(counted)).inflict(&stack, fenced.0).await;
            let meanwhile = async |request, _: &str| {
                if request == slot {
                    interfere(&stack, fenced).await;
                    assert!(repair(&stack).await.in_order());
                    interfere(&stack, fenced).await;
                }
                // From then on the fence is always right.
                if request >= slot {
                    stack.check_fences().await;
                }
            };
            let (report, requests) = stepped_repair(&stack, meanwhile).await;
            assert!(report.in_order(), "before {slot}: {report:?}");
            stack.check_fences().await;
            if slot > requests {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_repair_whose_requests_fail_ends_and_is_right() {
    for fault in [
        Fault::LostAfter,
        Fault::LostBefore,
        Fault::error("InternalServerError"),
        Fault::error("ThrottlingException"),
        Fault::error("TransactionConflictException"),
    ] {
        for operation in ["Scan", "PutItem", "TransactGetItems"] {
            let (stack, _) = library(BOOK).await;
            Damage::Delete.inflict(&stack, "readerId:r").await;
            Damage::Set("cnt#Noted", number(7)).inflict(&stack, "bookId:b").await;
            for pass in 0..3 {
                stack.wire.inject(operation, pass, fault.clone());
            }
            let report = repair(&stack).await;
            assert_eq!((report.mended.len(), report.in_order()), (2, true), "{fault:?}");
            stack.check_fences().await;
        }
    }
}

#[tokio::test]
async fn an_interrupted_repair_can_start_again() {
    let (stack, _) = library(BOOK).await;
    for request in 0.. {
        Damage::Delete.inflict(&stack, "bookId:b").await;
        Damage::Set("cnt#Noted", number(3)).inflict(&stack, "readerId:r").await;
        let wire = Wire::default();
        let log = stack.log_through(&wire, &stack.catalog);
        for operation in ["Scan", "TransactGetItems", "PutItem"] {
            wire.inject(operation, request, Fault::error("AccessDeniedException"));
        }
        let ended = log.repair_fences(&OPTIONS).await;
        assert!(repair(&stack).await.in_order());
        stack.check_fences().await;
        if ended.is_ok() {
            assert!(request > 1);
            break;
        }
    }
}

/// Another type of the same boundary.
#[derive(Clone, Debug, PartialEq, Event)]
struct Lent {
    #[tag(partition)]
    book_id: String,
    #[tag(cross_partition)]
    reader_id: String,
}

#[tokio::test]
async fn a_repair_keeps_the_result_of_another_repair() {
    let stack = Stack::start(Catalog::new("library", [Noted::SCHEMA, Lent::SCHEMA])).await;
    let [first, _] = &stack.seed(events![noted("b", "r", "1"), noted("b", "r", "2")]).await[..]
    else {
        panic!("two events")
    };
    // A head that was set back, and a note that is not counted.
    for (name, value) in [("head", number(first.at)), ("cnt#Noted", number(1))] {
        Damage::Set(name, value).inflict(&stack, "readerId:r").await;
    }
    // Another type is appended between the two reads of the fence. So the examination is not exact, and the repair
    // only raises the head. Before it does, another repair mends everything.
    let (mut looks, mut other) = (0, None);
    let step = async |_, operation: &str| {
        looks += usize::from(operation == "TransactGetItems");
        match &other {
            Some(_) => stack.check_fences().await,
            None if operation == "PutItem" => other = Some(repair(&stack).await),
            None if operation == "TransactGetItems" && looks == 2 => {
                let (book_id, reader_id) = ("b".to_owned(), "r".to_owned());
                stack.seed(events![Lent { book_id, reader_id }]).await;
            }
            None => {}
        }
    };
    let (report, _) = stepped_repair(&stack, step).await;
    assert!(report.in_order(), "{report:?}");
    assert!(other.expect("the first repair puts a fence").in_order());
}
