//! Derive macros of the `ringfence` core: `Event`, `Command`, `Reads`, `Writes`.
//!
//! Fields named `*_id` and `*_ids` are tags; `#[tag(...)]` changes that:
//!
//! | attribute | meaning |
//! |---|---|
//! | `partition` | the field's tag is (part of) the partition tag |
//! | `cross_partition` | decisions read all events with the tag, in any partition |
//! | `strong` | with `cross_partition`: read from index items, strongly if wanted |
//! | `skip` | the field is not a tag |
//! | `key = "k"` | the tag's key is `k`, not the field's name in camelCase; makes any field a tag |
//!
//! On an event type, `#[event(read_as_composite)]` says that decisions read it by its whole set of
//! tags, `#[event(read_by_type)]` that decisions read it by its type alone, and
//! `#[event(separator = '|')]` changes what joins a composite partition.
//!
//! In [`Reads`], a field marked `#[time]` takes the time in the event's position, in milliseconds since
//! 1970. `CommandContext::now_ms`, a decision's own time, is never lower. A field marked `#[stream]`
//! takes the id of the event's stream; only views read such events.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod field;
mod reads;
mod tagged;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// An event type: its schema, its tags, and JSON in camelCase.
#[proc_macro_derive(Event, attributes(event, tag, serde))]
pub fn event(input: TokenStream) -> TokenStream {
    finish(tagged::event(parse_macro_input!(input as DeriveInput)))
}

/// A command: its tags, and JSON in camelCase that refuses unknown fields. An enum of struct
/// variants is told apart by the JSON field `type`.
#[proc_macro_derive(Command, attributes(tag, serde))]
pub fn command(input: TokenStream) -> TokenStream {
    finish(tagged::command(parse_macro_input!(input as DeriveInput)))
}

/// The events that a slice reads: an enum of type names with the fields that the fold needs.
#[proc_macro_derive(Reads, attributes(serde, stream, time))]
pub fn reads(input: TokenStream) -> TokenStream {
    finish(reads::reads(parse_macro_input!(input as DeriveInput)))
}

/// The events that a slice writes: an enum of variants that each hold one event.
#[proc_macro_derive(Writes)]
pub fn writes(input: TokenStream) -> TokenStream {
    finish(reads::writes(parse_macro_input!(input as DeriveInput)))
}

fn finish(result: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    result.unwrap_or_else(|error| error.into_compile_error()).into()
}
