//! Runs tests with one mutation on after the other, until one of them notices it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::iter;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ringfence_local::PROOF;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use super::copy::{Program, Programs, REACHED, SWITCH, variables};
use super::list::{Mutation, Run};

/// Tests that take this much longer than without a mutation hang: twice as long, and half a minute.
const LONGER: (u32, Duration) = (2, Duration::from_secs(30));
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

/// What tests did without a mutation.
struct Unchanged {
    took: Duration,
    reached: Reached,
}

/// The tests that got to each switch. It is there without a test if others got to it: a program that a test has
/// started, or a thread of several tests.
pub type Reached = BTreeMap<u64, BTreeSet<String>>;

/// How far those tests go that grow with a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Bounds {
    /// As in `cargo test`.
    Quick,
    /// As in `cargo proof`.
    Full,
}

/// What is known of tests. They run without a mutation before they first run with one, so that slow tests that no
/// mutation asks for need not run at all.
type Known<'r> = BTreeMap<(&'r Run, Bounds), OnceLock<Result<Unchanged, String>>>;

/// How a mutation fared.
pub(super) enum Fate {
    /// By what.
    Noticed(String),
    Survived,
    Unreached,
    /// Its tests can't be run, or fail without it.
    Untried(String),
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Noticed(how) => f.write_str(how),
            Self::Survived => f.write_str("SURVIVED"),
            Self::Unreached => f.write_str("SURVIVED: its tests do not get to it"),
            Self::Untried(why) => write!(f, "NOT TRIED: {why}"),
        }
    }
}

/// Tries these mutations. Returns their fates, in their order.
pub(super) fn all(
    programs: &Programs,
    tree: &Path,
    mutations: &[&Mutation],
) -> Result<Vec<Fate>, String> {
    let runs = mutations.iter().flat_map(|mutation| &mutation.tests);
    let each = |run| [Bounds::Quick, Bounds::Full].map(|bounds| ((run, bounds), OnceLock::new()));
    let known: Known<'_> = runs.flat_map(each).collect();
    end_with_ctrl_c().map_err(|error| format!("Ctrl-C: {error}"))?;
    let done = AtomicUsize::new(0);
    Ok(in_parallel(mutations, |mutation| {
        let fate = fate(programs, tree, mutation, &known).unwrap_or_else(Fate::Untried);
        let (done, of) = (done.fetch_add(1, Relaxed) + 1, mutations.len());
        println!("{done} of {of} {mutation}: {fate}");
        fate
    }))
}

