//! What the command prints. Texts of others, such as payloads and causes, neither control the terminal nor break a line
//! or turn it around.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "nothing else prints")]

use ringfence::{visible, visible_lines};

/// Prints a line of output.
#[macro_export]
macro_rules! say {
    ($($part:tt)*) => { $crate::out::line(&::std::format!($($part)*)) };
}

/// Prints a line beside the output, such as a warning.
#[macro_export]
macro_rules! remark {
    ($($part:tt)*) => { $crate::out::remark(&::std::format!($($part)*)) };
}

#[doc(hidden)]
pub fn line(text: &str) {
    println!("{}", visible(text));
}

/// Prints lines of output.
pub(crate) fn lines(text: &str) {
    print!("{}", visible_lines(text));
}

#[doc(hidden)]
pub fn remark(text: &str) {
    eprintln!("{}", visible_lines(text));
}

/// Prints progress, over that of before.
pub(crate) fn progress(text: &str) {
    eprint!("\r\x1b[K{}", visible(text));
}
