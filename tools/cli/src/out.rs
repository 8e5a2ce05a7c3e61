//! The output of the command. Foreign texts, such as payloads and causes, can't control the terminal, break a line or
//! change its direction. If nobody reads the output any more, as with `| head`, a command finishes its work silently.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write, stderr, stdout};
use std::process::{ExitCode, exit};

use clap::Args;
use ringfence_core::{visible, visible_lines};
use serde::Serialize;

use crate::progress;

/// The exit status of a command that could not do its work.
pub(crate) const FAILED: u8 = 2;

/// How a command shows what it has found.
#[derive(Args, Clone, Copy)]
pub struct Output {
    /// Prints JSON instead of lines for people: one document, or a line for each event.
    #[arg(long)]
    json: bool,
}

impl Output {
    /// Shows a report, as text or as JSON.
    pub fn show(self, report: &(impl Display + Serialize)) {
        progress::clear();
        print(&self.text(report));
    }

    /// Shows a report at the end of a command. The status is 0 if all is well, and otherwise 1.
    pub fn end(self, report: &(impl Display + Serialize), is_well: bool) -> ExitCode {
        self.show(report);
        if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    /// Shows a report of many, as [`Output::show`] does.
    ///
    /// # Errors
    /// Nobody reads the output any more, as with `| head`.
    pub(crate) fn next(self, report: &(impl Display + Serialize)) -> io::Result<()> {
        write!(stdout(), "{}", self.text(report))
    }

    /// Shows a line while the command still works. With `--json` it goes to standard error, because standard output is
    /// one document.
    pub(crate) fn tell(self, line: &str) {
        progress::clear();
        if self.json { remark(line) } else { self::line(line) }
    }

    fn text(self, report: &(impl Display + Serialize)) -> String {
        let mut text = if self.json {
            let document = serde_json::to_string(report).expect("a report is JSON");
            visible(&document).to_string()
        } else {
            visible_lines(&report.to_string()).to_string()
        };
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text
    }
}

/// Writes a line of a report for people.
macro_rules! write_line {
    ($f:expr, $($part:tt)*) => { ::std::writeln!($f, "{}", ::ringfence_core::visible(&::std::format!($($part)*))) };
}
pub(crate) use write_line;

/// Serializes a report as the JSON that `json` makes of it.
macro_rules! serialize_as {
    ($report:ty, $json:expr) => {
        impl ::serde::Serialize for $report {
            fn serialize<S: ::serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                let json: fn(&Self) -> ::serde_json::Value = $json;
                ::serde::Serialize::serialize(&json(self), to)
            }
        }
    };
}
pub(crate) use serialize_as;

/// Prints a line of output.
#[macro_export]
macro_rules! say {
    ($($part:tt)*) => { $crate::out::line(&::std::format!($($part)*)) };
}

/// Prints a line to standard error, such as a warning.
#[macro_export]
macro_rules! remark {
    ($($part:tt)*) => { $crate::out::remark(&::std::format!($($part)*)) };
}

#[doc(hidden)]
pub fn line(text: &str) {
    print(&format!("{}\n", visible(text)));
}

/// Prints lines of output.
pub(crate) fn lines(text: &str) {
    print(&visible_lines(text));
}

/// Prints a file for programs as it is.
pub(crate) fn file(text: &str) {
    print(text);
}

#[doc(hidden)]
pub fn remark(text: &str) {
    // If standard error fails, there is no other place to report it.
    drop(writeln!(stderr(), "{}", visible_lines(text)));
}

/// Writes to standard output. Ends the program if that fails, as on a full disk, unless nobody reads it.
fn print(text: &str) {
    let mut out = stdout().lock();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match printed {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            remark(&format!("error: the output can't be written: {error}"));
            exit(FAILED.into());
        }
        _ => {}
    }
}
