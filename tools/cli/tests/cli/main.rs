//! Tests that start programs: the `ringfence` command, and functions under the runtime API. They are one target, so
//! waiting tests run beside computing ones.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

mod builds;
mod console;
mod console_commands;
mod console_event;
mod console_map;
mod console_overview;
mod console_search;
mod console_slices;
mod console_views;
mod data;
mod data_lines;
mod deployed;
mod feed;
mod fences;
mod flags;
mod functions;
mod import;
mod lanes;
mod logs;
mod look;
mod moves;
mod parked;
mod prune;
mod read;
mod redrive;
mod replay;
mod restore;
mod schemas;
mod sql;
mod subjects;
mod together;
mod trace;
mod world;
