//! ready-work: says what agents can work on in a project.
//!
//! `GET /projects/{project}/ready?limit=` answers `{status, items}`: the state of the project, and the edges that can
//! be claimed, the most urgent first. It reads all features of the project from the view project-features, a hundred at
//! a time, so a project with a thousand features of two kilobytes costs 250 read units.

use std::time::Duration;

use lambda_runtime::{Diagnostic, Error};
use ringfence::aws::Clock;
use ringfence::feed::Index;
use ringfence::function::{Call, Problem, Service, Variables, chain, http, query, request};
use ringfence::stack::Function;
use ringfence::view::query_views::{Answered, failed, found, within};
use ringfence::view::{
    Content, Definition, LIST_DEFAULT, LIST_MAX, ListPage, Shown, View, ViewError, ViewReader,
};
use serde_json::{Value, json};

use crate::views::project_features::{FeatureRow, ProjectFeatures};
use crate::views::project_status::{ProjectStatus, StatusRow};
use crate::{FeatureRows, ProjectId, ready};

/// The function.
pub struct ReadyWork {
    reader: ViewReader,
    clock: Clock,
}

impl Service for ReadyWork {
    const NAME: &'static str = "ready-work";
    const ANSWER_TIME: Duration = Duration::from_millis(500);
    const TIME_DEFAULT: Duration = Duration::from_secs(10);
    type Of = ();
    /// The names of the index's table and of the views' table.
    type Config = (String, String);

    fn config((): &(), variables: &mut Variables) -> (String, String) {
        (variables.required("INDEX_TABLE"), variables.required("VIEW_TABLE"))
    }

    async fn open((): (), (index, table): (String, String)) -> Result<Self, Error> {
        let client = ringfence::aws::client_from_env()?;
        let clock = Clock::system();
        ringfence::aws::open(&client, &clock).await;
        let index = Index::new(client.clone(), index, []);
        let reader = ViewReader::new(client, index, table, &views());
        Ok(Self { reader, clock })
    }

    async fn answer(&self, call: Call) -> Result<Value, Diagnostic> {
        let (payload, began) = (call.payload.clone(), self.clock.begin());
        let id = &call.request_id;
        let answered = answer(&self.reader, payload, id, began.at_ms, call.time).await;
        answered.line(&call, self.clock.now_ms(), began.lasted_ms(&self.clock)).write();
        Ok(answered.answer)
    }
}

impl Function for ReadyWork {
    const GET: Option<&'static str> = Some("/projects/{project}/ready");
    const QUERY: &'static [&'static str] = &["limit"];
}

/// The views that it reads.
#[must_use]
pub fn views() -> [Definition; 2] {
    [Definition::of::<ProjectFeatures>(), Definition::of::<ProjectStatus>()]
}

/// Answers an HTTP request (payload format 2.0) at this time, in milliseconds since 1970. It reads for at most `time`.
pub async fn answer(
    reader: &ViewReader,
    payload: Value,
    request_id: &str,
    now_ms: u64,
    time: Duration,
) -> Answered {
    let mut cause = None;
    let answer = match ask(payload) {
        Err(problem) => Err(problem),
        Ok((project, limit)) => {
            let read = within(time, read(reader, &project, limit, now_ms)).await;
            read.unwrap_or_else(|error| {
                cause = Some(chain(&error));
                Err(failed(&error, request_id))
            })
        }
    };
    let outcome = answer.as_ref().map_or_else(|problem| problem.kind, |_| "found");
    let view = Some(ProjectFeatures::NAME.to_owned());
    Answered { answer: json!(http(answer)), is_http: true, view, outcome, cause }
}

/// The project, and how many edges are wanted at most.
fn ask(payload: Value) -> Result<(ProjectId, usize), Problem> {
    let request = request(payload)?;
    let project = request.path_parameters.get("project").map_or("", String::as_str);
    let project = project.parse().map_err(|error| Problem::malformed("project", error))?;
    let mut limit = usize::from(LIST_DEFAULT);
    for (name, value) in query(&request) {
        limit = match (&*name, value.parse().ok()) {
            ("limit", Some(number)) if (1..=LIST_MAX.into()).contains(&number) => number,
            ("limit", _) => {
                let most = format!("must be an integer from 1 to {LIST_MAX}, is {value:?}");
                return Err(Problem::malformed("limit", most));
            }
            _ => return Err(Problem::malformed(&name, "is unknown; the list takes limit")),
        };
    }
    Ok((project, limit))
}

