//! The folder of a project: `.ringfence/<project>/`.
//!
//! | file | holds |
//! |---|---|
//! | `events.jsonl` | the events of the project, a line each: a copy in the order of the index, or the log of a local project |
//! | `events.jsonl.torn` | what was cut off at the end of the events, because an append had broken off |
//! | `pull.json` | how far the index was read after the last line |
//! | `outbox.jsonl` | commands that wait to be sent |
//! | `conflicts/` | commands that were rejected, one file each |
//! | `lock` | the lock of readers and writers |
//! | `push.lock` | the lock of the program that sends what waits |
//!
//! The folder may come from elsewhere, as a part of a repository. So no link in it is followed: it could lead to any
//! file of the user.

mod files;
mod lines;

pub(crate) use files::{
    Appending, EVENTS, Folder, Held, OUTBOX, Reading, TORN, Writing, listed, names_in,
};
pub(crate) use lines::{End, Snapshot};
