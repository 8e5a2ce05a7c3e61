//! query-views as its callers see it.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::wire::{Edit, Fault};
use ringfence_core::{Vault, kit::MemoryVault};
use ringfence_lambda::{Call, Issuers};
use ringfence_views::query_views::answer;
use serde_json::{Value, json};

use crate::notes::{catalog, noted, sized, view};
use crate::world::{FIRST, LONG, World};

fn http(path: Value, query: Value) -> Value {
    json!({
        "requestContext": { "http": { "method": "GET" } },
        "pathParameters": path,
        "queryStringParameters": query,
    })
}

/// Status, headers and body of an HTTP answer.
async fn ask(world: &World, path: Value, query: Value) -> (u64, Value, Value) {
    let answered =
        answer(&world.reader(), &Issuers::default(), &http(path, query), "request-1", LONG).await;
    let body = serde_json::from_str(answered.answer["body"].as_str().unwrap()).unwrap();
    let status = answered.answer["statusCode"].as_u64().unwrap();
    (status, answered.answer["headers"].clone(), body)
}

#[tokio::test(start_paused = true)]
async fn a_row_is_answered_with_its_id_and_its_checkpoint() {
    let world = World::new(1, catalog());
    world.publish([noted("n1", &["a/b"])]).await;
    world.run(&view(), FIRST).await.unwrap();
    let row = json!({ "id": "a/b", "row": { "count": 1, "text": "" }, "asOf": 1 });
    let path = json!({ "view": "notes", "id": "a/b" });
    let (status, headers, body) = ask(&world, path.clone(), Value::Null).await;
    assert_eq!((status, &headers["content-type"]), (200, &json!("application/json")));
    assert_eq!(body, row);
    let direct = answer(&world.reader(), &Issuers::default(), &path, "request-1", LONG).await;
    assert_eq!((direct.answer, direct.outcome, direct.view), (row, "found", Some("notes".into())));
}

#[tokio::test(start_paused = true)]
async fn a_damaged_value_is_null_and_its_page_shows_the_others() {
    let world = World::new(15, catalog());
    world.publish([noted("n1", &["a", "b"])]).await;
    world.run(&view(), FIRST).await.unwrap();
    let vault = Arc::<MemoryVault>::default();
    let mut name = json!({ "$personal": "Ada", "of": "ada" });
    vault.seal(vec![&mut name]).await.unwrap();
    let text = |text: &str| AttributeValue::S(text.to_owned());
    for (id, sealed) in [("a", "changed"), ("b", name["$sealed"].as_str().unwrap())] {
        let value = [("$sealed", sealed), ("of", "ada")];
        let value = value.map(|(field, value)| (field.to_owned(), text(value))).into();
        let update = world.client.update_item().table_name("views").key("view", text("notes#1"));
        let update = update.key("id", text(id)).update_expression("SET #row.#text = :sealed");
        let update = update.expression_attribute_names("#row", "row");
        let update = update.expression_attribute_names("#text", "text");
        let value = AttributeValue::M(value);
        update.expression_attribute_values(":sealed", value).send().await.unwrap();
    }
    let (reader, list) = (world.reader().with_vault(Some(vault)), json!({ "view": "notes" }));
    let answered = answer(&reader, &Issuers::default(), &list, "request-1", LONG).await;
    let shown = [0, 1].map(|n| answered.answer["items"][n]["row"]["text"].clone());
    assert_eq!(shown, [Value::Null, json!("Ada")]);
    let cause = answered.cause.unwrap();
    assert!(cause.starts_with("a sealed value of ada can't be opened"), "{cause}");
}

#[tokio::test(start_paused = true)]
async fn a_missing_row_or_view_is_a_404_that_names_it() {
    let world = World::new(2, catalog());
    let path = || json!({ "view": "notes", "id": "z" });
    let (status, _, body) = ask(&world, json!({ "view": "users", "id": "z" }), Value::Null).await;
    assert_eq!((status, &body["type"]), (404, &json!("urn:ringfence:problem:view-not-found")));
    world.publish([noted("n1", &["a"])]).await;
    world.run(&view(), FIRST).await.unwrap();
    let (status, headers, body) = ask(&world, path(), Value::Null).await;
    assert_eq!((status, &headers["content-type"]), (404, &json!("application/problem+json")));
    assert_eq!(body["type"], "urn:ringfence:problem:row-not-found");
    assert_eq!(body["detail"], "view notes has no row \"z\"");
}