async fn read(
    reader: &ViewReader,
    project: &ProjectId,
    limit: usize,
    now_ms: u64,
) -> Result<Result<Value, Problem>, ViewError> {
    let standing = standing(reader, project).await?;
    Ok(standing.map(|(exists, features)| {
        let status = crate::status(exists, &features, now_ms);
        let mut items = ready(&features, now_ms);
        items.truncate(limit);
        json!({ "status": status, "items": items })
    }))
}

/// Whether a project has begun, and the rows of its features.
///
/// # Errors
/// The views can't be read. The inner error is the caller's answer if a view is being built.
pub async fn standing(
    reader: &ViewReader,
    project: &ProjectId,
) -> Result<Result<(bool, FeatureRows), Problem>, ViewError> {
    let known = reader.row(ProjectStatus::NAME, &project.to_string(), None).await?;
    let known = match found(ProjectStatus::NAME, None, known) {
        Ok(known) => known.map(|shown| shown.content),
        Err(problem) => return Ok(Err(problem)),
    };
    let exists = known.is_some_and(has_begun);
    let mut features = FeatureRows::new();
    let prefix = format!("{project}/");
    let mut page = ListPage { prefix, limit: LIST_MAX, ..ListPage::default() };
    loop {
        let list = reader.list(ProjectFeatures::NAME, &page, None).await?;
        let list = match found(ProjectFeatures::NAME, None, list) {
            Ok(list) => list,
            Err(problem) => return Ok(Err(problem)),
        };
        let shown = |Shown { id, content, .. }| Some((id, row::<FeatureRow>(content)?));
        features.extend(list.rows.into_iter().filter_map(shown));
        page.after = list.next;
        if page.after.is_none() {
            break;
        }
    }
    Ok(Ok((exists, features)))
}

/// Whether a project has begun, by its row. A parked row shows that there are events of the project.
fn has_begun(content: Content) -> bool {
    match content {
        Content::Parked(_) => true,
        content => row::<StatusRow>(content).is_some_and(|project| project.mode.is_some()),
    }
}

/// The row, unless it is parked or of another version of the view. Then edges that depend on it are not ready.
fn row<R: serde::de::DeserializeOwned>(content: Content) -> Option<R> {
    match content {
        Content::Row(row) => serde_json::from_value(row).ok(),
        Content::Parked(_) => None,
    }
}

#[test]
fn a_refusal_names_the_field_and_its_limit() {
    let request = |project: &str, query: Value| {
        let path = json!({ "project": project });
        json!({
            "requestContext": { "http": { "method": "GET" } },
            "pathParameters": path,
            "queryStringParameters": query,
        })
    };
    let refused = |project, query, detail: &str| {
        let problem = ask(request(project, query)).expect_err("it is refused").document();
        assert!(problem["detail"].as_str().is_some_and(|it| it.starts_with(detail)), "{problem}");
    };
    assert_eq!(ask(request("shop", Value::Null)).map(|(_, limit)| limit), Ok(25));
    assert_eq!(ask(request("shop", json!({ "limit": "100" }))).map(|(_, limit)| limit), Ok(100));
    for limit in ["0", "101", "1,2", "many", ""] {
        let expected = format!("limit: must be an integer from 1 to 100, is \"{limit}\"");
        refused("shop", json!({ "limit": limit }), &expected);
    }
    refused("shop", json!({ "prefix": "x" }), "prefix: is unknown; the list takes limit");
    refused("a/b", Value::Null, "project: an id has 1 to 64 characters");
}

#[test]
fn a_project_whose_row_is_parked_has_begun() {
    let parked =
        ringfence::view::Parked { event: "project:shop/1".to_owned(), cause: String::new() };
    assert!(has_begun(Content::Parked(parked)));
    let row = |row: StatusRow| Content::Row(json!(row));
    assert!(!has_begun(row(StatusRow::default())));
    assert!(has_begun(row(StatusRow { mode: Some(crate::Mode::Single), ..StatusRow::default() })));
}
