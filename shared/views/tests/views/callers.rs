//! Callers of the HTTP API, and a view that has scopes and a rule for its rows.

use ringfence_core::Principal;
use ringfence_lambda::Issuers;
use ringfence_views::query_views::answer;
use ringfence_views::{Definition, RowRule, View, ViewReader, kit};
use serde_json::{Value, json};

use crate::notes::{Consumed, Notes, Row, catalog, noted, view};
use crate::world::{FIRST, LONG, World, wait};

/// The notes. A subject sees rows whose ids begin with its name, if they were noted at least once; with a scope, all
/// rows that were.
struct OwnNotes;

impl View for OwnNotes {
    const NAME: &'static str = Notes::NAME;
    const SCOPES: &'static [&'static str] = &["notes/read"];
    const VISIBLE: Option<RowRule<Row>> = Some(|id, row, principal| {
        let sees_all = principal.scopes.iter().any(|scope| scope == "notes/all");
        row.count > 0 && (sees_all || id.starts_with(&principal.id))
    });
    type Reads = Consumed;
    type Row = Row;

    fn rows(event: &Consumed) -> Vec<String> {
        Notes::rows(event)
    }

    fn evolve(row: Option<Row>, id: &str, event: &Consumed) -> Option<Row> {
        Notes::evolve(row, id, event)
    }
}

/// The notes as a later version of the view has them, before it is rebuilt.
struct Titled;

#[ringfence::value]
#[derive(Debug)]
struct TitledRow {
    title: String,
}

impl View for Titled {
    const NAME: &'static str = Notes::NAME;
    const VISIBLE: Option<RowRule<TitledRow>> = Some(|_, _, _| true);
    type Reads = Consumed;
    type Row = TitledRow;

    fn rows(event: &Consumed) -> Vec<String> {
        Notes::rows(event)
    }

    fn evolve(row: Option<TitledRow>, _: &str, _: &Consumed) -> Option<TitledRow> {
        row
    }
}

struct Callers {
    world: World,
    reader: ViewReader,
}

impl Callers {
    /// Notes with these ids, which are served.
    async fn of(seed: u64, ids: &[&str]) -> Self {
        let world = World::new(seed, catalog());
        world.publish([noted("n1", ids)]).await;
        world.run(&view(), FIRST).await.unwrap();
        let views = [Definition::of::<OwnNotes>()];
        let reader = ViewReader::new(world.client.clone(), world.index.clone(), "views", &views);
        Self { world, reader }
    }

    /// Status and body of the answer to a caller with these claims.
    async fn ask(&self, claims: Value, path: Value, query: Value) -> (u64, Value) {
        let payload = json!({
            "requestContext": {
                "http": { "method": "GET" },
                "authorizer": { "jwt": { "claims": claims, "scopes": null } },
            },
            "pathParameters": path,
            "queryStringParameters": query,
        });
        let issuers = "main=https://id.example.com".parse().unwrap();
        let answered = answer(&self.reader, &issuers, &payload, "request-1", LONG).await;
        let body = serde_json::from_str(answered.answer["body"].as_str().unwrap()).unwrap();
        (answered.answer["statusCode"].as_u64().unwrap(), body)
    }
}

fn claims(subject: &str, scope: &str) -> Value {
    json!({ "iss": "https://id.example.com", "sub": subject, "scope": scope })
}

fn ada() -> Value {
    claims("ada", "notes/read")
}