#[tokio::test(start_paused = true)]
async fn a_list_goes_on_with_its_token() {
    let world = World::new(3, catalog());
    world.publish([noted("n1", &["a", "b", "c", "d"])]).await;
    world.run(&view(), FIRST).await.unwrap();
    for (order, expected) in [("asc", ["a", "b", "c", "d"]), ("desc", ["d", "c", "b", "a"])] {
        let (mut ids, mut after) = (Vec::new(), None);
        loop {
            let mut query = json!({ "limit": "3", "order": order });
            if let Some(after) = after {
                query["after"] = after;
            }
            let (status, _, body) = ask(&world, json!({ "view": "notes" }), query).await;
            assert_eq!((status, body.get("asOf")), (200, None), "its rows may be of any time");
            let items = body["items"].as_array().unwrap().iter();
            ids.extend(items.map(|item| item["id"].as_str().unwrap().to_owned()));
            after = body.get("next").cloned();
            if after.is_none() {
                break;
            }
        }
        assert_eq!(ids, expected);
    }
    let query = json!({ "after": "bm9uc2Vuc2U" });
    let (status, _, body) = ask(&world, json!({ "view": "notes" }), query).await;
    assert_eq!((status, &body["errors"][0]["field"]), (400, &json!("after")));
}

#[tokio::test(start_paused = true)]
async fn an_event_that_a_view_does_not_show_in_time_is_a_503_with_both_places() {
    let world = World::new(4, catalog());
    world.publish([noted("n1", &["a"])]).await;
    world.run(&view(), FIRST).await.unwrap();
    let event = &world.publish([noted("n1", &["a"])]).await[0];
    let query = |wait: u64| {
        let (partition, slot) = (event.partition.to_string(), event.slot);
        json!({ "partition": partition, "slot": slot.to_string(), "wait": wait.to_string() })
    };
    let path = || json!({ "view": "notes", "id": "a" });
    let (status, headers, body) = ask(&world, path(), query(100)).await;
    assert_eq!((status, &headers["retry-after"]), (503, &json!("1")));
    assert_eq!(
        body,
        json!({
            "type": "urn:ringfence:problem:view-behind",
            "title": "The view does not show the event yet",
            "status": 503,
            "detail":
                "the event is before checkpoint 2, view notes is at 1; waited 100 ms",
            "view": "notes",
            "asOf": 1,
            "until": 2,
        })
    );
    // It does not wait longer than the invocation lasts.
    let time = Duration::from_millis(100);
    let answered = answer(
        &world.reader(),
        &Issuers::default(),
        &http(path(), query(5_000)),
        "request-1",
        time,
    )
    .await;
    let late: Value = serde_json::from_str(answered.answer["body"].as_str().unwrap()).unwrap();
    assert_eq!(late, body);
    world.run(&view(), FIRST).await.unwrap();
    let (status, _, body) = ask(&world, path(), query(0)).await;
    assert_eq!((status, &body["row"]["count"]), (200, &json!(2)));
    let (status, _, body) = ask(&world, json!({ "view": "notes" }), query(0)).await;
    assert_eq!((status, &body["asOf"]), (200, &json!(2)));
}

#[tokio::test(start_paused = true)]
async fn a_table_that_does_not_answer_in_time_is_a_503() {
    let world = World::new(14, catalog());
    world.publish([noted("n1", &["a"])]).await;
    world.run(&view(), FIRST).await.unwrap();
    world.wire.inject("GetItem", 0, Fault::Delay(LONG));
    let request = http(json!({ "view": "notes", "id": "a" }), Value::Null);
    let (reader, seconds) = (world.reader(), Duration::from_secs);
    let issuers = Issuers::default();
    let answer = answer(&reader, &issuers, &request, "request-1", seconds(19));
    let answered = tokio::time::timeout(seconds(20), answer).await.expect("in time");
    assert_eq!(answered.answer["statusCode"], 503);
    assert!(answered.cause.is_some_and(|cause| cause.starts_with("reading a view")));
    let body: Value = serde_json::from_str(answered.answer["body"].as_str().unwrap()).unwrap();
    assert_eq!(body["type"], "urn:ringfence:problem:unavailable");
}

#[tokio::test(start_paused = true)]
async fn a_view_that_is_being_built_is_a_503_with_its_progress() {
    let world = World::new(10, catalog());
    world.publish((0..3).map(|_| noted("n1", &["a"]))).await;
    for path in [json!({ "view": "notes", "id": "a" }), json!({ "view": "notes" })] {
        let (status, headers, body) = ask(&world, path, Value::Null).await;
        assert_eq!((status, &headers["retry-after"]), (503, &json!("1")));
        let expected = json!({
            "type": "urn:ringfence:problem:view-building",
            "title": "The view is being built",
            "status": 503,
            "detail": "view notes is at checkpoint 0, and is served from checkpoint 3 on",
            "view": "notes",
            "asOf": 0,
            "until": 3,
        });
        assert_eq!(body, expected);
    }
    // One notification is enough.
    let round = world.round(&world.projector(), &[view()]).await;
    assert!(round.unfinished.is_empty(), "{round:?}");
    let path = json!({ "view": "notes", "id": "a" });
    let (status, _, body) = ask(&world, path, Value::Null).await;
    assert_eq!((status, &body["row"]["count"]), (200, &json!(3)));
}

