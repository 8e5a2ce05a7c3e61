//! `cargo proof [part] [schedules] [first seed]`: all checks that no update is lost, in full. More schedules make a
//! longer run: queries, names and the import in proportion, the model with one more writer. Fewer make a shorter one:
//! half of the model's states, three of the seven curves of contention.

use std::cmp::Ordering::{Equal, Greater, Less};
use std::io::{IsTerminal as _, Write as _, stderr};
use std::process::{ExitCode, Stdio};
use std::time::Instant;
use std::{env, fs};

use ringfence_harness::PROOF;
use ringfence_local::programs::cargo;
use ringfence_local::workspace_root;
use ringfence_oracle::{
    Schedule, contention, each, import, names, picture, queries, run, soak, throughput,
};
use ringfence_proof::environment::ENVIRONMENTS;
use ringfence_proof::mutants::{MUTANTS, break_no_safety, hunt, section};
use ringfence_proof::property::Property;
use ringfence_proof::protocol::Protocol;
use ringfence_proof::repair::{Rules, Scenario, explore_all};
use ringfence_proof::runs::{self, full_runs};
use ringfence_proof::{copies, feed};

/// The number of schedules without an argument.
const SCHEDULES: u64 = 10_000;
/// Sets of tags for each schedule.
const SETS: u64 = 100;
/// Events of the import for each schedule.
const IMPORTED: u64 = 10;
/// The shortest trace of each mutant.
const TRACES: &str = include_str!("../../../../docs/no-lost-update-traces.txt");
/// The runs of the model.
const RUNS: &str = include_str!("../../../../docs/no-lost-update-runs.txt");
/// The table of orders by the copies of a fence, and how many products each of its figures is of.
const LIMITS: &str = include_str!("../../../../docs/limits.md");
const COPIED_PRODUCTS: u64 = 4;
/// The picture of contention in docs/limits.md.
const PICTURE: &str = "docs/pictures/contention.svg";
/// Tests that go further in a proof: how cargo selects them, and a part of their names.
const TESTS: [(&[&str], &str); 13] = [
    (&["--test", "feed"], ""),
    (&["--test", "views"], ""),
    (&["--test", "dcb-log"], ""),
    (&["--test", "document-log"], ""),
    (&["--test", "aggregate-log"], ""),
    (&["--test", "cases"], ""),
    (&["--test", "ready"], ""),
    (&["--test", "projects"], "races"),
    (&["--test", "project"], "publishing"),
    (&["--test", "project"], "together"),
    (&["--test", "acceptance"], "console"),
    (&["--lib"], "publisher::crashes"),
    (&["--lib"], "project::"),
];
const USAGE: &str = "usage: cargo proof [rules|model|repair|copies|feed|names|queries|schedules|claims|clocks|lanes|\
     queue|dues|import|meetings|tests|contention|throughput|soak] [how many schedules, minutes of a soak, or seconds of \
     indexing] [first seed]";

struct Extent {
    schedules: u64,
    seed: u64,
}

