//! The original library, in a process of Node.js.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::{env, fs};

use serde_json::{Value, json};

use crate::stack::{Stack, TABLE};

/// With this variable set, as it is where every change is checked, the tests must not be left out.
const REQUIRED: &str = "RINGFENCE_REQUIRE_NODE";
const FILES: [&str; 4] = ["package.json", "package-lock.json", ".npmrc", "driver.mjs"];

/// A running driver, see `tests/equinox/driver.mjs`.
pub(crate) struct Original {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Original {
    /// The original on the stack's table; `None`, after saying so, where it can't be had.
    pub(crate) fn start(stack: &Stack) -> Option<Self> {
        static INSTALLED: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        let installed = || {
            install().inspect_err(|reason| {
                // The macros that print are captured in a test that passes; this is not.
                let left_out = "LEFT OUT: interchange with the original Equinox is not tested";
                writeln!(std::io::stderr(), "{left_out}: {reason}").expect("standard error");
            })
        };
        match INSTALLED.get_or_init(installed) {
            Ok(folder) => Some(Self::of(folder, stack)),
            Err(reason) if env::var_os(REQUIRED).is_some() => {
                panic!("{REQUIRED} is set, and {reason}")
            }
            Err(reason) => {
                eprintln!(
                    "LEFT OUT: interchange with the original Equinox is not tested: {reason}"
                );
                None
            }
        }
    }

    fn of(folder: &Path, stack: &Stack) -> Self {
        let mut process = Command::new("node")
            .args(["driver.mjs", stack.endpoint(), TABLE])
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node was there a moment ago");
        let input = process.stdin.take().expect("it is piped");
        let output = BufReader::new(process.stdout.take().expect("it is piped"));
        Self { process, input, output }
    }

    pub(crate) fn send(&mut self, command: &Value) {
        writeln!(self.input, "{command}").expect("the driver listens");
    }

    /// The next answer. The store is served by this runtime, so a thread of its own waits.
    pub(crate) fn answer(&mut self) -> Value {
        let mut line = String::new();
        let read = || self.output.read_line(&mut line);
        tokio::task::block_in_place(read).expect("the driver answers");
        let answer: Value = serde_json::from_str(&line).expect("a line of JSON");
        assert!(answer.get("error").is_none(), "the original: {answer}");
        answer
    }

    pub(crate) fn call(&mut self, operation: &str, mut command: Value) -> Value {
        command["op"] = json!(operation);
        self.send(&command);
        self.answer()
    }
}

impl Drop for Original {
    fn drop(&mut self) {
        // It may have ended with the test.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The folder with the driver and its packages, installed once for each state of the lock file.
fn install() -> Result<PathBuf, String> {
    let version = Command::new("node").arg("--version").output();
    version.map_err(|error| format!("there is no Node.js: {error}"))?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/equinox");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("equinox");
    let read = |folder: &Path, name: &str| fs::read(folder.join(name)).ok();
    let done = folder.join("node_modules/.package-lock.json").exists()
        && read(&folder, "package-lock.json") == read(&source, "package-lock.json");
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    for file in FILES {
        fs::copy(source.join(file), folder.join(file)).map_err(|error| error.to_string())?;
    }
    if done {
        return Ok(folder);
    }
    let installed = Command::new("npm")
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"])
        // Without a network, say so soon.
        .args(["--fetch-retries", "1", "--fetch-retry-mintimeout", "1000"])
        .current_dir(&folder)
        .output()
        .map_err(|error| format!("there is no npm: {error}"))?;
    if installed.status.success() {
        return Ok(folder);
    }
    // A half-made installation must not pass for a whole one.
    let _ = fs::remove_dir_all(folder.join("node_modules"));
    Err(format!("npm ci failed: {}", String::from_utf8_lossy(&installed.stderr)))
}