fn ids(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_token_without_a_scope_of_the_view_reads_nothing() {
    let callers = Callers::of(31, &["ada-1"]).await;
    for path in [json!({ "view": "notes" }), json!({ "view": "notes", "id": "ada-1" })] {
        callers.world.units();
        for scope in ["", "notes", "notes/write"] {
            let (status, body) = callers.ask(claims("ada", scope), path.clone(), Value::Null).await;
            assert_eq!((status, &body["code"]), (403, &json!("ScopeMissing")), "{scope}");
            assert_eq!(body["detail"], "the token has none of these scopes: notes/read");
        }
        assert_eq!(callers.world.units(), []);
        let (status, _) = callers.ask(claims("ada", "a notes/read"), path, Value::Null).await;
        assert_eq!(status, 200);
    }
    // A token that names nobody does not make an operator.
    let nobody = json!({ "iss": "https://id.example.com", "scope": "notes/read" });
    let (status, body) = callers.ask(nobody, json!({ "view": "notes" }), Value::Null).await;
    assert_eq!((status, &body["errors"][0]["field"]), (400, &json!("Authorization")));
    // A view that does not exist has no scopes.
    let (status, _) = callers.ask(claims("ada", ""), json!({ "view": "x" }), Value::Null).await;
    assert_eq!(status, 404);
}

#[tokio::test(start_paused = true)]
async fn a_row_that_a_caller_does_not_see_is_as_if_it_did_not_exist() {
    let callers = Callers::of(32, &["ada-1", "bob-1"]).await;
    let row = |id: &str| json!({ "view": "notes", "id": id });
    let (status, body) = callers.ask(ada(), row("ada-1"), Value::Null).await;
    assert_eq!((status, &body["row"]["count"]), (200, &json!(1)));
    let event = callers.world.publish([noted("n1", &["ada-1", "bob-1"])]).await.remove(0);
    let waiting = wait(&event, 0);
    let query = json!({
        "partition": waiting.partition.to_string(), "slot": waiting.slot.to_string(), "wait": "0",
    });
    for (query, status) in [(Value::Null, 404), (query.clone(), 503)] {
        let hidden = callers.ask(ada(), row("bob-1"), query.clone()).await;
        let (absent, mut body) = callers.ask(ada(), row("bob-2"), query).await;
        if let Some(detail) = body["detail"].as_str() {
            body["detail"] = detail.replace("bob-2", "bob-1").into();
        }
        assert_eq!(hidden, (absent, body));
        assert_eq!(absent, status);
    }
    callers.world.run(&view(), FIRST).await.unwrap();
    let (status, body) = callers.ask(ada(), row("bob-1"), query.clone()).await;
    assert_eq!((status, &body["type"]), (404, &json!("urn:ringfence:problem:row-not-found")));
    let (status, body) = callers.ask(ada(), row("ada-1"), query).await;
    assert_eq!((status, &body["row"]["count"]), (200, &json!(2)));
    // Nor does a caller see one that the rule can't judge.
    let views = [Definition::of::<Titled>()];
    let later =
        ViewReader::new(callers.world.client.clone(), callers.world.index.clone(), "views", &views);
    let later = Callers { reader: later, ..callers };
    assert_eq!(later.ask(ada(), row("ada-1"), Value::Null).await.0, 404);
    let (_, list) = later.ask(ada(), json!({ "view": "notes" }), Value::Null).await;
    assert_eq!(list["items"], json!([]));
    let callers = later;
    // Operators see all rows.
    let (issuers, row) = (Issuers::default(), row("bob-1"));
    let direct = answer(&callers.reader, &issuers, &row, "request-1", LONG).await;
    assert_eq!(direct.outcome, "found");
}

#[tokio::test(start_paused = true)]
async fn a_list_has_the_rows_that_its_caller_sees_each_once_with_bounded_reads() {
    let of = |name: &str, n: usize| (0..n).map(|n| format!("{name}-{n:02}")).collect::<Vec<_>>();
    let all = [of("ada", 3), of("bob", 30), of("eve", 5)].concat();
    let callers = Callers::of(33, &all.iter().map(String::as_str).collect::<Vec<_>>()).await;
    for (subject, limit, pages, expected) in [
        // More rows are read for those that are left out.
        ("ada", 10, [3, 0].as_slice(), of("ada", 3)),
        ("bob", 10, &[10, 10, 10, 0], of("bob", 30)),
        // After four queries a page ends, although it has no rows.
        ("eve", 5, &[0, 5, 0], of("eve", 5)),
        ("zoe", 25, &[0], vec![]),
    ] {
        let (mut found, mut lengths, mut after) = (Vec::new(), Vec::new(), None);
        loop {
            let mut query = json!({ "limit": limit.to_string() });
            if let Some(after) = after.take() {
                query["after"] = after;
            }
            callers.world.units();
            let asked =
                callers.ask(claims(subject, "notes/read"), json!({ "view": "notes" }), query);
            let (status, mut list) = asked.await;
            assert_eq!(status, 200, "{list}");
            let queries = callers.world.units();
            let queries = queries.iter().filter(|(operation, _)| operation == "Query").count();
            assert!((1..=4).contains(&queries), "{queries}");
            lengths.push(ids(&list).len());
            found.extend(ids(&list).into_iter().map(str::to_owned));
            match list["next"].take() {
                Value::Null => break,
                next => after = Some(next),
            }
        }
        assert_eq!((found, &*lengths), (expected, pages), "{subject}");
    }
}

#[test]
fn a_case_says_who_sees_which_rows() {
    let facts = || kit::given([noted("n1", &["ada-1", "bob-1", "ada-2"])]);
    facts().then_visible::<OwnNotes>("jwt:main:ada", ["ada-1", "ada-2"]);
    facts().then_visible::<OwnNotes>("jwt:main:eve", []);
    let eve = Principal::from("jwt:main:eve").with_scopes(["notes/all"]);
    facts().then_visible::<OwnNotes>(eve, ["ada-1", "ada-2", "bob-1"]);
    facts().then_visible::<Notes>("jwt:main:eve", ["ada-1", "ada-2", "bob-1"]);
    let wrong = || facts().then_visible::<OwnNotes>("jwt:main:ada", ["ada-1"]);
    assert!(std::panic::catch_unwind(wrong).is_err());
}