type Part = (&'static str, fn(&Extent) -> Result<String, String>);

const PARTS: [Part; 19] = [
    ("rules", rules),
    ("model", model),
    ("repair", repair),
    ("copies", copies),
    ("feed", feed),
    ("names", check_names),
    ("queries", check_queries),
    ("schedules", schedules),
    ("claims", claims),
    ("clocks", |extent| check_reacting(extent, "clocks", Schedule::of_clocks)),
    ("lanes", |extent| check_reacting(extent, "lanes", Schedule::of_lanes)),
    ("queue", |extent| check_reacting(extent, "queue", Schedule::of_queue)),
    ("dues", |extent| check_reacting(extent, "dues", Schedule::of_dues)),
    ("import", imports),
    ("meetings", meet),
    ("tests", tests),
    ("contention", contend),
    ("throughput", measure),
    ("soak", soak_shop),
];
/// They draw or print what tests assert in small, or take half an hour.
const ASKED: [&str; 3] = ["contention", "throughput", "soak"];

fn main() -> ExitCode {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let named = arguments.first().is_some_and(|first| first.parse::<u64>().is_err());
    let part = named.then(|| arguments.remove(0));
    let numbers: Result<Vec<u64>, _> = arguments.iter().map(|number| number.parse()).collect();
    let known = |part: &String| PARTS.iter().any(|(name, _)| name == part);
    let (Ok(numbers @ ([] | [_] | [_, _])), true) =
        (numbers.as_deref(), part.as_ref().is_none_or(known))
    else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    let number = |n: usize, otherwise| numbers.get(n).copied().unwrap_or(otherwise);
    let extent = Extent { schedules: number(0, SCHEDULES), seed: number(1, 0) };
    let mut fine = true;
    for (name, check) in PARTS {
        if part.as_ref().map_or(ASKED.contains(&name), |part| part != name) {
            continue;
        }
        fine &= report(name, || check(&extent));
    }
    if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs a check and prints its end.
fn report(name: &str, check: impl FnOnce() -> Result<String, String>) -> bool {
    let begun = Instant::now();
    let ended = check();
    progress_ends();
    let seconds = begun.elapsed().as_secs();
    match &ended {
        Ok(bounds) => println!("{name}: {bounds}; {seconds} s"),
        Err(how) => println!("{name} FAILED after {seconds} s: {how}"),
    }
    ended.is_ok()
}

fn imports(extent: &Extent) -> Result<String, String> {
    import::check(extent.schedules * IMPORTED)
}

/// Products for the meetings of commands, one after the other.
const MEETINGS: u64 = 20;

/// Few commands give up if many meet.
fn meet(_extent: &Extent) -> Result<String, String> {
    contention::check(MEETINGS, contention::TURN_SECONDS)
}

/// The tests pass to their full bound.
fn tests(_extent: &Extent) -> Result<String, String> {
    let named = TESTS.map(|(targets, names)| [targets, &[names]].concat().join(" "));
    for ((targets, names), named) in TESTS.iter().zip(&named) {
        let mut cargo = cargo();
        cargo.args(["test", "--quiet"]).args(*targets).args(["--", names]).env(PROOF, "1");
        let ended = cargo.current_dir(workspace_root()).stderr(Stdio::inherit()).output();
        let output = ended.map_err(|error| format!("cargo: {error}"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let mut results = said.lines().filter(|line| line.starts_with("test result: "));
        let ran = results.any(|line| !line.contains(" 0 passed"));
        if !output.status.success() || !ran {
            return Err(format!("cargo test {named} failed or ran no test:\n{said}"));
        }
    }
    Ok(named.map(|named| format!("cargo test {}", named.trim_end())).join(", "))
}

/// Products, one after the other, at each point of the curves of contention.
const PRODUCTS: u64 = 5;

/// The picture has these curves. With `UPDATE`, a full run draws it.
fn contend(extent: &Extent) -> Result<String, String> {
    let is_full = extent.schedules >= SCHEDULES;
    let orders: &[u64] = if is_full { &contention::ORDERS } else { &[10] };
    let curves = contention::curves(PRODUCTS, orders);
    let path = workspace_root().join(PICTURE);
    if is_full && env::var_os("UPDATE").is_some() {
        fs::write(&path, picture::picture(&curves)).map_err(|error| error.to_string())?;
    }
    let drawn = fs::read_to_string(&path).map_err(|error| format!("{PICTURE}: {error}"))?;
    let curves: Vec<_> = curves.iter().map(picture::curve).collect();
    let missing = curves.iter().filter(|curve| !drawn.lines().any(|line| line == **curve));
    let missing: Vec<_> = missing.cloned().collect();
    if !missing.is_empty() {
        return Err(format!("{PICTURE} lacks the curves\n{}", missing.join("\n")));
    }
    if is_full {
        let rows = contention::of_copies(COPIED_PRODUCTS);
        if !LIMITS.contains(&rows) {
            return Err(format!(
                "docs/limits.md has other rows for copies of a fence than\n{rows}"
            ));
        }
    }
    Ok(format!("{PRODUCTS} products at each point, {} curves", curves.len()))
}

/// Prints what one stack carries in a second.
fn measure(extent: &Extent) -> Result<String, String> {
    println!("| part | a second |\n|---|---|");
    let seconds = asked(extent, THROUGHPUT_SECONDS);
    throughput::all(seconds, |measured| println!("{measured}"));
    Ok("simulated".to_owned())
}

/// Minutes of a soak, and simulated seconds of indexing, without a number.
const SOAK_MINUTES: u64 = 30;
const THROUGHPUT_SECONDS: u64 = 10;

/// The number that was given.
fn asked(extent: &Extent, default: u64) -> u64 {
    if extent.schedules == SCHEDULES { default } else { extent.schedules }
}

/// Runs the shop on this machine while functions are killed.
fn soak_shop(extent: &Extent) -> Result<String, String> {
    soak::check(asked(extent, SOAK_MINUTES), extent.seed)
}

/// Overwrites one line of a terminal. Without a terminal it does nothing.
fn progress(every: u64, of: &str, done: u64, all: u64) {
    if done.is_multiple_of(every) && stderr().is_terminal() {
        eprint!("\r\x1b[K{done} of {all} {of}");
        stderr().flush().unwrap_or_default();
    }
}

fn progress_ends() {
    if stderr().is_terminal() {
        eprint!("\r\x1b[K");
    }
}

/// Every mutant of the protocol is caught, with the trace in the file of traces. Mutants of order and progress break no
/// safety.
fn rules(_extent: &Extent) -> Result<String, String> {
    let mut wrong = Vec::new();
    for mutant in &MUTANTS {
        let Some(caught) = hunt(mutant, 0) else {
            wrong.push(format!("not caught: {}", mutant.name));
            continue;
        };
        let section = section(mutant, Some(&caught));
        if !TRACES.contains(section.trim_end()) {
            wrong.push(format!("docs/no-lost-update-traces.txt has another trace than\n{section}"));
        }
        let (steps, states) = (caught.trace.len(), caught.states);
        let property = mutant.breaks.name();
        println!("  {}: {property}, {steps} steps, {states} states", mutant.name);
    }
    wrong.extend(break_no_safety(&ENVIRONMENTS).err());
    if wrong.is_empty() {
        return Ok(format!("{} mutants of the protocol, all caught", MUTANTS.len()));
    }
    Err(wrong.join("\n"))
}

/// The protocol breaks nothing within the bounds, and the file of runs has the same numbers.
fn model(extent: &Extent) -> Result<String, String> {
    println!("| who | environment | scenarios | states | transitions | broken |");
    println!("|---|---|---|---|---|---|");
    let extent = match extent.schedules.cmp(&SCHEDULES) {
        Less => runs::Extent::Half,
        Equal => runs::Extent::Full,
        Greater => runs::Extent::Longer,
    };
    let (mut sum, mut wrong) = (0, Vec::new());
    for run in full_runs(extent) {
        let all = run.scenarios.len() as u64;
        let of = format!("scenarios of {}, {}", run.name, run.environment.name);
        let totals =
            run.explore(Protocol::RINGFENCE, &|done| progress(1_000, &of, done as u64, all));
        progress_ends();
        let (states, transitions, broken) =
            (totals.states, totals.transitions, totals.broken.len());
        let name = run.environment.name;
        let row =
            format!("| {} | {name} | {all} | {states} | {transitions} | {broken} |", run.name);
        println!("{row}");
        if extent <= runs::Extent::Full && !RUNS.contains(&row) {
            wrong.push(format!("docs/no-lost-update-runs.txt has other numbers than\n{row}"));
        }
        for (property, (scenarios, example)) in &totals.broken {
            wrong.push(format!("{scenarios} scenarios break {}:\n{example}", property.name()));
        }
        sum += states;
    }
    if wrong.is_empty() { Ok(format!("{sum} states")) } else { Err(wrong.join("\n")) }
}

/// `repair` and `verify` are right about every fence, whatever happens beside them.
fn repair(_extent: &Extent) -> Result<String, String> {
    let beside = [(0, 1), (1, 1), (2, 1), (1, 2)];
    let repairs = beside.map(|(appends, repairs)| (appends, repairs, Rules::REPAIR));
    let checks = [0, 1, 2].map(|appends| (appends, 1, Rules::VERIFY));
    let mut states = 0;
    for (appends, repairs, rules) in repairs.into_iter().chain(checks) {
        let (visited, broken) = explore_all(&Scenario::all(appends, repairs), rules);
        states += visited;
        if let Some(trace) = broken {
            return Err(format!("{rules:?}\n{trace}"));
        }
    }
    Ok(format!("{states} states of repairs beside writers"))
}

/// No check of a copy misses an event, whatever writers and levellings do beside it.
fn copies(_extent: &Extent) -> Result<String, String> {
    let explore =
        |scenarios: &_| copies::explore_all(scenarios, copies::Rules::COPIES, &Property::ALL);
    let (small, more) = (explore(&copies::Scenario::SMALL), explore(&copies::Scenario::MORE));
    match small.1.or(more.1) {
        Some(trace) => Err(trace),
        None => Ok(format!("{} states of copies beside writers", small.0 + more.0)),
    }
}

/// The index gets each event once and in order, whatever indexers do beside each other.
fn feed(_extent: &Extent) -> Result<String, String> {
    let few = feed::explore_all(&feed::Scenario::FEW, feed::Rules::FEED);
    let more = feed::explore_all(&feed::Scenario::MORE, feed::Rules::FEED);
    match few.1.or(more.1) {
        Some(trace) => Err(trace),
        None => Ok(format!("{} states of indexers beside each other", few.0 + more.0)),
    }
}

fn check_names(extent: &Extent) -> Result<String, String> {
    let seeds = (extent.schedules * SETS).div_ceil(names::SEED_SETS);
    seeded(extent, "names", seeds, names::SEED_SETS, "sets of tags", names::check)
}

fn check_queries(extent: &Extent) -> Result<String, String> {
    let seeds = extent.schedules.div_ceil(queries::SEED_QUERIES);
    let what = "pages and as many conditions";
    seeded(extent, "queries", seeds, queries::SEED_QUERIES, what, queries::check)
}

fn seeded(
    extent: &Extent,
    part: &str,
    seeds: u64,
    each_makes: u64,
    what: &str,
    check: fn(u64) -> Result<(), String>,
) -> Result<String, String> {
    let of = format!("seeds of {part}");
    let checked = each(seeds, extent.seed, check, &|done| progress(1, &of, done, seeds));
    match checked {
        Ok(_) => Ok(format!("{} {what}, seeds from {}", seeds * each_makes, extent.seed)),
        Err((seed, how)) => Err(format!("{how}\nagain: cargo proof {part} 1 {seed}")),
    }
}

fn schedules(extent: &Extent) -> Result<String, String> {
    check_schedules(extent, "schedules", Schedule::new)
}

fn claims(extent: &Extent) -> Result<String, String> {
    check_schedules(extent, "claims", Schedule::of_claims)
}

/// Schedules of commands for each of the others, which take ten times as long.
const LONGER: u64 = 10;

fn check_reacting(extent: &Extent, part: &str, of: fn(u64) -> Schedule) -> Result<String, String> {
    let schedules = extent.schedules.div_ceil(LONGER);
    check_schedules(&Extent { schedules, ..*extent }, part, of)
}

fn check_schedules(extent: &Extent, part: &str, of: fn(u64) -> Schedule) -> Result<String, String> {
    let Extent { schedules, seed } = *extent;
    match run(schedules, seed, of, None, &|done| progress(100, part, done, schedules)) {
        Ok(tally) => Ok(format!("from {seed}: {tally:?}")),
        Err(difference) => {
            // The seed alone does not name a schedule of claims.
            let again = if part == "claims" { "schedules" } else { part };
            let seed = difference.schedule.seed;
            Err(format!("{difference}\nagain: cargo proof {again} 1 {seed}"))
        }
    }
}
