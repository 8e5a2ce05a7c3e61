//! Requests of a table, and the units of refused ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::json;

use super::*;
use crate::ATTEMPTS_MAX;
use crate::wire::Wire;

#[test]
fn a_refused_request_counts_as_if_it_had_been_carried_out() {
    let found = || Item::from([("a".to_owned(), AttributeValue::S("x".repeat(2_047)))]);
    let throttled = || Failure::Throttled { source: UNPROCESSED.into() };
    // The old item had two kilobytes, and the new one has one.
    for (failure, units) in [
        (Failure::Condition(None), 1.0),
        (Failure::Condition(Some(found())), 2.0),
        (throttled(), 0.0),
    ] {
        assert!((refused_writes(&[1_024], &failure) - units).abs() < f64::EPSILON, "{failure:?}");
    }
    let reasons = [Reason::Condition(Some(found())), Reason::None, Reason::Conflict];
    let cancelled = Failure::Cancelled(reasons.to_vec());
    let writes = refused_writes(&[0, 1_025, 0], &cancelled);
    assert!((writes - (4.0 + 4.0 + 2.0)).abs() < f64::EPSILON, "{writes}");
    let gets = [&cancelled, &throttled()].map(refused_gets);
    assert!((gets[0] - 6.0).abs() < f64::EPSILON && gets[1] == 0.0, "{gets:?}");
}

#[tokio::test]
async fn a_write_without_a_condition_is_not_sent() {
    let wire = Wire::default();
    let client = wire.client_of(Arc::new(|_: &str, _: &[u8]| (200, b"{}".to_vec())));
    let table = Table::new(client, "events", &Clock::system());
    let key = Item::from([("id".to_owned(), AttributeValue::S("a".into()))]);
    let put = Put::builder().table_name("events").set_item(Some(key.clone()));
    let update = Update::builder().table_name("events").set_key(Some(key.clone()));
    let update = update.update_expression("REMOVE #a").build().unwrap();
    let delete = Delete::builder().table_name("events").set_key(Some(key)).build().unwrap();
    let put = put.build().unwrap();
    for refused in [
        table.put(put.clone()).await,
        table.update(update, None).await.map(drop),
        table.delete(delete).await,
    ] {
        assert!(matches!(refused, Err(Failure::Permanent { .. })), "{refused:?}");
    }
    assert!(wire.take().is_empty());
    table.overwrite(put).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn unprocessed_keys_fail_and_missing_items_are_left_out() {
    let answer = |operation: &str, _: &[u8]| {
        let key = json!({ "id": { "S": "a" } });
        let answer = match operation {
            "BatchGetItem" => json!({ "UnprocessedKeys": { "events": { "Keys": [key] } } }),
            "BatchWriteItem" => {
                json!({ "UnprocessedItems": { "events": [{ "DeleteRequest": { "Key": key } }] } })
            }
            _ => json!({ "Responses": [{ "Item": {} }, {}, { "Item": key }] }),
        };
        (200, answer.to_string().into_bytes())
    };
    let table = Table::new(Wire::default().client_of(Arc::new(answer)), "events", &Clock::system());
    let key = Item::from([("id".to_owned(), AttributeValue::S("a".into()))]);
    let mut keys = vec![key.clone()];
    let gave_up = table.get_some(Retry::default().attempts_max(2), &mut keys, true).await;
    assert_eq!((gave_up.unwrap_err().attempts, keys.len()), (2, 1));
    let all = [key.clone(), key.clone()];
    assert!(matches!(table.delete_some(&all[..1]).await, Err(Failure::Throttled { .. })));
    assert_eq!(table.delete_some(&all).await.unwrap(), 1);
    let found = table.get_together(&[&all[..], &all[..1]].concat()).await.unwrap();
    assert_eq!(found, [None, None, Some(key)]);
}

#[tokio::test(start_paused = true)]
async fn a_client_without_tokens_sends_each_request_once_until_others_succeed() {
    for (status, code, cost) in [(400, "ThrottlingException", 5), (500, "InternalServerError", 10)]
    {
        let is_busy = Arc::new(AtomicBool::new(true));
        let busy = is_busy.clone();
        let answer = move |_: &str, _: &[u8]| match busy.load(Ordering::Relaxed) {
            true => (status, json!({ "__type": code }).to_string().into_bytes()),
            false => (200, b"{}".to_vec()),
        };
        let client = Wire::default().client_of(Arc::new(answer));
        let table = Table::new(client, "events", &Clock::system());
        let get = || table.get(Item::new(), true);
        // How many attempts there are until a request is sent only a few times.
        let attempts = async || {
            let mut attempts = 0;
            for _ in 0..20 {
                let gave_up = Retry::default().run(get).await.unwrap_err();
                assert!(!matches!(gave_up.failure, Failure::Last(_)), "{gave_up:?}");
                attempts += gave_up.attempts;
                if gave_up.attempts < ATTEMPTS_MAX {
                    return attempts;
                }
            }
            panic!("its tokens are never used up")
        };
        // Each of them but the last has taken its tokens.
        assert_eq!([attempts().await, attempts().await], [500 / cost + 1, 1], "{code}");
        is_busy.store(false, Ordering::Relaxed);
        for _ in 0..4 {
            get().await.unwrap();
        }
        is_busy.store(true, Ordering::Relaxed);
        assert_eq!(attempts().await, 4 * 5 / cost + 1, "{code}");
    }
}
