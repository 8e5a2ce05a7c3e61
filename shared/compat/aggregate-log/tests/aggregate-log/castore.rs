//! Castore itself, on the same tables as the log.

use ringfence_harness::{Driver, NodeProgram};

use crate::stack::{LEGACY, OTHER, Stack, TABLE};

static CASTORE: NodeProgram = NodeProgram::new(
    "interchange with Castore's packages",
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/castore"),
    concat!(env!("CARGO_TARGET_TMPDIR"), "/castore"),
);

/// `None` on a machine that can't run it.
pub(crate) async fn start(stack: &Stack) -> Option<Driver> {
    let endpoint = ("ENDPOINT", stack.endpoint());
    CASTORE.start(&[endpoint, ("TABLE", TABLE), ("OTHER", OTHER), ("LEGACY", LEGACY)]).await
}
