//! Macros of the `ringfence` core: the derives `Event`, `Command`, `Reads`, `Writes`, and the attribute `value`.
//!
//! Fields named `*_id` and `*_ids` are tags. `#[tag(...)]` changes that:
//!
//! | attribute | meaning |
//! |---|---|
//! | `partition` | the field's tag is (part of) the partition tag |
//! | `cross_partition` | decisions read all events with the tag, in any partition |
//! | `strong` | with `cross_partition`: read from index items, strongly if wanted |
//! | `skip` | the field is not a tag |
//! | `blind` | the field is `Personal`, and an HMAC of its value is the tag's value |
//! | `key = "k"` | the tag's key is `k`, not the field's name in camelCase; makes any field a tag |
//!
//! A computed tag has a value that is not one field. Write it on the struct, or on a variant of a command, with a key
//! and an expression over the fields. The expression sees the fields as references under their own names:
//!
//! ```ignore
//! #[derive(Event)]
//! #[tag(partition, key = "seat", value = format!("{flight_id}/{row}"))]
//! #[tag(cross_partition, key = "airline", value = flight_id.airline())]
//! struct SeatTaken {
//!     #[tag(skip)]
//!     flight_id: FlightId,
//!     row: u16,
//! }
//! ```
//!
//! It takes the options of a field's tag except `skip`. It always has exactly one value: any `TagValue`, or a
//! reference to one. With `optional` the expression is an `Option` of such a value.
//!
//! `#[event(...)]` on an event type sets how decisions read it:
//!
//! | attribute | meaning |
//! |---|---|
//! | `read_as_composite` | decisions read it by its whole set of tags |
//! | `read_by_type` | decisions read it by its type alone |
//! | `fenced` | a fence of its partition counts it: a decision that reads only such types of a partition, and writes to others, has no conflict with the partition's other events |
//! | `fenced, copies = 16` | this fence has copies, and each decision that depends on it checks one of them: for a fence that more than ten decisions a second check |
//! | `separator = '~'` | joins the values of a composite partition, in place of `/` |
//! | `version = 3` | its payload has changed twice; `#[upcast(1 = f, 2 = g)]` names the functions that convert a payload from one version to the next |
//! | `retired` | slices can read it and not write it |
//! | `stored_as = "OrderPlaced"` | the name of the type in the log, if the Rust type has another one |
//!
//! With `#[write(2 = h)]` new events are stored in the older version 2, which `h` makes of the newest payload. The
//! first release of a version has it, so it can be rolled back.
//!
//! Each event of a `fenced` type costs the update of a fence, in a transaction. Use it for rare events on which many
//! decisions elsewhere depend, such as an event that a product is sold. With `copies` it costs a write for each copy.
//!
//! A type with `Personal` fields has one field marked `#[subject]`, the person's id, or each of them is marked
//! `#[personal(of = "…")]` with the name of the field of its person's id.
//!
//! In [`Reads`], a variant marked `#[reads(also = "OrderSubmitted")]` reads that type as well; use it for a renamed
//! type. A field marked `#[personal]` has `Personal` values inside of its own type; one of the type `Personal` needs no
//! mark. A field marked `#[time]` takes the time at which the event was recorded, in milliseconds since 1970. A
//! decision's own time, `CommandContext::now_ms`, is never below it. A `String` marked `#[id]` takes the event's id,
//! `<partition>/<slot>`. A field marked `#[stream]` takes the id of the event's stream; only views meet such events.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod evolved;
mod field;
mod reads;
mod subjects;
mod tagged;
mod types;
mod value;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// An event type. Derives its schema, its tags, and JSON in camelCase.
#[proc_macro_derive(Event, attributes(event, personal, serde, subject, tag, upcast, write))]
pub fn event(input: TokenStream) -> TokenStream {
    finish(tagged::event(parse_macro_input!(input as DeriveInput)))
}

/// A command. Derives its tags, and JSON in camelCase that refuses unknown fields. The JSON field `type`
/// distinguishes the struct variants of an enum.
#[proc_macro_derive(Command, attributes(personal, serde, subject, tag))]
pub fn command(input: TokenStream) -> TokenStream {
    finish(tagged::command(parse_macro_input!(input as DeriveInput)))
}

/// The events that a slice reads: an enum of type names with the fields that the fold needs.
#[proc_macro_derive(Reads, attributes(id, personal, reads, serde, stream, time))]
pub fn reads(input: TokenStream) -> TokenStream {
    finish(reads::reads(parse_macro_input!(input as DeriveInput)))
}

/// The events that a slice writes: an enum of variants that each hold one event.
#[proc_macro_derive(Writes)]
pub fn writes(input: TokenStream) -> TokenStream {
    finish(reads::writes(parse_macro_input!(input as DeriveInput)))
}

/// A value type. Derives its JSON and the declared shape of that JSON. Fields of structs and of variants are in
/// camelCase, unless the type has its own `#[serde(rename_all = "…")]` or `#[serde(rename_all_fields = "…")]`.
///
/// Use `schemars` to declare rules that serde does not see:
///
/// ```ignore
/// /// ISO 4217 code.
/// #[ringfence::value]
/// #[derive(Clone, Debug, PartialEq, Eq)]
/// #[serde(try_from = "String")]
/// #[schemars(extend("pattern" = "^[A-Z]{3}$"))]
/// pub struct Currency(String);
/// ```
#[proc_macro_attribute]
pub fn value(arguments: TokenStream, item: TokenStream) -> TokenStream {
    parse_macro_input!(arguments as syn::parse::Nothing);
    finish(value::value(&parse_macro_input!(item as DeriveInput)))
}

/// The test of a context's cases, under the context's name: `cargo test ordering` selects it. `context!` uses
/// it; do not use it by hand.
#[proc_macro]
pub fn cases_of(input: TokenStream) -> TokenStream {
    let CasesOf { name, check } = parse_macro_input!(input as CasesOf);
    let test = quote::format_ident!("the_cases_of_{}_hold", name.value().replace('-', "_"));
    quote::quote!(#[cfg(test)] #[test] fn #test() #check).into()
}

/// The name of a context, and the block that checks its cases.
struct CasesOf {
    name: syn::LitStr,
    check: syn::Block,
}

impl syn::parse::Parse for CasesOf {
    fn parse(input: syn::parse::ParseStream<'_>) -> syn::Result<Self> {
        Ok(Self { name: input.parse()?, check: input.parse()? })
    }
}

fn finish(result: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    result.unwrap_or_else(|error| error.into_compile_error()).into()
}
