//! Checks that the documents of the API and the map fit the stack.

use std::fs;

use ringfence_core::kit::fail;
use ringfence_local::stack_root;
use ringfence_schemas::Contract;
use ringfence_stack::{Members, Stack};
use ringfence_template::map::{Map, stale_map_files};

use crate::template::check_none;
use crate::written;

/// Panics unless `docs` has the documents of the stack: `api/openapi.json`, `api/asyncapi.json`, `map.md`, `map.svg`,
/// or none if the stack has no context. Under `UPDATE=1` it writes and deletes them.
pub fn check_api<M: Members>() {
    let contract = Contract::of::<M>().unwrap_or_else(|error| fail("the stack", error));
    let root = stack_root();
    let stack = Stack::of::<M>().unwrap_or_else(|error| fail("the stack", error));
    let stale = contract.stale_documents(&root);
    let mut stale = stale.unwrap_or_else(|error| fail("the stack", error));
    stale.extend(stale_map_files(&Map::of(&stack), &root));
    if !written::is_asked() {
        let line = |path| format!("{path} differs from the stack: `UPDATE=1 cargo test` mends it");
        return check_none(&stale.into_iter().map(|(path, _)| line(path)).collect::<Vec<_>>());
    }
    for (path, text) in stale {
        let file = root.join(&path);
        let mended = match text {
            Some(text) => {
                fs::create_dir_all(root.join(Contract::FOLDER)).and_then(|()| fs::write(file, text))
            }
            None => fs::remove_file(file),
        };
        mended.unwrap_or_else(|error| fail(path, error));
    }
}
