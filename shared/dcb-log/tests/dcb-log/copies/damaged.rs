//! Copies that are wrong, and their repair.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::Clock;
use ringfence_aws::wire::{Fault, Wire};
use ringfence_core::events;
use tokio::time::{sleep, timeout};

use super::{counts, list, listed, order, shop, stack};
use crate::stack::{NOW_MS, Stack, append, envelope};
use crate::verify::{repair, verify};

/// Changes an attribute of the item in this place of the product's fence.
async fn damage(stack: &Stack, place: u64, attribute: &str, value: u64) {
    let key = [("id", AttributeValue::S("fence#productId:p1".to_owned()))];
    let place = ("position", AttributeValue::N(place.to_string()));
    let key = key.into_iter().chain([place]).map(|(name, value)| (name.to_owned(), value));
    let update = stack.client.update_item().table_name(crate::stack::TABLE);
    let update = update.set_key(Some(key.collect())).update_expression("SET #a = :v");
    let update = update.expression_attribute_names("#a", attribute);
    let update = update.expression_attribute_values(":v", AttributeValue::N(value.to_string()));
    update.send().await.expect("the damage");
}

#[tokio::test]
async fn a_repair_levels_copies_that_count_something_else() {
    // It makes those of a fence that has none yet.
    let stack = stack(2).await;
    list(&stack.log_of(&shop(0), &stack.clock)).await;
    assert!(verify(&stack).await.in_order() && repair(&stack).await.in_order());
    assert_eq!(counts(&stack).await, [(0, 1), (1, 1), (2, 1)]);
    for (copy, count) in [(1, 7), (2, 1), (2, 9)] {
        let stack = super::stack(2).await;
        list(&stack.log()).await;
        list(&stack.log()).await;
        damage(&stack, copy, "cnt#ProductListed", count).await;
        let wrong = format!("productId:p1: another count in its copies {copy}");
        let differs = |report: &[ringfence_dcb_log::Difference]| {
            report.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(differs(&verify(&stack).await.differences), std::slice::from_ref(&wrong));
        let repaired = repair(&stack).await;
        assert!(repaired.in_order());
        assert_eq!(differs(&repaired.mended), [wrong]);
        assert_eq!(counts(&stack).await, [(0, 2), (1, 2), (2, 2)]);
        assert!(verify(&stack).await.in_order());
    }
}

#[tokio::test]
async fn a_repair_levels_the_copies_of_a_fence_that_it_has_mended() {
    for lost in [false, true] {
        let stack = stack(2).await;
        list(&stack.log()).await;
        list(&stack.log()).await;
        for place in 0..3 {
            damage(&stack, place, "cnt#ProductListed", 1).await;
        }
        if lost {
            stack.wire.inject("PutItem", 0, Fault::LostAfter);
        }
        let repaired = repair(&stack).await;
        assert!(repaired.in_order(), "{repaired:?}");
        assert_eq!(counts(&stack).await, [(0, 2), (1, 2), (2, 2)], "lost {lost}");
    }
}

#[tokio::test(start_paused = true)]
async fn late_copies_of_the_time_before_a_repair_change_nothing() {
    let mut stack = stack(2).await;
    list(&stack.log()).await;
    list(&stack.log()).await;
    damage(&stack, 0, "cnt#ProductListed", 1).await;
    // A writer gives up, and dies while it levels the copies to the count of the damaged fence.
    let wire = Wire::default();
    wire.inject("TransactWriteItems", 0, Fault::cancelled(&["None", "ValidationError"]));
    (2..4).for_each(|n| wire.inject("PutItem", n, Fault::Stray(Duration::from_secs(60))));
    (4..6).for_each(|n| wire.inject("PutItem", n, Fault::Delay(Duration::from_secs(3_600))));
    let dead = stack.log_through(&wire, &stack.catalog);
    let envelope = envelope();
    let append = append(&dead, events![listed()], &envelope);
    timeout(Duration::from_secs(20), append).await.expect_err("it waits");
    assert_eq!(counts(&stack).await, [(0, 1), (1, 2), (2, 2)]);
    stack.clock = Clock::fixed(NOW_MS + 60_000);
    assert!(repair(&stack).await.in_order());
    sleep(Duration::from_secs(60)).await;
    assert_eq!(counts(&stack).await, [(0, 2), (1, 2), (2, 2)]);
    stack.check_fences().await;
}

#[tokio::test]
async fn copies_of_later_announcements_than_the_fence_are_found_and_overtaken() {
    for by in ["a repair", "a check", "an append"] {
        let stack = stack(2).await;
        list(&stack.log()).await;
        // The table was restored between the announcement of an append and the append.
        for place in 1..3 {
            damage(&stack, place, "announced", 1_000).await;
            damage(&stack, place, "cnt#ProductListed", 2).await;
        }
        let [difference] = &verify(&stack).await.differences[..] else { panic!("one") };
        assert_eq!(difference.to_string(), "productId:p1: another count in its copies 1, 2");
        if by == "a repair" {
            assert!(repair(&stack).await.in_order());
        }
        if by != "an append" {
            let placed = order(&stack.log(), &stack.catalog, "o1").await.expect("an answer");
            assert_eq!((placed.attempts, counts(&stack).await), (1, vec![(0, 1), (1, 1), (2, 1)]));
        }
        assert_eq!(
            (list(&stack.log()).await, counts(&stack).await),
            (2, vec![(0, 2), (1, 2), (2, 2)])
        );
        assert!(verify(&stack).await.in_order());
    }
}
