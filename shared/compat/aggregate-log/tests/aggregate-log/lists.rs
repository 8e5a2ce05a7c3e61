//! Lists of aggregates.

use std::num::NonZeroU32;

use ringfence_aggregate_log::{AggregateError, AggregateTable, ListOptions, PushPlace, Version};
use ringfence_aws::Clock;

use crate::customers::{added, customer};
use crate::stack::{NOW_MS, in_process, key};

/// Aggregates `0` to `count` - 1, one a second.
async fn fill(table: &AggregateTable, clock: &Clock, count: u64) {
    for n in 0..count {
        clock.set(NOW_MS + n * 1_000);
        let place = PushPlace::After(Version::NONE);
        table.push_event(&customer(&n.to_string()), place, added(1)).await.expect("pushed");
        table
            .push_event(&customer(&n.to_string()), PushPlace::End, added(2))
            .await
            .expect("pushed");
    }
}

async fn ids(table: &AggregateTable, list: &ListOptions) -> (String, Option<String>) {
    let listed = table.list_aggregate_ids("CUSTOMERS", list).await.expect("a page");
    let ids: Vec<_> = listed.aggregates.into_iter().map(|aggregate| aggregate.id).collect();
    (ids.join(" "), listed.next_page_token)
}

#[tokio::test]
async fn a_list_has_every_aggregate_of_its_store_once() {
    let (table, clock) = in_process();
    assert_eq!(ids(&table, &ListOptions::default()).await, (String::new(), None));
    fill(&table, &clock, 3).await;
    table.push_event(&customer("a#b"), PushPlace::End, added(1)).await.expect("pushed");
    table.push_event(&key("CARDS", "9"), PushPlace::End, added(1)).await.expect("pushed");
    assert_eq!(ids(&table, &ListOptions::default()).await.0, "0 1 2 a#b");
    let reverse = ListOptions { reverse: Some(true), ..ListOptions::default() };
    assert!(ids(&table, &reverse).await.0.ends_with("1 0"));
    let listed =
        table.list_aggregate_ids("CUSTOMERS", &ListOptions::default()).await.expect("a page");
    assert_eq!(listed.aggregates[1].initial_event_timestamp, "2024-06-23T00:00:01.000Z");
    let refused = table.list_aggregate_ids("A#B", &ListOptions::default()).await;
    assert!(matches!(refused, Err(AggregateError::Key(_))), "{refused:?}");
}

#[tokio::test]
async fn a_page_is_continued_by_its_token() {
    let (table, clock) = in_process();
    fill(&table, &clock, 5).await;
    for (reverse, expected) in [(false, ["0 1", "2 3", "4"]), (true, ["4 3", "2 1", "0"])] {
        let limit = NonZeroU32::new(2);
        let mut list = ListOptions { limit, reverse: Some(reverse), ..ListOptions::default() };
        for (page, expected) in expected.into_iter().enumerate() {
            let (found, token) = ids(&table, &list).await;
            assert_eq!(found, expected);
            assert_eq!(token.is_some(), page < 2);
            // The token holds the limit and the direction.
            list = ListOptions { page_token: token, ..ListOptions::default() };
        }
    }
    let first = ListOptions { limit: NonZeroU32::new(1), ..ListOptions::default() };
    let (_, page_token) = ids(&table, &first).await;
    let more = ListOptions { limit: NonZeroU32::new(3), page_token, ..ListOptions::default() };
    assert_eq!(ids(&table, &more).await.0, "1 2 3");
}

#[tokio::test]
async fn a_list_keeps_to_its_times() {
    let (table, clock) = in_process();
    fill(&table, &clock, 5).await;
    let at = |second: u64| Some(format!("2024-06-23T00:00:0{second}.000Z"));
    for (after, before, expected) in
        [(at(3), None, "3 4"), (None, at(1), "0 1"), (at(1), at(3), "1 2 3"), (at(3), at(1), "")]
    {
        let list = ListOptions {
            initial_event_after: after,
            initial_event_before: before,
            ..ListOptions::default()
        };
        assert_eq!(ids(&table, &list).await.0, expected, "{list:?}");
        let paged = ListOptions { limit: NonZeroU32::new(1), ..list };
        let (first, page_token) = ids(&table, &paged).await;
        assert_eq!(first, expected.split(' ').next().unwrap_or_default());
        if page_token.is_some() {
            let rest =
                ListOptions { limit: NonZeroU32::new(9), page_token, ..ListOptions::default() };
            assert_eq!(format!("{first} {}", ids(&table, &rest).await.0), expected);
        }
    }
}

#[tokio::test]
async fn a_malformed_page_token_is_refused() {
    let (table, _) = in_process();
    let list = ListOptions { page_token: Some("{".to_owned()), ..ListOptions::default() };
    let refused = table.list_aggregate_ids("CUSTOMERS", &list).await;
    assert!(matches!(refused, Err(AggregateError::Undecodable { .. })), "{refused:?}");
}
