//! A stack with the slices of `projects`, and folders in which agents work.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::sleep;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use axum::Router;
use axum::extract::{Path as Of, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use projects::Projects;
use projects_tools::project::{Slices, Undecided, envelope};
use ringfence_aws::{Clock, Retry, wire::Wire};
use ringfence_core::{BoundaryId, Context, EventRef, HandleError, Handled, LogError, Outcome};
use ringfence_dcb_log::DcbLog;
use ringfence_feed::{Indexer, Partition};
use ringfence_local::{embedded::Embedded, template::Template};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;

const EVENTS: &str = "events";
pub(crate) const INDEX: &str = "index";
const OTHER_INDEX: &str = "other-index";
/// Amazon's roots. A program that reads all roots of the machine takes twice the time.
const ROOTS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/aws/src/trust/amazon.pem");

static TEMPLATE: LazyLock<Template> = LazyLock::new(|| Template::of_stack().unwrap());

/// Failures of the API.
#[derive(Clone, Copy)]
pub(crate) enum Fault {
    /// The command is not carried out, and the function answers with this status.
    Refuses(u16),
    /// The gateway answers with this status, and the command may be carried out or not.
    Breaks(u16),
    /// The command is carried out, and the answer is lost.
    Loses,
    /// The command is carried out when the test says so.
    Waits,
}

/// The functions, behind the API.
#[derive(Clone)]
struct Functions {
    client: Client,
    faults: Arc<Mutex<VecDeque<Fault>>>,
    requests: Arc<Mutex<Vec<String>>>,
    goes_on: Arc<Notify>,
}

pub(crate) struct World {
    dynamo: Embedded,
    functions: Functions,
    api: String,
}

/// The output of a program.
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(Output { status, stdout, stderr }: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { status: status.code().unwrap(), stdout: text(stdout), stderr: text(stderr) }
    }

    /// The printed document of a program that ends with this status.
    #[track_caller]
    pub(crate) fn ends(&self, status: i32) -> Value {
        assert_eq!(self.status, status, "{}{}", self.stdout, self.stderr);
        serde_json::from_str(&self.stdout).unwrap_or_default()
    }
}

/// The folder of an agent.
pub(crate) struct Agent<'a> {
    world: &'a World,
    name: &'static str,
    folder: TempDir,
}

impl World {
    pub(crate) async fn start() -> Self {
        let dynamo = Embedded::start().await.unwrap();
        for (id, name) in
            [("EventTable", EVENTS), ("IndexTable", INDEX), ("IndexTable", OTHER_INDEX)]
        {
            dynamo.create_table(&TEMPLATE.table(id).unwrap(), name).unwrap();
        }
        let client = Wire::default().client(dynamo.endpoint());
        let functions = Functions {
            client,
            faults: Arc::default(),
            requests: Arc::default(),
            goes_on: Arc::default(),
        };
        let router =
            Router::new().route("/projects/{slice}", post(answer)).with_state(functions.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let api = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { dynamo, functions, api }
    }

    /// The endpoint of its DynamoDB.
    pub(crate) fn dynamo(&self) -> &str {
        self.dynamo.endpoint()
    }

    /// Fills the index with the partitions of these lines, as index-events does.
    pub(crate) async fn indexes(&self, lines: &[Value]) {
        let partition = |line: &Value| {
            let id = line["event_id"].as_str().unwrap();
            Partition::from(BoundaryId::stored(id.rsplit_once('/').unwrap().0))
        };
        self.functions.index(lines.iter().map(partition)).await;
    }

    /// The failures of the next requests.
    pub(crate) fn fails(&self, faults: impl IntoIterator<Item = Fault>) {
        self.functions.faults.lock().unwrap().extend(faults);
    }

    /// Lets the request go on that waits.
    pub(crate) fn goes_on(&self) {
        self.functions.goes_on.notify_one();
    }

    /// Waits for a request.
    pub(crate) fn awaits_request(&self) {
        while self.requests().is_empty() {
            sleep(Duration::from_millis(1));
        }
    }

    /// The slices that were asked for since this was last called.
    pub(crate) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.functions.requests.lock().unwrap())
    }

    pub(crate) fn agent(&self, name: &'static str) -> Agent<'_> {
        Agent { world: self, name, folder: tempfile::tempdir().unwrap() }
    }

    /// A project in single mode with two features of two edges, by `primary`.
    pub(crate) fn single(&self) -> Agent<'_> {
        let primary = self.agent("primary");
        let edges = json!([
            { "edge": "design_code" },
            { "edge": "code_tests", "after": ["design_code"] },
        ]);
        let init = json!({ "project": "shop", "config": { "edges": edges } });
        primary.does("init-project", &init).ends(0);
        primary.creates("AUTH");
        primary.creates("SEARCH");
        primary
    }

    /// The same, with a copy of the project.
    pub(crate) fn single_with_copy(&self) -> Agent<'_> {
        let primary = self.single();
        primary.pulls();
        primary
    }

    /// The same in multi mode, where `eve` is a person.
    pub(crate) fn multi(&self) -> Agent<'_> {
        let eve = self.agent("eve");
        let edges = json!([{ "edge": "design_code" }]);
        let config = json!({ "mode": "multi", "edges": edges, "roles": { "iam:eve": "human" } });
        let init = json!({ "project": "shop", "config": config });
        eve.does("init-project", &init).ends(0);
        eve.creates("AUTH");
        eve.creates("SEARCH");
        eve
    }
}

