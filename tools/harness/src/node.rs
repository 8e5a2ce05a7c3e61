//! A test's program for Node.js, such as the original of a table layout, so both can write and read the same table. The
//! machine may lack Node.js. A program is a folder with `package.json`, its lock file, and `driver.mjs`, which reads
//! requests from standard input and writes answers to standard output, each as a line of JSON.

use std::fs;
use std::panic::Location;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::OnceCell;

use crate::left_out::left_out;

/// If this variable is `1`, the tests fail on a machine that can't run such a program.
const REQUIRED: &str = "RINGFENCE_REQUIRE_NODE";

/// A program with its packages, as npm installs them.
pub struct NodeProgram {
    name: &'static str,
    source: &'static str,
    folder: &'static str,
    installed: OnceCell<Result<(), String>>,
}

impl NodeProgram {
    /// The program in `source`. Its name is for people. It is installed in `folder`, so nothing is written beside the
    /// code.
    #[must_use]
    pub const fn new(name: &'static str, source: &'static str, folder: &'static str) -> Self {
        Self { name, source, folder, installed: OnceCell::const_new() }
    }

    /// Installs the packages, once for each state of the files, and starts the driver. `None` if the machine can't run
    /// it. Then the reason is written to standard error once.
    ///
    /// # Panics
    /// On such a machine, if the program is required.
    pub async fn start(&self, environment: &[(&str, &str)]) -> Option<Driver> {
        if self.installed.get_or_init(|| self.install()).await.is_err() {
            return None;
        }
        let mut process = tokio::process::Command::new("node")
            .arg(Path::new(self.folder).join("driver.mjs"))
            .envs(environment.iter().copied())
            // Test results should not show the SDK's advice on versions of Node.js.
            .env("NODE_NO_WARNINGS", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("it printed its version");
        let requests = process.stdin.take().expect("it is piped");
        let answers = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        Some(Driver { _process: process, requests, answers })
    }

    async fn install(&self) -> Result<(), String> {
        let (source, folder) = (self.source, self.folder);
        let installing = tokio::task::spawn_blocking(|| install(source.as_ref(), folder.as_ref()));
        let installed = installing.await.expect("it does not panic");
        installed.inspect_err(|why| left_out(self.name, why, REQUIRED))
    }
}

/// Installs the packages that the lock file pins.
fn install(source: &Path, folder: &Path) -> Result<(), String> {
    let node = Command::new("node").arg("--version").output();
    node.map_err(|error| format!("node: {error}"))?;
    let mut files = Vec::new();
    for entry in fs::read_dir(source).map_err(|error| error.to_string())? {
        let path = entry.map_err(|error| error.to_string())?.path();
        // A person may have run npm here, which leaves folders.
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let mut state = Vec::new();
    for file in &files {
        state.extend(fs::read(file).map_err(|error| error.to_string())?);
        let name = file.file_name().expect("a file has a name");
        fs::copy(file, folder.join(name)).map_err(|error| error.to_string())?;
    }
    let marker = folder.join("installed");
    if fs::read(&marker).is_ok_and(|installed| installed == state) {
        return Ok(());
    }
    let npm = Command::new("npm")
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
        // Without a network it should fail quickly.
        .args(["--prefer-offline", "--fetch-retries=1"])
        .current_dir(folder)
        .output()
        .map_err(|error| format!("npm: {error}"))?;
    if !npm.status.success() {
        let why = String::from_utf8_lossy(&npm.stderr);
        return Err(format!("npm ci: {}", why.lines().next().unwrap_or("no reason given")));
    }
    fs::write(marker, state).map_err(|error| error.to_string())
}

/// A running program.
pub struct Driver {
    // The process ends with its standard input.
    _process: Child,
    requests: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Driver {
    /// Sends a request without waiting for the answer.
    ///
    /// # Panics
    /// The driver has ended. The same holds for the other functions.
    pub async fn send(&mut self, operation: &str, mut input: Value) {
        input["operation"] = json!(operation);
        let line = format!("{input}\n");
        self.requests.write_all(line.as_bytes()).await.expect("the driver listens");
    }

    /// The next answer: `{ok}` or `{error}`.
    pub async fn answer(&mut self) -> Value {
        let answer = self.answers.next_line().await.expect("an answer");
        serde_json::from_str(&answer.expect("the driver lives")).expect("JSON")
    }

    /// Sends a request and returns its answer.
    pub async fn ask(&mut self, operation: &str, input: Value) -> Value {
        self.send(operation, input).await;
        self.answer().await
    }

    /// Sends a request that must succeed.
    #[track_caller]
    pub fn call(&mut self, operation: &str, input: Value) -> impl Future<Output = Value> {
        let at = Location::caller();
        let answer = self.ask(operation, input);
        async move {
            let mut answer = answer.await;
            assert!(answer.get("ok").is_some(), "{at}: {answer}");
            answer["ok"].take()
        }
    }
}
