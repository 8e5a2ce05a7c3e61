//! An agent at the command line, in its own folder.

use std::path::PathBuf;
use std::{env, fs};

use anyhow::{Context, Result, ensure};
use ringfence_local::walker::{EVENTS_WAIT_MAX, INDEX_PAUSE};
use ringfence_local::{programs, stack::RunningStack, stack_root};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

/// The command line of this stack.
const PROGRAM: &str = "projects-ringfence";

pub(super) struct Agent {
    program: PathBuf,
    name: &'static str,
    folder: TempDir,
    variables: Vec<(&'static str, String)>,
}

impl Agent {
    /// Builds the program.
    pub(super) async fn new(stack: &RunningStack, name: &'static str) -> Result<Self> {
        let mut built = programs::build(&stack_root(), [PROGRAM].into_iter()).await?;
        let table = |id: &str| {
            let table = stack.tables().iter().find(|table| table.name.ends_with(id));
            table.map(|table| table.name.clone()).with_context(|| format!("the stack has no {id}"))
        };
        let local = || "local".to_owned();
        let variables = vec![
            ("AWS_ACCESS_KEY_ID", local()),
            ("AWS_SECRET_ACCESS_KEY", local()),
            ("AWS_REGION", local()),
            ("AWS_ENDPOINT_URL_DYNAMODB", stack.dynamo().to_owned()),
            ("API_URL", stack.api().to_owned()),
            ("EVENT_TABLE", table("EventTable")?),
            ("INDEX_TABLE", table("IndexTable")?),
            ("RINGFENCE_AGENT", name.to_owned()),
            ("RINGFENCE_PROJECT", "shop".to_owned()),
        ];
        let program = built.remove(PROGRAM).context("cargo built no command line")?;
        Ok(Self { program, name, folder: tempfile::tempdir()?, variables })
    }

    /// Runs `ringfence project`, which has to end with this status.
    pub(super) async fn runs(&self, arguments: &[&str], status: i32) -> Result<String> {
        let line = arguments
            .iter()
            .map(|it| if it.contains('"') { format!("'{it}'") } else { (*it).to_owned() });
        println!("{}$ ringfence project {}", self.name, line.collect::<Vec<_>>().join(" "));
        let mut program = Command::new(&self.program);
        // Without the variables of AWS that the person has set.
        let path = env::var_os("PATH").unwrap_or_default();
        program.env_clear().env("PATH", path).envs(self.variables.iter().cloned());
        program.arg("project").args(arguments);
        let output = program.current_dir(&self.folder).kill_on_drop(true).output().await;
        let output = output.with_context(|| format!("running {}", self.program.display()))?;
        let (out, err) =
            (String::from_utf8(output.stdout)?, String::from_utf8_lossy(&output.stderr));
        print!("{out}");
        ensure!(output.status.code() == Some(status), "it ends with {}: {err}", output.status);
        Ok(out)
    }

    /// Pulls until the copy has an event of this type about an edge.
    pub(super) async fn pulls_until(&self, event_type: &str, edge: &str) -> Result<()> {
        let deadline = Instant::now() + EVENTS_WAIT_MAX;
        loop {
            self.runs(&["pull"], 0).await?;
            let is_it = |line: &str| {
                let line: Value = serde_json::from_str(line).unwrap_or_default();
                line["event_type"] == event_type && line["data"]["edge"] == edge
            };
            if self.events()?.lines().any(is_it) {
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "{event_type} of {edge} does not come into the index"
            );
            sleep(INDEX_PAUSE).await;
        }
    }

    /// The copy of the project's events.
    pub(super) fn events(&self) -> Result<String> {
        let path = self.folder.path().join(".ringfence/shop/events.jsonl");
        fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
    }
}