#[tokio::test(start_paused = true)]
async fn a_parked_row_is_a_problem_in_its_place_and_an_alarm() {
    let world = World::new(11, catalog());
    let large = sized("n1", vec!["b".to_owned()], 400_000);
    let event = world.publish([noted("n1", &["a", "b", "c"]), large]).await[1].id();
    let round = world.round(&world.projector(), &[view()]).await;
    assert!(round.unfinished.is_empty(), "no further notification is needed: {round:?}");
    let line = &round.line.json;
    assert_eq!((&line["level"], &line["rows_parked"]), (&json!("ERROR"), &json!(1)));
    let named = &line["views"][0]["parked"][0];
    assert_eq!((&named["row"], &named["event"]), (&json!("b"), &json!(event)));
    assert!(named["cause"].as_str().unwrap().starts_with("the row: 400"), "{line}");
    let of_all = &line["_aws"]["CloudWatchMetrics"][0];
    assert_eq!(of_all["Dimensions"], json!([[]]));
    let metric = json!({ "Name": "rows_parked", "Unit": "Count" });
    assert!(of_all["Metrics"].as_array().unwrap().contains(&metric), "{line}");

    let problem = json!({
        "type": "urn:ringfence:problem:row-parked",
        "title": "The row can't be shown",
        "status": 500,
        "detail": "view notes could not keep the row; those who run the stack can mend it",
    });
    let (status, _, body) = ask(&world, json!({ "view": "notes", "id": "b" }), Value::Null).await;
    let mut expected = problem.clone();
    expected["id"] = "b".into();
    expected["asOf"] = 2.into();
    assert_eq!((status, body), (500, expected));
    let (status, _, body) = ask(&world, json!({ "view": "notes" }), Value::Null).await;
    let parked = json!({ "id": "b", "problem": problem, "asOf": 2 });
    assert_eq!((status, &body["items"][1]), (200, &parked));
    assert_eq!(body["items"][2]["id"], "c");

    // Each run reports it again, until a retry succeeds.
    world.publish([noted("n1", &["b", "c"])]).await;
    for rows in [1, 0] {
        let round = world.round(&world.projector(), &[view()]).await;
        let line = &round.line.json;
        assert_eq!((&line["rows_parked"], &line["level"]), (&json!(rows), &json!("INFO")));
        world.projector().retry(&view(), &|_| {}).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_has_an_alarm_of_its_own_is_counted_apart() {
    let world = World::new(12, catalog());
    let line = async |payload: &Value| {
        let [request_id, function] = ["request-1", "QueryViews-1"].map(str::to_owned);
        let call = Call { payload: payload.clone(), request_id, function, time: LONG };
        answer(&world.reader(), &Issuers::default(), payload, "request-1", LONG)
            .await
            .line(&call, 0, 7)
            .json
    };
    let row = http(json!({ "view": "notes", "id": "a" }), Value::Null);
    assert!(line(&row).await.get("_aws").is_none(), "404 is the caller's");
    world.publish([noted("n1", &["a"])]).await;
    let building = line(&row).await;
    let expected = ["view-building", "QueryViews-1", "request-1", "INFO"];
    let names = ["outcome", "function", "function_request_id", "level"];
    assert_eq!(names.map(|name| building[name].as_str().unwrap()), expected);
    assert_eq!((&building["views_not_ready"], &building["duration_ms"]), (&json!(1), &json!(7)));
    let directive = &building["_aws"]["CloudWatchMetrics"][0];
    assert_eq!(directive["Dimensions"], json!([["function"]]));
    assert_eq!(directive["Metrics"][0]["Name"], "views_not_ready");
    // API Gateway does not count the answer to a direct invoke.
    let direct = line(&json!({ "view": "notes", "id": "a" })).await;
    assert_eq!(direct["outcome"], "view-building");
    let metric = ["views_not_ready", "_aws"].map(|name| direct.get(name));
    assert_eq!(metric, [None, None], "{direct}");
}

#[tokio::test(start_paused = true)]
async fn a_cause_goes_to_the_log_and_not_to_the_caller() {
    let world = World::new(5, catalog());
    world.publish([noted("n1", &["a"])]).await;
    world.run(&view(), FIRST).await.unwrap();
    for (fault, status, kind) in [
        (Fault::error("AccessDeniedException"), 500, "internal"),
        (
            Fault::Reply(Edit::new(|answer| answer["Item"]["live"] = json!({ "S": "no" }))),
            500,
            "internal",
        ),
    ] {
        world.wire.inject("GetItem", 0, fault);
        let payload = http(json!({ "view": "notes", "id": "a" }), Value::Null);
        let answered =
            answer(&world.reader(), &Issuers::default(), &payload, "request-1", LONG).await;
        assert_eq!(
            (answered.answer["statusCode"].as_u64(), answered.outcome),
            (Some(status), kind)
        );
        assert!(answered.cause.is_some_and(|cause| !cause.is_empty()));
        assert!(answered.answer["body"].as_str().unwrap().contains("request-1"));
    }
    (0..8).for_each(|_| world.wire.inject("GetItem", 0, Fault::error("ThrottlingException")));
    let (status, headers, body) =
        ask(&world, json!({ "view": "notes", "id": "a" }), Value::Null).await;
    assert_eq!((status, &headers["retry-after"]), (503, &json!("1")));
    assert_eq!(body["type"], "urn:ringfence:problem:unavailable");
}
