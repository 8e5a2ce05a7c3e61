//! A stack whose functions are of builds with different versions of events.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use reqwest::Client;
use ringfence_local::stack::{RunningStack, StackOptions};
use ringfence_local::template::{STACK, Template};
use ringfence_local::workspace_root;
use serde_json::{Value, json};

use crate::sql::DUCKDB;

const PROGRAM: &str = env!("CARGO_BIN_EXE_of-four-builds");
/// The pause between two looks at a result that takes time.
const PAUSE: Duration = Duration::from_millis(20);

/// The stack of the starter with other slices. The functions in `of` are of other builds.
fn template(build: u32, of: &[(&str, u32)]) -> Template {
    let text = workspace_root().join("starter/template.yaml");
    let mut text = std::fs::read_to_string(text).unwrap();
    let own = |build| format!("BUILD: \"{build}\"");
    for (from, to) in [
        ("offer-product", "change-item"),
        ("take-order", "show-item"),
        ("ship-order", "label-item"),
        ("OrderTaken", "ItemAdded"),
        ("[shop]", "[shelf]"),
        ("/shop/", "/shelf/"),
    ] {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let tables = "        EVENT_TABLE:";
    text = text.replace(tables, &format!("        {}\n{tables}", own(build)));
    for (function, build) in of {
        let begin = format!("Binary: {function} }} }}\n    Properties:\n");
        let variables = format!("      Environment: {{ Variables: {{ {} }} }}\n", own(*build));
        assert!(text.contains(&begin), "{function}");
        text = text.replace(&begin, &format!("{begin}{variables}"));
    }
    Template::parse(&text).unwrap()
}

/// A stack in one of four builds.
pub(crate) struct Deployed {
    pub(crate) stack: RunningStack,
    build: u32,
    client: Client,
}

impl Deployed {
    /// Starts on the data of the stack before it.
    pub(crate) async fn new(data: &Path, build: u32, of: &[(&str, u32)]) -> Self {
        let template = template(build, of);
        let functions = template.model("").unwrap().functions;
        let programs = functions.into_iter().map(|it| (it.binary, PROGRAM.into())).collect();
        let options = StackOptions {
            root: workspace_root(),
            template,
            data: data.to_owned(),
            port: 0,
            keep: Some(data.join("kept")),
            programs,
            auth: false,
            limits: None,
        };
        let stack = RunningStack::start(&options).await.unwrap();
        Self { stack, build, client: Client::builder().no_proxy().build().unwrap() }
    }

    pub(crate) async fn post(&self, slice: &str, command: Value) -> (u16, Value) {
        let url = format!("{}/shelf/{slice}", self.stack.api());
        let answer = self.client.post(url).body(command.to_string()).send().await.unwrap();
        let status = answer.status().as_u16();
        // An older build says when to retry.
        assert_eq!(answer.headers().contains_key("retry-after"), status == 503);
        (status, answer.json().await.unwrap())
    }

    pub(crate) async fn change(&self, command: Value) {
        let (status, answer) = self.post("change-item", command).await;
        assert_eq!(status, 200, "{answer}");
    }

    pub(crate) async fn add(&self, item: &str, title: &str, euros: u64) {
        self.change(json!({ "type": "Add", "itemId": item, "title": title, "euros": euros })).await;
    }

    /// The decision's state of the item.
    pub(crate) async fn known(&self, item: &str) -> Value {
        let (status, answer) = self.post("show-item", json!({ "itemId": item })).await;
        assert_eq!(status, 422, "{answer}");
        answer["known"].clone()
    }

    /// The row of an item if the view has its event of this slot; otherwise the answer.
    pub(crate) async fn row(&self, item: &str, slot: u64) -> Value {
        let at = format!("partition=itemId:{item}&slot={slot}&wait=0");
        let url = format!("{}/items/{item}?{at}", self.stack.api());
        let answer: Value = self.client.get(url).send().await.unwrap().json().await.unwrap();
        answer.get("row").unwrap_or(&answer).clone()
    }

    /// The row, once the view has the event.
    pub(crate) async fn row_with(&self, item: &str, slot: u64) -> Value {
        loop {
            match self.row(item, slot).await {
                answer if answer["status"] == 503 => tokio::time::sleep(PAUSE).await,
                row => return row,
            }
        }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).args(["--stack", STACK]).stdin(Stdio::null());
        command.env("BUILD", self.build.to_string()).envs([
            ("AWS_ACCESS_KEY_ID", "local"),
            ("AWS_SECRET_ACCESS_KEY", "local"),
            ("AWS_REGION", "eu-west-1"),
            ("AWS_ENDPOINT_URL_DYNAMODB", self.stack.dynamo()),
        ]);
        for service in ["EVENTBRIDGE", "SQS", "S3", "CLOUDFORMATION"] {
            command.env(format!("AWS_ENDPOINT_URL_{service}"), self.stack.services());
        }
        command
    }

    /// The output of the command, which must end with this status. With status 2 it is the error.
    pub(crate) async fn run(&self, status: i32, arguments: &[&str]) -> String {
        let mut command = self.command(arguments);
        command.envs(DUCKDB.path().map(|program| ("PATH", program.parent().unwrap().to_owned())));
        let output = tokio::process::Command::from(command).output().await.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let (printed, said) = (text(output.stdout), text(output.stderr));
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {printed}{said}");
        if status == 2 { said } else { printed }
    }

    /// Exports the events into a folder.
    pub(crate) async fn export(&self, status: i32, folder: &str, more: &[&str]) -> String {
        self.run(status, &[&["export", folder], more].concat()).await
    }

    /// The rows of a query of an export.
    pub(crate) async fn rows(&self, folder: &str, query: &str) -> Value {
        let printed = self.run(0, &["sql", folder, query, "--json"]).await;
        serde_json::from_str(&printed).unwrap()
    }

    /// Waits until `tail` prints `count` events of this type. Returns their payloads with the versions.
    pub(crate) async fn tail(&self, event_type: &str, count: usize) -> Vec<(Value, u64)> {
        let all = ["tail", "--from", "start", "--until-present", "--json", "--type", event_type];
        loop {
            let printed = self.run(0, &all).await;
            let events = printed.lines().map(|line| serde_json::from_str(line).unwrap());
            let events: Vec<_> = events.map(|event| payload(&event)).collect();
            if events.len() >= count {
                return events;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits until the automation has `count` dead letters. Returns the URL of their queue.
    pub(crate) async fn dead_letters(&self, count: usize) -> String {
        loop {
            let queues = self.stack.queues().into_iter();
            let mut queues = queues.filter(|(name, _)| name.contains("Automations"));
            match queues.next().unwrap() {
                (name, dead_letters) if dead_letters.len() == count => {
                    return self.stack.queue_url(&name);
                }
                _ => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}

/// The payload of a printed event or an event on the bus, and its version.
pub(crate) fn payload(event: &Value) -> (Value, u64) {
    (event["data"].clone(), event["schema"].as_u64().unwrap_or(1))
}
