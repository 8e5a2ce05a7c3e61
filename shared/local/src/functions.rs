//! Runs the real function binaries as processes, under the runtime API of `cargo lambda watch`.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    net::TcpListener,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    net::TcpStream,
    process::{Child, Command},
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::{
    invoke::{Invoke, InvokeError, PAYLOAD_BYTES_MAX},
    template::Function,
};

/// The most processes of one function; further invocations wait. This is far below the 100 requests that
/// `cargo lambda watch` can hold for each function.
const CONCURRENCY_MAX: usize = 8;

/// Processes of one function from the start, so that two invocations can run at the same time.
const CONCURRENCY_MIN: usize = 2;

/// Longest wait for `cargo lambda watch` to listen.
const RUNTIME_START_MAX: Duration = Duration::from_secs(30);

/// Added to a function's timeout: the start of its process is not part of it.
const COLD_START_MAX: Duration = Duration::from_secs(10);

/// Pause before a process that ended is started again.
const RESTART_PAUSE: Duration = Duration::from_millis(200);

/// Runs functions; its processes end when it is dropped.
pub struct Functions {
    client: reqwest::Client,
    runtime: String,
    functions: BTreeMap<String, Running>,
    processes: Mutex<JoinSet<()>>,
    _watch: Child,
    _kept: TempDir,
}

struct Running {
    timeout: Duration,
    program: Program,
    /// The most invocations at once; further ones wait, where AWS refuses them.
    most: usize,
    free: Semaphore,
    processes: AtomicUsize,
}

#[derive(Clone)]
struct Program {
    binary: PathBuf,
    environment: BTreeMap<String, String>,
    log: PathBuf,
}

impl Functions {
    /// Starts the runtime API and two processes of each function; more come as invocations overlap. `programs` has
    /// the file of each function's binary, by its name.
    ///
    /// # Errors
    /// `cargo lambda watch` does not start or a log file can't be made.
    pub async fn start(
        root: &Path,
        cargo_lambda: &Path,
        definitions: &[Function],
        programs: &BTreeMap<String, PathBuf>,
        common: &BTreeMap<String, String>,
        logs: &Path,
    ) -> Result<Self> {
        fs::create_dir_all(logs).with_context(|| format!("cannot make {}", logs.display()))?;
        let kept = tempfile::tempdir_in(logs).context("cannot make a folder for the binaries")?;
        let (watch, runtime) = start_runtime(root, cargo_lambda, logs).await?;
        let mut functions = BTreeMap::new();
        for definition in definitions {
            let name = &definition.binary;
            let log = logs.join(format!("{name}.log"));
            File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
            let built = programs.get(name).with_context(|| format!("cargo built no {name}"))?;
            let program = Program {
                binary: keep(built, kept.path().join(name))?,
                environment: environment(definition, common, &runtime),
                log,
            };
            let most = definition.concurrency_max.unwrap_or(CONCURRENCY_MAX).min(CONCURRENCY_MAX);
            let running = Running {
                timeout: definition.timeout,
                program,
                most,
                free: Semaphore::new(most),
                processes: AtomicUsize::new(0),
            };
            functions.insert(name.clone(), running);
        }
        let started = Self {
            // A proxy of the environment is not for the loopback address.
            client: reqwest::Client::builder().no_proxy().build()?,
            runtime,
            functions,
            processes: Mutex::default(),
            _watch: watch,
            _kept: kept,
        };
        for running in started.functions.values() {
            (0..CONCURRENCY_MIN).for_each(|_| started.add_process(running));
        }
        Ok(started)
    }

    /// The URL of the Lambda invoke API.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.runtime
    }

    /// The file that the processes of a function run.
    pub(crate) fn binary(&self, name: &str) -> Option<&Path> {
        self.functions.get(name).map(|running| running.program.binary.as_path())
    }

    fn add_process(&self, running: &Running) {
        running.processes.fetch_add(1, Ordering::Relaxed);
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        processes.spawn(keep_running(running.program.clone()));
    }
}

