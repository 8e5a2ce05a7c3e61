//! Instructions of one call, counted by valgrind: the same on a busy machine as on an idle one.

use std::env;
use std::io::{IsTerminal as _, stderr};
use std::process::Command;

/// With this argument the command runs itself under valgrind.
pub(crate) const CHILD: &str = "--count";
/// Counting begins at the entry of this function and ends at its exit.
const TOGGLE: &str = "--toggle-collect=*instructions*collected*";

/// Does the counted work.
#[inline(never)]
pub(crate) fn collected(work: &mut dyn FnMut()) {
    work();
    // The call above must not become a jump, or valgrind misses its end.
    std::hint::black_box(());
}

/// The instructions of one call for a side of a case; `None` without valgrind, or in a build without symbols.
pub(crate) fn count(case: &str, side: &str) -> Option<f64> {
    progress(&format!("counting the instructions of {case}, {side}: up to a minute"));
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", TOGGLE])
        .arg(env::current_exe().ok()?)
        .args([CHILD, case, side])
        .output();
    progress("");
    let output = output.ok()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().find_map(|line| line.split_once("Collected :"))?.1;
    line.trim().parse().ok().filter(|count| *count > 0.0)
}

/// Overwrites one line of a terminal. Without a terminal it does nothing.
fn progress(line: &str) {
    if stderr().is_terminal() {
        eprint!("\r\x1b[K{line}");
    }
}
