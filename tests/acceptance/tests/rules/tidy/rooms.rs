//! The folders of crates, and the dependencies that a library may have.

use std::{collections::BTreeSet, fs};

use ringfence_local::workspace_root;
use ringfence_testing::template::check_none;
use ringfence_testing::{check_rooms, check_schemas};
use stack::Shop;

use crate::tidy::{LIBRARIES, packages};

#[test]
fn every_context_is_listed_and_every_slice_stands_alone_and_has_a_binary() {
    check_rooms::<Shop>();
}

#[test]
fn released_names_still_exist_and_every_reader_reads_them() {
    check_schemas::<Shop>();
}

/// The packages that a manifest's text depends on, with the lines that name them. With `of_tests`, also the packages
/// that only tests need.
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

/// The names of the packages in a folder of the workspace.
fn names(room: &str) -> BTreeSet<String> {
    let manifests = packages(room).map(|it| fs::read_to_string(it.join("Cargo.toml")).unwrap());
    let name = |manifest: String| {
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = "));
        name.unwrap().trim_matches('"').to_owned()
    };
    manifests.map(name).collect()
}

/// Lines of the manifests in these rooms that name a package of the other rooms. With `with_dev`, also dependencies of
/// tests.
fn wrong(rooms: &[&str], others: &[&str], with_dev: bool) -> Vec<String> {
    let others: BTreeSet<String> = others.iter().flat_map(|room| names(room)).collect();
    let mut troubles = Vec::new();
    for manifest in rooms.iter().flat_map(|room| packages(room)).map(|it| it.join("Cargo.toml")) {
        let text = fs::read_to_string(&manifest).unwrap();
        let named =
            dependencies(&text, with_dev).into_iter().filter(|(name, _)| others.contains(*name));
        let manifest = manifest.strip_prefix(workspace_root()).unwrap().display();
        troubles.extend(named.map(|(_, line)| format!("{manifest}: remove `{line}`")));
    }
    troubles
}

#[test]
fn a_library_depends_on_no_application_and_on_no_proof() {
    let applications =
        ["functions", "projects", "projects/functions", "starter", "starter/functions", "tests"];
    // The tests of a library have their own small domain.
    check_none(&wrong(&LIBRARIES, &applications, true));
}

/// Tests may use tools. A log implements `Source`, and a stack lists it.
#[test]
fn libraries_on_aws_depend_on_no_tool_and_on_no_log_in_another_layout() {
    check_none(&wrong(&["shared", "shared/compat"], &["tools"], false));
    check_none(&wrong(&["shared"], &["shared/compat"], false));
}

#[test]
fn dependencies_of_each_kind_are_found() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\na.workspace = true\n\n[dev-dependencies]\n\
                    b = { workspace = true }\n[features]\nc = []\n[target.'cfg(unix)'.dependencies]\nd = \"1\"\n";
    let names = |of_tests| dependencies(manifest, of_tests).into_iter().map(|(name, _)| name);
    assert_eq!(names(true).collect::<Vec<_>>(), ["a", "b", "d"]);
    assert_eq!(names(false).collect::<Vec<_>>(), ["a", "d"]);
}
