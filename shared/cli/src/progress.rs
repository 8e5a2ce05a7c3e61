//! One line on a terminal that is written over; nothing elsewhere.

use std::fmt::Display;
use std::io::{IsTerminal, stderr};

pub(crate) fn show(done: impl Display) {
    if stderr().is_terminal() {
        eprint!("\r\x1b[K{done}");
    }
}

/// Before lines that stay.
pub(crate) fn clear() {
    show("");
}
