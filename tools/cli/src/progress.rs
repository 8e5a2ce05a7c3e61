//! Progress: one line of a terminal, which is overwritten. Without a terminal nothing is shown.

use std::fmt::Display;
use std::io::{IsTerminal, Write, stderr};

use ringfence_core::visible;

pub(crate) fn show(done: impl Display) {
    if stderr().is_terminal() {
        drop(write!(stderr(), "\r\x1b[K{}", visible(&done.to_string())));
    }
}

/// Clears the line before permanent output.
pub(crate) fn clear() {
    show("");
}
