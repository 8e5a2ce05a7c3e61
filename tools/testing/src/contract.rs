//! Checks that the documents of the API fit the stack.

use std::fs;

use ringfence_core::kit::fail;
use ringfence_local::stack_root;
use ringfence_schemas::Contract;
use ringfence_stack::Members;

use crate::written;

/// Panics unless `docs/api` has the documents of the stack: `openapi.json` and `asyncapi.json`. Under `UPDATE=1` it
/// writes them.
pub fn check_api<M: Members>() {
    let contract = Contract::of::<M>().unwrap_or_else(|error| fail("the stack", error));
    let root = stack_root();
    let stale = contract.stale_documents(&root);
    for (path, text) in stale.unwrap_or_else(|error| fail("the stack", error)) {
        assert!(
            written::is_asked(),
            "{path} is not what the stack has: `UPDATE=1 cargo test` writes it"
        );
        let written = fs::create_dir_all(root.join(Contract::FOLDER))
            .and_then(|()| fs::write(root.join(&path), text));
        written.unwrap_or_else(|error| fail(path, error));
    }
}
