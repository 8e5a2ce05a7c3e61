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
