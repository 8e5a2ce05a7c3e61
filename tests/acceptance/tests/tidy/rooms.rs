//! What is in which folder: a slice's file stands alone, and has a binary of its name.

use std::{collections::BTreeSet, fs};

use ringfence_local::workspace_root;
use ringfence_testing::template::{check_none, differences};

use crate::{entries, files, functions, name, production};

#[test]
fn every_slice_has_a_binary_and_every_binary_is_of_a_function() {
    let all = workspace_root().join("functions");
    let is_binary = |path: &&std::path::PathBuf| path.parent().is_some_and(|it| name(it) == "bin");
    let path = |path: &std::path::PathBuf| {
        path.strip_prefix(workspace_root()).unwrap().display().to_string()
    };
    let of_tools = |path: &String| path.starts_with("functions/tools/");
    let binaries = files(&all, "rs");
    let binaries = binaries.iter().filter(is_binary).map(path).filter(|path| !of_tools(path));
    let expected = functions();
    let expected = expected
        .iter()
        .map(|function| format!("functions/{}/src/bin/{}.rs", function.context, function.name));
    check_none(&differences(
        &binaries.collect(),
        &expected.collect(),
        |path| format!("{path} is missing: copy a neighbour's three lines"),
        |path| {
            format!(
                "{path} is of no slice: the context's src/lib.rs lacks the slice's `pub mod` and its line \
                 `.slice::<…>()`"
            )
        },
    ));
}

#[test]
fn every_context_is_in_the_list_of_the_stack() {
    let folders = entries(&workspace_root().join("functions"));
    let folders = folders.iter().map(|folder| name(folder)).collect();
    let contexts = stack::stack().contexts.into_iter().map(|context| context.name.to_owned());
    let expected = contexts.chain(["stack", "tools"].map(str::to_owned)).collect();
    check_none(&differences(
        &folders,
        &expected,
        |name| format!("functions/{name} is missing, the crate of the context {name}"),
        |name| {
            format!(
                "functions/stack/src/lib.rs lacks `.context::<…>()` of functions/{name}, and its Cargo.toml \
                 `{name}.workspace = true`"
            )
        },
    ));
}

#[test]
fn a_slice_uses_no_other_slice() {
    let functions = functions();
    let slices = functions.iter().filter(|function| function.is_slice());
    let module = |name: &str| name.replace('-', "_");
    let modules: BTreeSet<String> = slices.clone().map(|slice| module(&slice.name)).collect();
    let mut troubles = Vec::new();
    for slice in slices {
        let source = fs::read_to_string(slice.source()).unwrap();
        let own = module(&slice.name);
        let paths = production(&source)
            .split("::")
            .flat_map(|part| part.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next());
        let used = paths.filter(|used| modules.contains(*used) && *used != own);
        troubles.extend(used.map(|used| {
            format!(
                "{}: uses the slice {used}; move what both need to events.rs",
                slice.source().display()
            )
        }));
    }
    check_none(&troubles);
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
    let all = &packages("functions") | &packages("tests");
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
