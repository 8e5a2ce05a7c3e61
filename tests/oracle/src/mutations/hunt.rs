//! Runs tests with one mutation on after the other, until one of them notices it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{self, Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ringfence_local::PROOF;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use super::copy::{Program, Programs, SWITCH, variables};
use super::list::{Mutation, Run};

/// Tests that take this much longer than without a mutation hang: five times as long, and half a minute.
const LONGER: (u32, Duration) = (5, Duration::from_secs(30));
/// The longest that tests take without a mutation.
const UNCHANGED_MAX: Duration = Duration::from_secs(600);
/// Between two looks whether tests have ended.
const LOOK: Duration = Duration::from_millis(50);

/// How tests ended.
enum End {
    Passed,
    Failed(String),
    Hang,
}

/// How long tests take without a mutation. They run without one before they first run with one, so that slow tests
/// that no mutation gets to need not run at all.
type Took<'r> = BTreeMap<&'r Run, OnceLock<Result<Duration, String>>>;

/// Tries these mutations. Returns those that no test noticed.
pub(super) fn all<'m>(
    programs: &Programs,
    tree: &Path,
    mutations: &[&'m Mutation],
) -> Result<Vec<&'m Mutation>, String> {
    let runs = mutations.iter().flat_map(|mutation| &mutation.tests);
    let took: Took<'_> = runs.map(|run| (run, OnceLock::new())).collect();
    end_with_ctrl_c().map_err(|error| format!("Ctrl-C: {error}"))?;
    let done = AtomicUsize::new(0);
    let ends = in_parallel(mutations, |mutation| {
        let noticed = noticed(programs, tree, mutation, &took)?;
        let how = noticed.as_deref().unwrap_or("SURVIVED");
        let (done, of) = (done.fetch_add(1, Relaxed) + 1, mutations.len());
        println!("{done} of {of} {mutation}: {how}");
        Ok(noticed.is_none().then_some(*mutation))
    });
    Ok(ends?.into_iter().flatten().collect())
}

/// The results of all items, in their order. As many run at once as there are processors. After an error no further
/// one begins.
fn in_parallel<I: Sync, R: Send>(
    items: &[I],
    each: impl Fn(&I) -> Result<R, String> + Sync,
) -> Result<Vec<R>, String> {
    let (left, results) = (Mutex::new(items.iter().enumerate()), Mutex::new(BTreeMap::new()));
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some((number, item)) = next() {
            let result = each(item);
            if result.is_err() {
                while next().is_some() {}
            }
            results.lock().unwrap_or_else(PoisonError::into_inner).insert(number, result);
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    results.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
}

/// How long tests take without a mutation. An error if they fail.
fn unchanged(programs: &Programs, tree: &Path, run: &Run) -> Result<Duration, String> {
    let begun = Instant::now();
    match tests(programs, tree, run, None, UNCHANGED_MAX)? {
        End::Passed => Ok(begun.elapsed()),
        End::Failed(how) => Err(format!("without a mutation, {run} fails: {how}")),
        End::Hang => Err(format!("without a mutation, {run} hangs")),
    }
}

/// What noticed a mutation: a test that fails, or tests that hang.
fn noticed(
    programs: &Programs,
    tree: &Path,
    mutation: &Mutation,
    took: &Took<'_>,
) -> Result<Option<String>, String> {
    for run in &mutation.tests {
        let took = took[run].get_or_init(|| unchanged(programs, tree, run)).clone()?;
        let (times, more) = LONGER;
        match tests(programs, tree, run, Some(mutation.switch), took * times + more)? {
            End::Passed => {}
            End::Failed(how) => return Ok(Some(format!("{run}: {how}"))),
            End::Hang => return Ok(Some(format!("{run}: hangs"))),
        }
    }
    Ok(None)
}

/// Runs tests with one mutation on, or with none.
fn tests(
    programs: &Programs,
    tree: &Path,
    run: &Run,
    switch: Option<u64>,
    at_most: Duration,
) -> Result<End, String> {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let Program { file, package } = &programs[&run.target];
    let name = format!("target/tests-{}-{}.txt", process::id(), RUNS.fetch_add(1, Relaxed));
    let output = tree.join(name);
    let mut command = Command::new(file);
    command.args(&run.names).current_dir(package).env("CARGO_MANIFEST_DIR", package);
    command.envs(variables(tree)?).envs(switch.map(|switch| (SWITCH, switch.to_string())));
    // What tests would write into the repository, they compare.
    command.env_remove("UPDATE").env("INSTA_UPDATE", "no");
    // They run to the bounds of a proof.
    command.env(PROOF, "1");
    let ended = File::create(&output).and_then(|to| {
        command.stdin(Stdio::null()).stdout(to.try_clone()?).stderr(to);
        self::run(&mut command, at_most, || {
            fs::read_to_string(&output).is_ok_and(|said| failed(&said).is_some())
        })
    });
    let ended = ended.map_err(|error| format!("{run}: {error}"))?;
    let said = fs::read(&output).map_err(|error| format!("{}: {error}", output.display()))?;
    let said = String::from_utf8_lossy(&said);
    fs::remove_file(&output).map_err(|error| format!("{}: {error}", output.display()))?;
    if said.lines().any(|line| line == "running 0 tests") {
        return Err(format!("{run} has no tests"));
    }
    Ok(match (failed(&said), ended) {
        (Some(test), _) => End::Failed(test.to_owned()),
        (None, None) => End::Hang,
        (None, Some(status)) if status.success() => End::Passed,
        (None, Some(status)) => End::Failed(status.to_string()),
    })
}

/// The first test that has failed.
fn failed(said: &str) -> Option<&str> {
    said.lines().find_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"))
}

/// The process groups of the programs that run. Ctrl-C in the terminal does not reach them.
static GROUPS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn groups() -> MutexGuard<'static, BTreeSet<u32>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on Ctrl-C ends the programs that run, and then this one.
pub(super) fn end_with_ctrl_c() -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut interrupt = runtime.block_on(async { signal(SignalKind::interrupt()) })?;
    thread::spawn(move || {
        runtime.block_on(interrupt.recv());
        // As long as they are locked, no program starts.
        let groups = groups();
        for group in groups.iter() {
            let _ = kill(*group);
        }
        process::exit(130);
    });
    Ok(())
}

/// Runs a program until it ends. If it takes longer than it may, or if nothing more matters, it is ended, with all
/// that it has started.
pub(super) fn run(
    command: &mut Command,
    at_most: Duration,
    is_enough: impl Fn() -> bool,
) -> io::Result<Option<ExitStatus>> {
    let mut child = {
        let mut groups = groups();
        let child = command.process_group(0).spawn()?;
        groups.insert(child.id());
        child
    };
    let ended = wait(&mut child, at_most, is_enough);
    groups().remove(&child.id());
    ended
}

fn wait(
    child: &mut Child,
    at_most: Duration,
    is_enough: impl Fn() -> bool,
) -> io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    while begun.elapsed() < at_most && !is_enough() {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(LOOK);
    }
    kill(child.id())?;
    child.wait()?;
    Ok(None)
}

fn kill(group: u32) -> io::Result<()> {
    Command::new("kill").args(["-KILL", "--", &format!("-{group}")]).status().map(drop)
}
