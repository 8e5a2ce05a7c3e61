//! The original library, on the same table as the log.

use ringfence_harness::{Driver, NodeProgram};

use crate::stack::{Stack, TABLE};

static EQUINOX: NodeProgram = NodeProgram::new(
    "interchange with the packages of Equinox",
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/equinox"),
    concat!(env!("CARGO_TARGET_TMPDIR"), "/equinox"),
);

/// `None` on a machine that can't run it.
pub(crate) async fn start(stack: &Stack) -> Option<Driver> {
    EQUINOX.start(&[("ENDPOINT", stack.endpoint()), ("TABLE", TABLE)]).await
}