impl Invoke for Functions {
    async fn invoke(&self, name: &str, payload: &Value) -> Result<Value, InvokeError> {
        let function = || name.to_owned();
        let running = self
            .functions
            .get(name)
            .ok_or_else(|| InvokeError::Unknown { function: function() })?;
        let body = payload.to_string();
        if body.len() > PAYLOAD_BYTES_MAX {
            return Err(InvokeError::TooLarge { bytes: body.len() });
        }
        // The semaphore is never closed. If it were, there would be no limit.
        let _place = running.free.acquire().await.ok();
        let busy = running.most - running.free.available_permits();
        if busy > running.processes.load(Ordering::Relaxed) {
            self.add_process(running);
        }
        let url = format!("{}/2015-03-31/functions/{name}/invocations", self.runtime);
        let failed = |source: reqwest::Error| match source.is_timeout() {
            true => InvokeError::TimedOut { function: function(), timeout: running.timeout },
            false => InvokeError::Unreachable { function: function(), source },
        };
        let answer = self
            .client
            .post(url)
            .timeout(running.timeout + COLD_START_MAX)
            .body(body)
            .send()
            .await
            .map_err(failed)?;
        let status = answer.status();
        let text = answer.text().await.map_err(failed)?;
        let value = serde_json::from_str(&text);
        match (status.as_u16(), value) {
            (200, Ok(value)) => Ok(value),
            // This is the runtime API's answer for a function that failed; AWS has a header instead.
            (_, Ok(error)) => Err(InvokeError::Function { function: function(), error }),
            (_, Err(_)) => Err(InvokeError::Function { function: function(), error: json!(text) }),
        }
    }
}

/// The environment that Lambda gives a function, without this process's own variables. So a variable that
/// the template does not set is missing here too.
fn environment(
    function: &Function,
    common: &BTreeMap<String, String>,
    runtime: &str,
) -> BTreeMap<String, String> {
    let name = &function.binary;
    let host = runtime.trim_start_matches("http://");
    let lambda = [
        ("AWS_LAMBDA_RUNTIME_API", format!("http://{host}/.rt/{name}")),
        ("AWS_LAMBDA_FUNCTION_NAME", name.clone()),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".to_owned()),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", function.memory_mb.to_string()),
        ("AWS_LAMBDA_LOG_FORMAT", "JSON".to_owned()),
        ("AWS_LAMBDA_LOG_LEVEL", function.log_level.clone().unwrap_or_else(|| "INFO".to_owned())),
        ("AWS_LAMBDA_LOG_GROUP_NAME", format!("/aws/lambda/{name}")),
        ("AWS_LAMBDA_LOG_STREAM_NAME", "local".to_owned()),
        ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand".to_owned()),
        ("TZ", ":UTC".to_owned()),
        ("RUST_BACKTRACE", "1".to_owned()),
    ];
    let lambda = lambda.map(|(name, value)| (name.to_owned(), value));
    let template = function.environment.iter().chain(common).map(|(k, v)| (k.clone(), v.clone()));
    lambda.into_iter().chain(template).collect()
}

/// Keeps a binary as it is now: a later build replaces the file, and all processes of a function
/// have to run the same code.
pub(crate) fn keep(binary: &Path, kept: PathBuf) -> Result<PathBuf> {
    fs::hard_link(binary, &kept)
        // Another file system has no link to it.
        .or_else(|_| fs::copy(binary, &kept).map(|_| ()))
        .with_context(|| format!("cannot keep {}", binary.display()))?;
    Ok(kept)
}

/// Runs a process, again whenever it ends, until this task is dropped.
async fn keep_running(program: Program) {
    loop {
        if let Err(error) = run(&program).await {
            // A person looks into the log when a function does not answer.
            let _ = fs::write(&program.log, format!("{error:#}\n"));
        }
        sleep(RESTART_PAUSE).await;
    }
}

async fn run(program: &Program) -> Result<()> {
    let log = File::options().append(true).open(&program.log)?;
    let mut child = Command::new(&program.binary)
        .env_clear()
        .envs(&program.environment)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start {}", program.binary.display()))?;
    child.wait().await?;
    Ok(())
}

/// Starts the runtime API on a free loopback port. It watches and compiles nothing.
async fn start_runtime(root: &Path, cargo_lambda: &Path, logs: &Path) -> Result<(Child, String)> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let path = logs.join("cargo-lambda.log");
    let log = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut child = Command::new(cargo_lambda)
        .args(["lambda", "watch", "--only-lambda-apis", "--ignore-changes"])
        .args(["--invoke-address", "127.0.0.1", "--invoke-port", &port.to_string()])
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start {}", cargo_lambda.display()))?;
    let deadline = Instant::now() + RUNTIME_START_MAX;
    while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        if let Some(status) = child.try_wait()? {
            bail!("cargo lambda watch ended with {status}: see {}", path.display());
        }
        if Instant::now() > deadline {
            bail!("cargo lambda watch does not listen: see {}", path.display());
        }
        sleep(Duration::from_millis(20)).await;
    }
    Ok((child, format!("http://127.0.0.1:{port}")))
}
