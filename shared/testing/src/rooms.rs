//! What is in which folder: a context has a crate and a lock, and a slice a file and a binary of its name.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use ringfence_local::workspace_root;
use ringfence_stack::{Members, Stack};

use crate::functions::{SERVING, entries};
use crate::schemas;
use crate::template::{check_none, differences};

/// The folders of `functions` that are not contexts.
const NO_CONTEXTS: [&str; 2] = ["stack", "tools"];

/// Panics unless every context in `functions` is in the list of the stack, every slice has a file and a binary of its
/// name, every binary is of a function, and no slice uses another, and unless every context declares each type of
/// events that was released (`schemas/<context>.json`). Says what to write. With the variable `UPDATE`, new types are
/// written into the file.
pub fn check_rooms<M: Members>() {
    let stack = Stack::of::<M>().unwrap_or_else(|error| panic!("{error}"));
    every_context_is_in_the_list_of_the_stack(&stack);
    every_function_has_a_binary_and_every_binary_is_of_a_function(&stack);
    a_slice_uses_no_other_slice(&stack);
    check_none(&schemas::differences(&stack, &workspace_root(), schemas::updates()));
}

fn every_context_is_in_the_list_of_the_stack(stack: &Stack) {
    let folders = entries(&workspace_root().join("functions"));
    let contexts = stack.contexts.iter().map(|context| context.name);
    let expected = contexts.chain(NO_CONTEXTS).map(str::to_owned).collect();
    check_none(&differences(
        &folders,
        &expected,
        |name| format!("functions/{name} is missing, the crate of the context {name}"),
        |name| {
            format!(
                "functions/stack/src/lib.rs lacks `.context::<…>()` of functions/{name}, and its Cargo.toml \
                 `{name}.path = \"../{name}\"`"
            )
        },
    ));
}

fn every_function_has_a_binary_and_every_binary_is_of_a_function(stack: &Stack) {
    let slices = stack.slices().map(|(context, slice)| (context.name, slice.name));
    let others = stack.functions().map(|(context, function)| (context.name, function.name));
    let serving = SERVING.map(|(name, _)| ("stack", name));
    let all = slices.chain(others).chain(serving);
    let expected = all.map(|(folder, name)| binary(folder, name)).collect();
    let folders = entries(&workspace_root().join("functions"));
    let folders = folders.iter().filter(|folder| *folder != "tools");
    let binaries = folders.flat_map(|folder| {
        let bin = workspace_root().join("functions").join(folder).join("src/bin");
        let names = if bin.exists() { entries(&bin) } else { BTreeSet::new() };
        names.into_iter().map(move |file| format!("functions/{folder}/src/bin/{file}"))
    });
    check_none(&differences(
        &binaries.collect(),
        &expected,
        |path| format!("{path} is missing: copy a neighbour's three lines"),
        |path| {
            format!(
                "{path} is of no function: the context's src/lib.rs lacks the function's `pub mod` and its line \
                 `.slice::<…>()` or `.function::<…>()`"
            )
        },
    ));
}

fn binary(folder: &str, name: &str) -> String {
    format!("functions/{folder}/src/bin/{name}.rs")
}

fn a_slice_uses_no_other_slice(stack: &Stack) {
    let module = |name: &str| name.replace('-', "_");
    let modules: BTreeSet<String> = stack.slices().map(|(_, slice)| module(slice.name)).collect();
    let mut lines = Vec::new();
    for (context, slice) in stack.slices() {
        let own = module(slice.name);
        let path = format!("functions/{}/src/{own}.rs", context.name);
        let Ok(source) = fs::read_to_string(workspace_root().join(Path::new(&path))) else {
            lines.push(format!("{path} is missing: a slice's file has the slice's name"));
            continue;
        };
        let others = used(&source).filter(|used| modules.contains(*used) && *used != own);
        lines.extend(others.map(|other| {
            format!("{path}: uses the slice {other}; move what both need to events.rs")
        }));
    }
    check_none(&lines);
}

/// The names that stand before `::` in the part of a file before its tests.
fn used(source: &str) -> impl Iterator<Item = &str> {
    let code = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    code.split("::").filter_map(move |part| part.rsplit(|c| !is_of_name(c)).next())
}

#[test]
fn a_name_in_a_path_is_used_and_a_name_in_a_test_is_not() {
    let source =
        "use crate::{cancel_order::X, events};\n#[cfg(test)]\nmod tests { place_order::Y }";
    let used: Vec<_> = used(source).collect();
    assert!(used.contains(&"cancel_order") && !used.contains(&"place_order"), "{used:?}");
}
