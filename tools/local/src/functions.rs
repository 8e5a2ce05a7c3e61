//! Runs functions as processes, under the runtime API.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use futures::future::join_all;
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    process::Command,
    sync::{Mutex, Semaphore, watch},
    task::JoinSet,
    time::sleep,
};

use crate::{
    invoke::{Invoke, InvokeError},
    kept::emptied,
    keys, port,
    runtime::{self, ByName, Invocations, Running},
    stack_clock::StackClock,
    template::FunctionResource,
};

/// The most processes of one function. Further invocations wait.
const CONCURRENCY_MAX: usize = 8;

/// The bytes that a log keeps of earlier starts.
const LOG_BYTES_KEPT: usize = 16 << 20;

/// The variable with the name of a process's function. All functions of a stack are one program.
pub(crate) const FUNCTION: &str = "RINGFENCE_FUNCTION";

/// The pause before an ended process is started again.
const RESTART_PAUSE: Duration = Duration::from_millis(200);

/// Runs functions. Their processes end when it is dropped.
pub struct Functions {
    endpoint: String,
    functions: Arc<ByName>,
    clock: StackClock,
    /// Two that let time pass would wait for each other's functions.
    passing: Mutex<()>,
    _tasks: JoinSet<()>,
    _kept: TempDir,
}

struct Program {
    binary: PathBuf,
    environment: BTreeMap<String, String>,
    log: PathBuf,
    /// The URL of the runtime API for its processes; the number of the process follows.
    runtime: String,
}

impl Functions {
    /// Starts the runtime API. A function's first process starts with its first invocation, as on AWS, and more start
    /// when invocations overlap. `programs` has the file of each function's program, by the function's name.
    ///
    /// # Errors
    /// The runtime API can't listen, or a file can't be made: a log, or one in place of a key of KMS.
    pub async fn start(
        definitions: &[FunctionResource],
        programs: &BTreeMap<String, PathBuf>,
        common: &BTreeMap<String, String>,
        logs: &Path,
        clock: StackClock,
    ) -> Result<Self> {
        let binaries = emptied(logs.join("binaries"))?;
        fs::create_dir_all(&binaries)
            .with_context(|| format!("cannot make {}", binaries.display()))?;
        let kept =
            tempfile::tempdir_in(binaries).context("cannot make a folder for the binaries")?;
        let listener = port::listen("Lambda's", 0).await?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let mut functions = ByName::new();
        let mut tasks = JoinSet::new();
        let mut kept_programs = BTreeMap::new();
        for definition in definitions {
            let name = &definition.binary;
            let log = logs.join(format!("{name}.log"));
            let opened = append_to(&log).and_then(|_| shorten(&log, LOG_BYTES_KEPT));
            opened.with_context(|| format!("cannot write {}", log.display()))?;
            definition.key_files().try_for_each(keys::make)?;
            let built = programs.get(name).with_context(|| format!("{name} has no program"))?;
            let binary = match kept_programs.entry(built) {
                Entry::Vacant(entry) => entry.insert(keep(built, kept.path().join(name))?),
                Entry::Occupied(entry) => entry.into_mut(),
            };
            let program = Program {
                binary: binary.clone(),
                environment: environment(definition, common),
                log,
                runtime: format!("{endpoint}{}", runtime::path_of(name)),
            };
            let most = definition.concurrency_max.unwrap_or(CONCURRENCY_MAX).min(CONCURRENCY_MAX);
            let running = Running {
                timeout: definition.timeout,
                invocations: Arc::default(),
                binary: program.binary.clone(),
                most,
                free: Arc::new(Semaphore::new(most)),
                processes: watch::Sender::new(0),
            };
            let wanted = running.processes.subscribe();
            tasks.spawn(keep_processes(program.into(), running.invocations.clone(), wanted));
            functions.insert(name.clone(), running);
        }
        let functions = Arc::new(functions);
        port::serve(&mut tasks, listener, runtime::router(functions.clone()));
        Ok(Self {
            endpoint,
            functions,
            clock,
            passing: Mutex::default(),
            _tasks: tasks,
            _kept: kept,
        })
    }

    /// The URL of the Lambda invoke API.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The clock of their stack.
    pub(crate) fn clock(&self) -> &StackClock {
        &self.clock
    }

    /// Lets time pass, in milliseconds, once no function is under way: a jump of the clock would end the function's
    /// leases.
    pub(crate) async fn pass_time(&self, ms: u64) -> Result<()> {
        let _turn = self.passing.lock().await;
        let all = |running: &Running| u32::try_from(running.most).unwrap_or(u32::MAX);
        let places = self.functions.values().map(|running| running.free.acquire_many(all(running)));
        let _places = join_all(places).await;
        self.clock.pass(ms)
    }

