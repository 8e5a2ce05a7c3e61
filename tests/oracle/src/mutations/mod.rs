//! Mutations: small mistakes in the libraries and the application, each of which a test must notice.
//!
//! The list is in `tests/oracle/mutations`, a file for each library. `copy.rs` copies the repository and writes all
//! mutations into the copy, each behind a switch, so that one build holds them all. `hunt.rs` runs, for each of
//! them, the tests that are nearest to it. The code of the repository itself knows nothing of this.

pub mod copy;
pub mod hunt;
pub mod list;
pub mod place;

use std::path::Path;

use hunt::Fate;
use list::{Mutation, Run};

/// The most mutations, in hundredths, that may survive.
const SURVIVORS_MAX: usize = 2;

/// How `cargo proof mutants` is called.
pub const USAGE: &str = "cargo proof mutants [--list] [--only <part of a line of the list>]…";

/// Runs `cargo proof mutants` with these arguments.
///
/// # Errors
/// The mutations that no test noticed, if they are too many; or why they can't be tried.
pub fn run(arguments: &[String]) -> Result<String, String> {
    let usage = || format!("usage: {USAGE}");
    let (mut lists, mut only) = (false, Vec::new());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match &**argument {
            "--list" => lists = true,
            "--only" => only.push(arguments.next().ok_or_else(usage)?),
            _ => return Err(usage()),
        }
    }
    let root = root();
    let all = list::read(root)?;
    let is_chosen = |mutation: &&Mutation| {
        let line = mutation.to_string();
        only.is_empty() || only.iter().any(|part| line.contains(&**part))
    };
    let chosen: Vec<&Mutation> = all.iter().filter(is_chosen).collect();
    if lists {
        chosen.iter().for_each(|mutation| println!("{mutation}"));
        return Ok(format!("{} of {}", chosen.len(), all.len()));
    }
    if chosen.is_empty() {
        return Err(format!("no line of the list has one of {only:?}; --list shows them"));
    }
    let tree = copy::with(root, &all)?;
    // The copy has all mutations, so that a choice changes no file of it. Only the tests that are needed are built.
    let runs: Vec<&Run> = chosen.iter().flat_map(|mutation| &mutation.tests).collect();
    let programs = copy::build(root, &tree, &runs)?;
    let fates = hunt::all(&programs, &tree, &chosen)?;
    let (mut survivors, mut untried) = (0, 0);
    for (mutation, fate) in chosen.iter().zip(&fates) {
        match fate {
            Fate::Noticed(_) => continue,
            Fate::Survived | Fate::Unreached => survivors += 1,
            Fate::Untried(_) => untried += 1,
        }
        let Mutation { text, replacement, tests, .. } = mutation;
        let tests = tests.iter().map(Run::to_string).collect::<Vec<_>>().join(", ");
        println!("\n{mutation}: {fate}\n  - {}\n  + {replacement}\n  by {tests}", text.marked());
    }
    let said = format!("{survivors} of {} mutations survived, {untried} not tried", chosen.len());
    if survivors * 100 > chosen.len() * SURVIVORS_MAX || untried > 0 {
        return Err(format!("{said}; {SURVIVORS_MAX} % may survive, and each is to be tried"));
    }
    Ok(said)
}

/// The repository.
#[must_use]
pub fn root() -> &'static Path {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.expect("the package is in tests/oracle")
}
