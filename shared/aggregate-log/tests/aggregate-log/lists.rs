//! Lists of aggregates, in memory and on DynamoDB alike.

use std::num::NonZeroU32;

use ringfence_aggregate_log::{AggregateError, AggregateLog, List, Place, Version};
use ringfence_dynamo::Clock;

use crate::contract::contract;
use crate::customers::{added, customer};
use crate::stack::{NOW_MS, key};

contract! {
    a_list_has_every_aggregate_of_its_store_once
    a_page_is_continued_by_its_token
    a_list_keeps_to_its_times
    a_malformed_page_token_is_refused
}

/// Aggregates `0` to `count` - 1, one a second.
async fn fill(log: &impl AggregateLog, clock: &Clock, count: u64) {
    for n in 0..count {
        clock.set(NOW_MS + n * 1_000);
        let place = Place::After(Version::NONE);
        log.push_event(&customer(&n.to_string()), place, added(1)).await.expect("pushed");
        log.push_event(&customer(&n.to_string()), Place::End, added(2)).await.expect("pushed");
    }
}

async fn ids(log: &impl AggregateLog, list: &List) -> (String, Option<String>) {
    let listed = log.list_aggregate_ids("CUSTOMERS", list).await.expect("a page");
    let ids: Vec<_> = listed.aggregates.into_iter().map(|aggregate| aggregate.id).collect();
    (ids.join(" "), listed.next_page_token)
}

async fn a_list_has_every_aggregate_of_its_store_once(log: &impl AggregateLog, clock: &Clock) {
    assert_eq!(ids(log, &List::default()).await, (String::new(), None));
    fill(log, clock, 3).await;
    log.push_event(&customer("a#b"), Place::End, added(1)).await.expect("pushed");
    log.push_event(&key("CARDS", "9"), Place::End, added(1)).await.expect("pushed");
    assert_eq!(ids(log, &List::default()).await.0, "0 1 2 a#b");
    let reverse = List { reverse: Some(true), ..List::default() };
    assert!(ids(log, &reverse).await.0.ends_with("1 0"));
    let listed = log.list_aggregate_ids("CUSTOMERS", &List::default()).await.expect("a page");
    assert_eq!(listed.aggregates[1].initial_event_timestamp, "2024-06-23T00:00:01.000Z");
    let refused = log.list_aggregate_ids("A#B", &List::default()).await;
    assert!(matches!(refused, Err(AggregateError::Key(_))), "{refused:?}");
}

async fn a_page_is_continued_by_its_token(log: &impl AggregateLog, clock: &Clock) {
    fill(log, clock, 5).await;
    for (reverse, expected) in [(false, ["0 1", "2 3", "4"]), (true, ["4 3", "2 1", "0"])] {
        let limit = NonZeroU32::new(2);
        let mut list = List { limit, reverse: Some(reverse), ..List::default() };
        for (page, expected) in expected.into_iter().enumerate() {
            let (found, token) = ids(log, &list).await;
            assert_eq!(found, expected);
            assert_eq!(token.is_some(), page < 2);
            // The token holds the limit and the direction.
            list = List { page_token: token, ..List::default() };
        }
    }
    let first = List { limit: NonZeroU32::new(1), ..List::default() };
    let (_, page_token) = ids(log, &first).await;
    let more = List { limit: NonZeroU32::new(3), page_token, ..List::default() };
    assert_eq!(ids(log, &more).await.0, "1 2 3");
}

async fn a_list_keeps_to_its_times(log: &impl AggregateLog, clock: &Clock) {
    fill(log, clock, 5).await;
    let at = |second: u64| Some(format!("2024-06-23T00:00:0{second}.000Z"));
    for (after, before, expected) in
        [(at(3), None, "3 4"), (None, at(1), "0 1"), (at(1), at(3), "1 2 3"), (at(3), at(1), "")]
    {
        let list =
            List { initial_event_after: after, initial_event_before: before, ..List::default() };
        assert_eq!(ids(log, &list).await.0, expected, "{list:?}");
        let paged = List { limit: NonZeroU32::new(1), ..list };
        let (first, page_token) = ids(log, &paged).await;
        assert_eq!(first, expected.split(' ').next().unwrap_or_default());
        if page_token.is_some() {
            let rest = List { limit: NonZeroU32::new(9), page_token, ..List::default() };
            assert_eq!(format!("{first} {}", ids(log, &rest).await.0), expected);
        }
    }
}

async fn a_malformed_page_token_is_refused(log: &impl AggregateLog, _: &Clock) {
    let list = List { page_token: Some("{".to_owned()), ..List::default() };
    let refused = log.list_aggregate_ids("CUSTOMERS", &list).await;
    assert!(matches!(refused, Err(AggregateError::Undecodable { .. })), "{refused:?}");
}
