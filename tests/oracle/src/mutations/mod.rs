//! Mutations: small mistakes in the libraries and the application, each of which a test must notice.
//!
//! The list is in `tests/oracle/mutations`, a file for each library. `copy.rs` copies the repository and writes all
//! mutations into the copy, each behind a switch, so that one build holds them all. `hunt.rs` runs, for each of
//! them, the tests that are nearest to it. The code of the repository itself knows nothing of this.

mod copy;
mod hunt;
mod list;
mod place;
#[cfg(test)]
mod tests;

use std::path::Path;

use list::{Mutation, Run};

/// The most mutations, in hundredths, that may survive.
const SURVIVORS_MAX: usize = 2;

/// How `cargo proof mutants` is called.
pub const USAGE: &str = "cargo proof mutants [--list] [--only <part of a line of the list>]";

/// Runs `cargo proof mutants` with these arguments.
///
/// # Errors
/// The mutations that no test noticed, if they are too many; or why they can't be tried.
pub fn run(arguments: &[String]) -> Result<String, String> {
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let (lists, only) = match arguments[..] {
        [] => (false, ""),
        ["--list"] => (true, ""),
        ["--only", only] => (false, only),
        ["--list", "--only", only] | ["--only", only, "--list"] => (true, only),
        _ => return Err(format!("usage: {USAGE}")),
    };
    let root = root();
    let all = list::read(root)?;
    let chosen: Vec<&Mutation> =
        all.iter().filter(|mutation| mutation.to_string().contains(only)).collect();
    if lists {
        chosen.iter().for_each(|mutation| println!("{mutation}"));
        return Ok(format!("{} of {}", chosen.len(), all.len()));
    }
    if chosen.is_empty() {
        return Err(format!("no line of the list has {only:?}; --list shows them"));
    }
    let tree = copy::with(root, &all)?;
    // The copy has all mutations, so that a choice changes no file of it. Only the tests that are needed are built.
    let runs: Vec<&Run> = chosen.iter().flat_map(|mutation| &mutation.tests).collect();
    let programs = copy::build(root, &tree, &runs)?;
    let survivors = hunt::all(&programs, &tree, &chosen)?;
    for mutation in &survivors {
        let Mutation { text, replacement, .. } = mutation;
        println!("\nSURVIVED {mutation}\n  - {}\n  + {replacement}", text.marked());
        println!(
            "  after {}",
            mutation.tests.iter().map(Run::to_string).collect::<Vec<_>>().join(", ")
        );
    }
    let said = format!("{} of {} mutations survived", survivors.len(), chosen.len());
    if survivors.len() * 100 > chosen.len() * SURVIVORS_MAX {
        return Err(format!("{said}; {SURVIVORS_MAX} % may"));
    }
    Ok(said)
}

/// The repository.
fn root() -> &'static Path {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.expect("the package is in tests/oracle")
}