/// The results of all items, in their order. As many run at once as there are processors.
fn in_parallel<I: Sync, R: Send>(items: &[I], each: impl Fn(&I) -> R + Sync) -> Vec<R> {
    let (left, results) = (Mutex::new(items.iter().enumerate()), Mutex::new(BTreeMap::new()));
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some((number, item)) = next() {
            let result = each(item);
            results.lock().unwrap_or_else(PoisonError::into_inner).insert(number, result);
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    results.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
}

/// What tests do without a mutation. An error if they fail.
fn unchanged(
    programs: &Programs,
    tree: &Path,
    run: &Run,
    bounds: Bounds,
) -> Result<Unchanged, String> {
    let begun = Instant::now();
    let folder = unique(tree, "reached");
    let trouble = |error| format!("{}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(trouble)?;
    let variable = (REACHED, folder.as_ref());
    let (end, said) = tests(programs, tree, run, bounds, variable, UNCHANGED_MAX)?;
    match end {
        End::Passed => {}
        End::Failed(how) => return Err(format!("without a mutation, {run} fails: {how}")),
        End::Hang => return Err(format!("without a mutation, {run} hangs")),
    }
    let took = begun.elapsed();
    let files = fs::read_dir(&folder).map_err(trouble)?.flatten();
    let files: Vec<String> = files.filter_map(|file| file.file_name().into_string().ok()).collect();
    fs::remove_dir_all(&folder).map_err(trouble)?;
    Ok(Unchanged { took, reached: reached(&files, &said) })
}

/// What got to each switch: of the files for switches and threads, those with the name of a test.
pub fn reached(files: &[String], said: &str) -> Reached {
    let passed: BTreeSet<&str> = said.lines().filter_map(passed).collect();
    let mut reached = Reached::new();
    for (switch, thread) in files.iter().filter_map(|file| file.split_once(' ')) {
        let Ok(switch) = switch.parse() else { continue };
        let tests = reached.entry(switch).or_default();
        tests.extend(passed.contains(thread).then(|| thread.to_owned()));
    }
    reached
}

/// The fate of a mutation. First the tests alone run that get to it. If they all pass, each run is made in full: what one
/// test has begun may show in another one. A run that does not get to it can't notice it.
fn fate(
    programs: &Programs,
    tree: &Path,
    mutation: &Mutation,
    known: &Known<'_>,
) -> Result<Fate, String> {
    let switch = mutation.switch.to_string();
    let mut fate = Fate::Unreached;
    for bounds in [Bounds::Quick, Bounds::Full] {
        for run in &mutation.tests {
            let unchanged = || unchanged(programs, tree, run, bounds);
            let known = known[&(run, bounds)].get_or_init(unchanged);
            let Unchanged { took, reached } = known.as_ref().map_err(String::clone)?;
            let Some(names) = reached.get(&mutation.switch) else { continue };
            fate = Fate::Survived;
            let alone = (bounds == Bounds::Quick && !names.is_empty()).then(|| Run {
                target: run.target.clone(),
                names: iter::once("--exact".to_owned()).chain(names.iter().cloned()).collect(),
            });
            let which = alone.as_ref().unwrap_or(run);
            let (times, more) = LONGER;
            let (variable, most) = ((SWITCH, switch.as_ref()), *took * times + more);
            match tests(programs, tree, which, bounds, variable, most)?.0 {
                End::Passed => {}
                End::Failed(how) => return Ok(Fate::Noticed(format!("{}: {how}", run.target))),
                End::Hang => return Ok(Fate::Noticed(format!("{}: hangs", run.target))),
            }
        }
    }
    Ok(fate)
}

/// Runs tests with a variable for the mutations. Returns what they have said besides.
fn tests(
    programs: &Programs,
    tree: &Path,
    run: &Run,
    bounds: Bounds,
    variable: (&str, &OsStr),
    at_most: Duration,
) -> Result<(End, String), String> {
    let Program { file, package } = &programs[&run.target];
    let output = unique(tree, "tests");
    let mut command = Command::new(file);
    command.args(&run.names).current_dir(package).env("CARGO_MANIFEST_DIR", package);
    command.envs(variables(tree)?).env(variable.0, variable.1);
    // What tests would write into the repository, they compare.
    command.env_remove("UPDATE").env("INSTA_UPDATE", "no");
    match bounds {
        Bounds::Quick => command.env_remove(PROOF),
        Bounds::Full => command.env(PROOF, "1"),
    };
    let ended = File::create(&output).and_then(|to| {
        command.stdin(Stdio::null()).stdout(to.try_clone()?).stderr(to);
        self::run(&mut command, at_most, || {
            fs::read_to_string(&output).is_ok_and(|said| failed(&said).is_some())
        })
    });
    let ended = ended.map_err(|error| format!("{run}: {error}"))?;
    let said = fs::read(&output).map_err(|error| format!("{}: {error}", output.display()))?;
    let said = String::from_utf8_lossy(&said).into_owned();
    fs::remove_file(&output).map_err(|error| format!("{}: {error}", output.display()))?;
    if said.lines().any(|line| line == "running 0 tests") {
        return Err(format!("{run} has no tests"));
    }
    let end = match (failed(&said), ended) {
        (Some(test), _) => End::Failed(test.to_owned()),
        (None, None) => End::Hang,
        (None, Some(status)) if status.success() => End::Passed,
        (None, Some(status)) => End::Failed(status.to_string()),
    };
    Ok((end, said))
}

/// A name for a file that only this program writes.
fn unique(tree: &Path, kind: &str) -> PathBuf {
    static FILES: AtomicUsize = AtomicUsize::new(0);
    let number = FILES.fetch_add(1, Relaxed);
    tree.join(format!("target/{kind}-{}-{number}", process::id()))
}

/// The first test that has failed.
fn failed(said: &str) -> Option<&str> {
    said.lines().find_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"))
}

/// The name of the test that has passed.
fn passed(line: &str) -> Option<&str> {
    Some(line.strip_prefix("test ")?.strip_suffix(" ... ok")?.trim_end_matches(" - should panic"))
}

/// The process groups of the programs that run. Ctrl-C in the terminal does not reach them.
static GROUPS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn groups() -> MutexGuard<'static, BTreeSet<u32>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on Ctrl-C ends the programs that run, and then this one.
pub fn end_with_ctrl_c() -> io::Result<()> {
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
pub fn run(
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
