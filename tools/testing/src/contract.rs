//! Checks that the documents of the API fit the stack.

use std::fs;
use std::path::Path;

use ringfence_core::kit::fail;
use ringfence_local::stack_root;
use ringfence_schemas::Contract;
use ringfence_stack::Members;
use serde_json::Value;

use crate::template::check_none;
use crate::written;

/// The folder of the documents, in the repository of a stack.
const FOLDER: &str = "docs/api";
/// The documents.
const DOCUMENTS: [&str; 2] = ["openapi.json", "asyncapi.json"];

/// Panics unless `docs/api` has the documents of the stack: `openapi.json` and `asyncapi.json`. Under `UPDATE=1` it
/// writes them.
pub fn check_api<M: Members>() {
    let contract = Contract::of::<M>().unwrap_or_else(|error| fail("the stack", error));
    let root = stack_root();
    if contract.is_empty() {
        return check_none(&DOCUMENTS.map(|name| without(&root, name)).concat());
    }
    let openapi = check(&root, DOCUMENTS[0], &contract.openapi());
    let contract = contract.with_locks(&root).unwrap_or_else(|error| fail("the stack", error));
    let asyncapi = check(&root, DOCUMENTS[1], &contract.asyncapi());
    check_none(&openapi.into_iter().chain(asyncapi).collect::<Vec<_>>());
}

/// A stack without contexts has nothing to describe.
fn without(root: &Path, name: &str) -> Vec<String> {
    let path = root.join(FOLDER).join(name);
    match path.exists() {
        false => Vec::new(),
        true if !written::is_asked() => {
            vec![format!("{FOLDER}/{name} describes no context: `UPDATE=1 cargo test` deletes it")]
        }
        true => {
            fs::remove_file(&path).unwrap_or_else(|error| fail(path.display(), error));
            Vec::new()
        }
    }
}

fn check(root: &Path, name: &str, document: &Value) -> Option<String> {
    let path = root.join(FOLDER).join(name);
    let found = fs::read_to_string(&path).unwrap_or_default();
    if serde_json::from_str::<Value>(&found).is_ok_and(|found| found == *document) {
        return None;
    }
    if !written::is_asked() {
        return Some(format!(
            "{FOLDER}/{name} is not what the stack has: `UPDATE=1 cargo test` writes it"
        ));
    }
    let text = format!("{document:#}\n");
    let written = fs::create_dir_all(root.join(FOLDER)).and_then(|()| fs::write(&path, text));
    written.unwrap_or_else(|error| fail(path.display(), error));
    None
}
