//! The findings of the gate, in words: the change, whom it breaks, and the line to write.

use std::fmt;

/// A group that relies on a released thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Audience {
    /// The log keeps events for ever, and decisions read them.
    Log,
    /// The bus has events for reactions and for consumers outside of the stack.
    Bus,
    /// Callers send commands, know answers, and read rows at their paths.
    Http,
    /// Rows of views and snapshots of documents are stored under their names.
    Rows,
}

impl fmt::Display for Audience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Log => "the log",
            Self::Bus => "the bus",
            Self::Http => "HTTP callers",
            Self::Rows => "rows",
        })
    }
}

/// A difference between the lock and the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file of the lock.
    pub path: String,
    /// The changed thing: a type of events with its version, a command, a name.
    pub subject: String,
    /// Its changes.
    pub changes: Vec<String>,
    /// Whom it breaks, and how; empty if it breaks nobody.
    pub breaks: Vec<(Audience, String)>,
    /// The steps to take, a line each; code is indented. If the change is written: notes on it.
    pub remedy: Vec<String>,
    /// Whether `UPDATE=1 cargo test` writes it into the lock.
    pub is_written: bool,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, subject, changes, breaks, remedy, is_written } = self;
        write!(f, "{path}: {subject}: {}", changes.join("; "))?;
        for (audience, how) in breaks {
            write!(f, "\n  breaks {audience}: {how}")?;
        }
        remedy.iter().try_for_each(|line| write!(f, "\n  {line}"))?;
        if *is_written { f.write_str("\n  `UPDATE=1 cargo test` writes it") } else { Ok(()) }
    }
}