    /// The functions that have a process.
    #[must_use]
    pub fn running(&self) -> Vec<String> {
        let running = self.functions.iter().filter(|(_, it)| it.invocations.has_process());
        running.map(|(name, _)| name.clone()).collect()
    }

    /// Kills a process of a function, one in the middle of an invocation if there is any. False without a process.
    #[must_use]
    pub fn kill(&self, name: &str) -> bool {
        self.functions.get(name).is_some_and(|running| running.invocations.kill())
    }

    /// The file that the processes of a function run.
    pub(crate) fn binary(&self, name: &str) -> Option<&Path> {
        self.functions.get(name).map(|running| running.binary.as_path())
    }
}

impl Invoke for Functions {
    async fn invoke(&self, name: &str, payload: &Value) -> Result<Value, InvokeError> {
        match self.functions.get(name) {
            Some(running) => running.invoke(name, payload.to_string()).await,
            None => Err(InvokeError::Unknown { function: name.to_owned() }),
        }
    }
}

/// The environment that Lambda gives a function, without the variables of this process. So a variable that the template
/// does not set is missing here too.
fn environment(
    function: &FunctionResource,
    common: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let name = &function.binary;
    let lambda = [
        (FUNCTION, name.clone()),
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

/// Keeps a file as it is now. A later build replaces a binary, and all processes of a function have to run the same
/// code.
pub(crate) fn keep(file: &Path, kept: PathBuf) -> Result<PathBuf> {
    fs::hard_link(file, &kept)
        // A link to another file system is impossible.
        .or_else(|_| fs::copy(file, &kept).map(|_| ()))
        .with_context(|| format!("cannot keep {}", file.display()))?;
    Ok(kept)
}

/// Keeps the wanted number of processes running, until this task is dropped.
async fn keep_processes(
    program: Arc<Program>,
    invocations: Arc<Invocations>,
    mut wanted: watch::Receiver<usize>,
) {
    let mut processes = JoinSet::new();
    loop {
        let wanted_now = *wanted.borrow_and_update();
        while processes.len() < wanted_now {
            processes.spawn(keep_running(program.clone(), invocations.clone()));
        }
        if wanted.changed().await.is_err() {
            return;
        }
    }
}

/// Runs a process, and starts it again whenever it ends, until this task is dropped.
async fn keep_running(program: Arc<Program>, invocations: Arc<Invocations>) {
    loop {
        if let Err(error) = run(&program, &invocations).await {
            // A person looks into the log if a function does not answer.
            let log = append_to(&program.log);
            let _ = log.and_then(|mut log| writeln!(log, "{error:#}"));
        }
        sleep(RESTART_PAUSE).await;
    }
}

/// Opens a log. What is in it stays: with `--keep` it has the lines of earlier starts.
fn append_to(log: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(log)
}

/// Keeps the last lines of a log.
fn shorten(log: &Path, bytes_max: usize) -> io::Result<()> {
    let text = fs::read(log)?;
    let Some(over) = text.len().checked_sub(bytes_max).filter(|over| *over > 0) else {
        return Ok(());
    };
    let lines = text[over..].iter().position(|byte| *byte == b'\n');
    fs::write(log, lines.map_or(&[][..], |end| &text[over + end + 1..]))
}

async fn run(program: &Program, invocations: &Invocations) -> Result<()> {
    let log = append_to(&program.log)?;
    let (number, end) = invocations.add_process();
    let child = Command::new(&program.binary)
        // A list of processes shows the function of each.
        .arg0(&program.environment[FUNCTION])
        .env_clear()
        .envs(&program.environment)
        .env("AWS_LAMBDA_RUNTIME_API", format!("{}/{number}", program.runtime))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .kill_on_drop(true)
        .spawn();
    let ended = async {
        let mut child =
            child.with_context(|| format!("cannot start {}", program.binary.display()))?;
        tokio::select! {
            ended = child.wait() => drop(ended?),
            _ = end => child.kill().await?,
        }
        Ok(())
    };
    let ended = ended.await;
    invocations.remove_process(number);
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_is_too_long_keeps_its_last_lines() {
        let folder = TempDir::new().unwrap();
        let log = folder.path().join("f.log");
        let shortened = |text: &str, bytes_max| {
            fs::write(&log, text).unwrap();
            shorten(&log, bytes_max).unwrap();
            fs::read_to_string(&log).unwrap()
        };
        assert_eq!(shortened("one\ntwo\nthree\n", 14), "one\ntwo\nthree\n");
        assert_eq!(shortened("one\ntwo\nthree\n", 12), "two\nthree\n");
        assert_eq!(shortened("a long line", 4), "");
    }
}
