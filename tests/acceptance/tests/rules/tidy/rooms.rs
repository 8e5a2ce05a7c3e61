//! What is in which folder, and what a library may depend on.

use std::{collections::BTreeSet, fs};

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

/// The packages that a manifest's text depends on, with the lines that name them, `dev-dependencies` included.
fn dependencies(manifest: &str) -> Vec<(&str, &str)> {
    let mut is_list = false;
    let mut found = Vec::new();
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[') {
            is_list = section.trim_end_matches(']').ends_with("dependencies");
        } else if is_list && let Some((name, _)) = line.split_once(['.', '=']) {
            found.push((name.trim(), line));
        }
    }
    found
}

/// The names of the packages in folders of the workspace.
fn packages(folder: &str) -> BTreeSet<String> {
    let folders = fs::read_dir(workspace_root().join(folder)).unwrap();
    let manifests =
        folders.filter_map(|it| fs::read_to_string(it.unwrap().path().join("Cargo.toml")).ok());
    let name = |manifest: String| {
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = "));
        name.unwrap().trim_matches('"').to_owned()
    };
    manifests.map(name).collect()
}

#[test]
fn a_library_depends_on_no_application_and_on_no_proof() {
    let stacks = ["functions", "projects", "projects/functions", "starter", "starter/functions"];
    let folders = stacks.into_iter().chain(["tests"]);
    let all: BTreeSet<String> = folders.flat_map(packages).collect();
    let mut troubles = Vec::new();
    for library in fs::read_dir(workspace_root().join("shared")).unwrap() {
        let manifest = library.unwrap().path().join("Cargo.toml");
        let text = fs::read_to_string(&manifest).unwrap();
        let named = dependencies(&text).into_iter().filter(|(name, _)| all.contains(*name));
        troubles.extend(named.map(|(_, line)| {
            let manifest = manifest.strip_prefix(workspace_root()).unwrap().display();
            format!("{manifest}: remove `{line}`; the tests of a library have a small domain of their own")
        }));
    }
    check_none(&troubles);
}

#[test]
fn dependencies_of_each_kind_are_found() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\na.workspace = true\n\n[dev-dependencies]\n\
                    b = { workspace = true }\n[features]\nc = []\n[target.'cfg(unix)'.dependencies]\nd = \"1\"\n";
    let names: Vec<_> = dependencies(manifest).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a", "b", "d"]);
}
