//! Progress: one line of a terminal, which is overwritten. Elsewhere nothing is shown.

use std::fmt::Display;
use std::io::{IsTerminal, stderr};

pub(crate) fn show(done: impl Display) {
    if stderr().is_terminal() {
        eprint!("\r\x1b[K{done}");
    }
}

/// Clears the line, before lines that stay.
pub(crate) fn clear() {
    show("");
}
