//! The names of functions, and of the entries of folders.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use ringfence_core::kit::fail;
use ringfence_local::stack_root;
use ringfence_local::template::Model;
use ringfence_stack::Stack;
use ringfence_template::written::StackPlace;

use crate::lanes::IN_ORDER;

/// The functions that serve all contexts: their logical ids, the names of their programs, and the samples of their
/// invocations.
const SERVING: [(&str, &str, &[&str]); 8] = [
    ("PublishEvents", "publish-events", &["stream.json"]),
    ("IndexEvents", "index-events", &["stream.json"]),
    ("ProjectViews", "project-views", &["stream.json"]),
    ("QueryViews", "query-views", &["http.json", "list.json"]),
    ("FireDeadlines", "fire-deadlines", &[]),
    ("RunCommands", "run-commands", &["http.json", "answer.json", "sqs.json"]),
    ("ForwardSpans", "forward-spans", &["logs.json"]),
    (IN_ORDER, "react-in-order", &["eventbridge.json"]),
];

/// The functions that serve all contexts: their logical ids, their programs, and their samples. A stack has all
/// programs, and the template has only the functions that the stack needs.
pub(crate) fn serving() -> impl Iterator<Item = (&'static str, String, &'static [&'static str])> {
    let place = StackPlace::of(&stack_root());
    SERVING.into_iter().map(move |(id, name, samples)| (id, place.program(name), samples))
}

/// The names of all functions.
pub(crate) fn names(stack: &Stack, model: &Model) -> Vec<String> {
    let slices = stack.slices().map(|(_, slice)| slice.name);
    let others = stack.functions().map(|(_, function)| function.name);
    let reactors = stack.reactors().map(|(_, reactor)| reactor.name);
    let is_there = |name: &String| model.functions.iter().any(|function| function.binary == *name);
    let serving = serving().map(|(_, name, _)| name).filter(is_there);
    slices.chain(others).chain(reactors).map(str::to_owned).chain(serving).collect()
}

/// The names of a folder's entries that are not hidden.
pub(crate) fn entries(folder: &Path) -> BTreeSet<String> {
    let found = fs::read_dir(folder).unwrap_or_else(|error| fail(folder.display(), error));
    let name = |entry: std::io::Result<fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
    found.filter_map(name).filter(|name| !name.starts_with('.')).collect()
}