pub(crate) fn feature(name: &str) -> String {
    format!("shop/REQ-F-{name}-001")
}

pub(crate) fn edge(feature: &str, edge: &str) -> String {
    format!("{}/{edge}", self::feature(feature))
}

/// A new feature.
pub(crate) fn fix(name: &str) -> Value {
    json!({ "feature": feature(name), "title": name, "kind": "fix" })
}

/// An iteration whose checks pass.
pub(crate) fn iteration(edge: &str, iteration: u32) -> Value {
    json!({
        "edge": edge, "iteration": iteration, "status": "converged", "delta": 0, "checks": [],
        "sourceFindings": [], "processGaps": [], "contextHash": "0a".repeat(32),
    })
}

impl Agent<'_> {
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_projects-ringfence"));
        command.arg("project").args(arguments).current_dir(&self.folder).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.envs([
            ("AWS_ACCESS_KEY_ID", "local"),
            ("AWS_SECRET_ACCESS_KEY", "local"),
            ("AWS_REGION", "eu-west-1"),
            ("AWS_CA_BUNDLE", ROOTS),
            ("AWS_ENDPOINT_URL_DYNAMODB", self.world.dynamo()),
            ("API_URL", &self.world.api),
            ("EVENT_TABLE", EVENTS),
            ("INDEX_TABLE", INDEX),
            ("RINGFENCE_AGENT", self.name),
        ]);
        command
    }

    pub(crate) fn runs(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }

    /// Runs with another index.
    pub(crate) fn runs_on_other_index(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).env("INDEX_TABLE", OTHER_INDEX).output().unwrap())
    }

    /// Runs on the DynamoDB of another endpoint.
    pub(crate) fn runs_on_dynamo(&self, endpoint: &str, arguments: &[&str]) -> Ran {
        let mut command = self.command(arguments);
        Ran::of(command.env("AWS_ENDPOINT_URL_DYNAMODB", endpoint).output().unwrap())
    }

    pub(crate) fn does(&self, slice: &str, data: &Value) -> Ran {
        self.runs(&["do", slice, "--data", &data.to_string()])
    }

    pub(crate) fn does_offline(&self, slice: &str, data: &Value) -> Ran {
        self.runs(&["do", slice, "--data", &data.to_string(), "--offline"])
    }

    pub(crate) fn creates(&self, feature: &str) {
        let data =
            json!({ "feature": self::feature(feature), "title": feature, "kind": "feature" });
        self.does("create-feature", &data).ends(0);
    }

    pub(crate) fn pulls(&self) {
        self.runs(&["--project", "shop", "pull"]).ends(0);
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(".ringfence/shop").join(file)
    }

    pub(crate) fn text(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).unwrap_or_default()
    }

    /// The members of the lines, without sums.
    pub(crate) fn lines(&self, file: &str) -> Vec<Value> {
        self.text(file).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The types of the events that are here.
    pub(crate) fn types(&self) -> Vec<String> {
        let of = |line: &Value| line["event_type"].as_str().unwrap().to_owned();
        self.lines("events.jsonl").iter().map(of).collect()
    }

    /// The same in a compacted copy.
    pub(crate) fn types_behind_snapshot(&self) -> Vec<String> {
        let lines = self.lines("events.jsonl").split_off(1);
        lines.iter().map(|line| line["event_type"].as_str().unwrap().to_owned()).collect()
    }

    /// The files in `conflicts/`.
    pub(crate) fn conflicts(&self) -> Vec<Value> {
        let entries = fs::read_dir(self.path("conflicts")).into_iter().flatten();
        let read = |path: &Path| serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        entries.map(|entry| read(&entry.unwrap().path())).collect()
    }
}

