//! The original in a Node.js process of its own, if there is one.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::OnceCell;

use crate::stack::{LEGACY, Stack, TABLE};

/// With this variable set, a machine that can't run the original fails the tests.
const REQUIRED: &str = "RINGFENCE_REQUIRE_NODE";
/// What the installation consists of; they are copied, so that nothing is written beside the code.
const FILES: [&str; 3] = ["package.json", "package-lock.json", "driver.mjs"];

static INSTALLED: OnceCell<Result<PathBuf, String>> = OnceCell::const_new();

/// The original, connected to a stack.
pub(crate) struct Castore {
    // Ends with its standard input.
    _process: Child,
    requests: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Castore {
    /// `None`, and a line on standard error, on a machine that can't run it.
    pub(crate) async fn start(stack: &Stack) -> Option<Self> {
        let installed = INSTALLED.get_or_init(|| async {
            tokio::task::spawn_blocking(install).await.expect("no panic")
        });
        let folder = match installed.await {
            Ok(folder) => folder,
            Err(why) if std::env::var_os(REQUIRED).is_some_and(|set| set == "1") => {
                panic!("{REQUIRED}=1, but the original can't run: {why}")
            }
            Err(why) => {
                // Not by a macro, whose output a passing test would swallow.
                let left_out = format!("LEFT OUT, interchange with Castore's packages: {why}\n");
                let _ = std::io::stderr().write_all(left_out.as_bytes());
                return None;
            }
        };
        let mut process = tokio::process::Command::new("node")
            .arg(folder.join("driver.mjs"))
            .env("ENDPOINT", stack.endpoint())
            .env("TABLE", TABLE)
            .env("LEGACY", LEGACY)
            // The SDK's advice on versions of Node.js is not for readers of test results.
            .env("NODE_NO_WARNINGS", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("node runs");
        let requests = process.stdin.take().expect("it is piped");
        let answers = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        Some(Self { _process: process, requests, answers })
    }

    /// Has it done, whatever comes of it: `{ok}` or `{error}`.
    pub(crate) async fn ask(&mut self, operation: &str, mut input: Value) -> Value {
        input["operation"] = json!(operation);
        let line = format!("{input}\n");
        self.requests.write_all(line.as_bytes()).await.expect("the driver listens");
        let answer = self.answers.next_line().await.expect("an answer");
        serde_json::from_str(&answer.expect("the driver lives")).expect("JSON")
    }

    /// Has it done with success.
    #[track_caller]
    pub(crate) fn call(&mut self, operation: &str, input: Value) -> impl Future<Output = Value> {
        let at = std::panic::Location::caller();
        let answer = self.ask(operation, input);
        async move {
            let mut answer = answer.await;
            assert!(answer.get("ok").is_some(), "{at}: {answer}");
            answer["ok"].take()
        }
    }
}

/// Installs the packages that the lock file pins, once for each state of the files.
fn install() -> Result<PathBuf, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/castore");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("castore");
    let node = Command::new("node").arg("--version").output();
    node.map_err(|error| format!("node: {error}"))?;
    let read = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
    let state: String = FILES.iter().map(|file| read(source.join(file))).collect();
    let marker = folder.join("installed");
    if read(marker.clone()) == state {
        return Ok(folder);
    }
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    for file in FILES {
        fs::copy(source.join(file), folder.join(file)).map_err(|error| error.to_string())?;
    }
    let npm = Command::new("npm")
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
        // Without a network it is to say so soon.
        .args(["--prefer-offline", "--fetch-retries=1"])
        .current_dir(&folder)
        .output()
        .map_err(|error| format!("npm: {error}"))?;
    if !npm.status.success() {
        let why = String::from_utf8_lossy(&npm.stderr);
        return Err(format!("npm ci: {}", why.lines().next().unwrap_or("no reason given")));
    }
    fs::write(marker, state).map_err(|error| error.to_string())?;
    Ok(folder)
}
