//! The list of mutations, and how they are tried.

use std::collections::BTreeSet;
use std::env;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use ringfence_oracle::mutations::copy::mutated;
use ringfence_oracle::mutations::hunt;
use ringfence_oracle::mutations::list::read;
use ringfence_oracle::mutations::place::Text;
use ringfence_oracle::mutations::root;

#[test]
fn the_text_of_every_mutation_occurs_once_in_its_file() {
    let all = read(root()).unwrap_or_else(|troubles| panic!("{troubles}"));
    let files: BTreeSet<_> = all.iter().map(|mutation| &mutation.file).collect();
    for file in files {
        let same: Vec<_> = all.iter().filter(|mutation| mutation.file == *file).collect();
        let source = std::fs::read_to_string(root().join(file)).unwrap();
        mutated(&source, &same).unwrap_or_else(|trouble| panic!("{file:?}: {trouble}"));
    }
    assert!(all.len() >= 150, "{} mutations", all.len());
}

/// `cargo proof mutants` builds all of them at once, so it would end if one did not exist.
#[test]
fn every_test_target_that_a_mutation_names_exists() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version=1"]);
    let metadata = cargo.current_dir(root()).output().unwrap().stdout;
    let metadata = String::from_utf8(metadata).unwrap();
    for mutation in read(root()).unwrap() {
        for run in &mutation.tests {
            let target = &run.target;
            let found = format!(r#""kind":["test"],"crate_types":["bin"],"name":"{target}""#);
            let exists = target.ends_with(".lib") || metadata.contains(&found);
            assert!(exists, "{mutation}: there is no test target {target}");
        }
    }
}

#[test]
fn a_place_is_found_across_lines_and_only_if_it_is_the_only_one() {
    let source = "if a {\n    b\n        .c()\n}\nif b {\n    d;\n}\n";
    let found = |text| Text::of(text).unwrap().find(source).map(|place| &source[place]);
    assert_eq!(found("if «a» {"), Ok("a"));
    assert_eq!(found("{ «b .c()» }"), Ok("b\n        .c()"));
    assert_eq!(found("if b { «d;»"), Ok("d;"));
    assert!(found("if").unwrap_err().contains("more than once"));
    assert!(found("if «c»").unwrap_err().contains("does not have"));
}

#[test]
fn a_test_gets_to_a_mutation_if_a_thread_of_its_name_does() {
    let said = "running 3 tests\ntest a::b ... ok\ntest c - should panic ... ok\ntest d ... ok\n";
    let files = ["7 a::b", "7 tokio-rt-worker", "7 c", "8 main", "8 "].map(str::to_owned);
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let reached = hunt::reached(&files, said);
    assert_eq!(reached, [(7, names(&["a::b", "c"])), (8, names(&[]))].into());
}

/// This program is started once more, with this test alone, and runs another one until it is interrupted.
#[test]
fn ctrl_c_ends_the_tests_that_run() {
    const AGAIN: &str = "RINGFENCE_INTERRUPTED";
    let sleeps = "echo; echo running; sleep 20; echo survived";
    if env::var_os(AGAIN).is_some() {
        hunt::end_with_ctrl_c().unwrap();
        let ended = hunt::run(Command::new("sh").args(["-c", sleeps]), Duration::MAX, || false);
        panic!("it is not interrupted: {ended:?}");
    }
    let mut again = Command::new(env::current_exe().unwrap());
    let name = "mutations::ctrl_c_ends_the_tests_that_run";
    again.args([name, "--exact", "--nocapture"]).env(AGAIN, "1").stdout(Stdio::piped());
    let mut again = again.spawn().unwrap();
    let mut lines = BufReader::new(again.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "running"), "nothing runs");
    Command::new("kill").args(["-INT", &again.id().to_string()]).status().unwrap();
    assert_eq!(again.wait().unwrap().code(), Some(130));
    // As long as a program has the pipe, there may come more.
    assert_eq!(lines.collect::<Vec<_>>(), [""; 0]);
}