async fn answer(
    State(functions): State<Functions>,
    Of(slice): Of<String>,
    headers: HeaderMap,
    body: String,
) -> Response {
    functions.requests.lock().unwrap().push(slice.clone());
    let fault = functions.faults.lock().unwrap().pop_front();
    if let Some(Fault::Refuses(status)) = fault {
        let document =
            json!({ "type": "urn:ringfence:problem:x", "detail": format!("status {status}") });
        return (StatusCode::from_u16(status).unwrap(), document.to_string()).into_response();
    }
    if let Some(Fault::Breaks(status)) = fault {
        let document = json!({ "message": "Service Unavailable" }).to_string();
        return (StatusCode::from_u16(status).unwrap(), document).into_response();
    }
    if let Some(Fault::Waits) = fault {
        functions.goes_on.notified().await;
    }
    let work = move || Handle::current().block_on(functions.carry_out(&slice, &headers, &body));
    let (status, document) = spawn_blocking(work).await.unwrap();
    if let Some(Fault::Loses) = fault {
        return (StatusCode::BAD_GATEWAY, "the answer is lost").into_response();
    }
    (status, document.to_string()).into_response()
}

pub(crate) fn log(client: Client) -> DcbLog {
    DcbLog::new(client, EVENTS, Projects::catalog().unwrap(), Clock::system())
}

impl Functions {
    fn log(&self) -> DcbLog {
        log(self.client.clone())
    }

    async fn carry_out(&self, slice: &str, headers: &HeaderMap, body: &str) -> (StatusCode, Value) {
        let header = |name| headers.get(name).map(|value| value.to_str().unwrap());
        let key = header("idempotency-key").unwrap();
        let data: Value = serde_json::from_str(body).unwrap();
        // As an authorizer knows the agents.
        let principal = data["agent"].as_str().map(|agent| format!("iam:{agent}"));
        let now_ms = Clock::system().now_ms();
        let envelope = envelope(key, now_ms, principal, header("effective-at"));
        let refused = StatusCode::UNPROCESSABLE_ENTITY;
        match Slices::all().decide(&self.log(), slice, data, &envelope).await {
            Ok(Handled { outcome: Outcome::Accepted(events), .. }) => {
                self.index(partitions(&events)).await;
                (StatusCode::OK, json!({ "accepted": true, "events": events }))
            }
            Ok(Handled { outcome: Outcome::Rejected { rejected, events }, .. }) => {
                self.index(partitions(&events)).await;
                let mut document = rejected.rejection;
                document["detail"] = rejected.message.into();
                document["type"] = "urn:ringfence:problem:rejected".into();
                (refused, document)
            }
            Err(Undecided::Handle(HandleError::Log(LogError::KeyReused(error)))) => {
                let detail = error.to_string();
                let of = "urn:ringfence:problem:key-reused";
                (refused, json!({ "type": of, "code": "IdempotencyKeyReused", "detail": detail }))
            }
            Err(error) => {
                let (of, detail) = ("urn:ringfence:problem:malformed", error.to_string());
                (StatusCode::BAD_REQUEST, json!({ "type": of, "detail": detail }))
            }
        }
    }

    async fn index(&self, partitions: impl Iterator<Item = Partition>) {
        let indexer = Indexer::new([self.log().into()], self.client.clone(), INDEX);
        for (_, outcome) in indexer.index(partitions, Retry::default()).await {
            outcome.unwrap();
        }
    }
}

fn partitions(events: &[EventRef]) -> impl Iterator<Item = Partition> {
    events.iter().map(|event| Partition::from(BoundaryId::stored(&*event.partition)))
}
