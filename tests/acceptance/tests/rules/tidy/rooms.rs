//! What is in which folder, and what a library may depend on.

use std::{collections::BTreeSet, fs, path::Path};

use ringfence_local::workspace_root;
use ringfence_testing::template::check_none;
use ringfence_testing::{check_rooms, check_schemas};
use stack::Shop;

#[test]
fn every_context_is_listed_and_every_slice_stands_alone_and_has_a_binary() {
    check_rooms::<Shop>();
}

#[test]
fn what_was_released_is_still_there_and_every_reader_reads_it() {
    check_schemas::<Shop>();
}

/// The packages that a manifest's text depends on, with the lines that name them; those of tests too, if they are asked for.
fn dependencies(manifest: &str, of_tests: bool) -> Vec<(&str, &str)> {
    let mut is_list = false;
    let mut found = Vec::new();
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[') {
            is_list = section.trim_end_matches(']').ends_with("dependencies")
                && (of_tests || !section.contains("dev-dependencies"));
        } else if is_list && let Some((name, _)) = line.split_once(['.', '=']) {
            found.push((name.trim(), line));
        }
    }
    found
}

/// The manifests of the packages in a folder of the workspace: their paths and texts.
fn manifests(folder: &str) -> Vec<(String, String)> {
    let folders = fs::read_dir(workspace_root().join(folder)).unwrap();
    let paths = folders.map(|it| it.unwrap().path().join("Cargo.toml"));
    let shown = |path: &Path| path.strip_prefix(workspace_root()).unwrap().display().to_string();
    paths.filter_map(|path| Some((shown(&path), fs::read_to_string(&path).ok()?))).collect()
}

/// The names of the packages in a folder of the workspace.
fn packages(folder: &str) -> BTreeSet<String> {
    let name = |(_, manifest): (String, String)| {
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = "));
        name.unwrap().trim_matches('"').to_owned()
    };
    manifests(folder).into_iter().map(name).collect()
}

#[test]
fn a_library_depends_on_no_application_and_on_no_proof() {
    let stacks = ["functions", "projects", "projects/functions", "starter", "starter/functions"];
    let folders = stacks.into_iter().chain(["tests"]);
    let all: BTreeSet<String> = folders.flat_map(packages).collect();
    let why = "the tests of a library have a small domain of their own";
    check_none(
        &[troubles("shared", true, &all, why), troubles("shared/compat", true, &all, why)].concat(),
    );
}

/// A line for each dependency of the packages in a folder on one of others.
fn troubles(folder: &str, of_tests: bool, others: &BTreeSet<String>, why: &str) -> Vec<String> {
    let manifests = manifests(folder);
    let of = |(path, text): &(String, String)| {
        let named = dependencies(text, of_tests).into_iter();
        let named = named.filter(|(name, _)| others.contains(*name));
        named.map(|(_, line)| format!("{path}: remove `{line}`; {why}")).collect::<Vec<_>>()
    };
    manifests.iter().flat_map(of).collect()
}

#[test]
fn a_library_depends_on_no_tool_and_on_no_log_in_another_layout() {
    let (tools, logs) = (packages("tools"), packages("shared/compat"));
    let mut found =
        troubles("shared", false, &logs, "a log implements `Source`, and a stack lists it");
    for folder in ["shared", "shared/compat"] {
        found.extend(troubles(folder, false, &tools, "it runs on AWS, and tools do not"));
    }
    check_none(&found);
}

#[test]
fn dependencies_of_each_kind_are_found() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\na.workspace = true\n\n[dev-dependencies]\n\
                    b = { workspace = true }\n[features]\nc = []\n[target.'cfg(unix)'.dependencies]\nd = \"1\"\n";
    let names = |of_tests| dependencies(manifest, of_tests).into_iter().map(|(name, _)| name);
    assert_eq!(names(true).collect::<Vec<_>>(), ["a", "b", "d"]);
    assert_eq!(names(false).collect::<Vec<_>>(), ["a", "d"]);
}
