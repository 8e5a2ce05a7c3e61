//! Given/when/then for the slices of every log: `given(events![…]).when(command).then([…])`, or with a name
//! `case("a second payment").given(…)`.
//!
//! A case is data, so the same case runs in memory in the slice's own tests and on DynamoDB in the
//! checks of a stack.
//!
//! In memory, a case on the DCB log or the aggregate log also has to be decided alike in other orders of its facts:
//! those that keep the order within every boundary, up to 100 of them. No log promises the order of events of
//! different boundaries ([`State::evolve`](crate::State::evolve) says what a fold can rest on). A
//! case that waits between two facts keeps their order. And its command is run twice under an idempotency
//! key: what it appends the first time is the answer to the second, also on a copy of the events.

mod due;
mod given;
mod in_memory;
mod once;
mod orders;
mod run;
mod same;
mod stored;
mod vault;

use std::{fmt::Display, str::FromStr};

use serde_json::Value;

use crate::Event;

pub use crate::decide::case::{Case, DueCase};
pub use due::check_due;
pub use given::{BEGIN_MS, CaseName, Given, When, case, given};
pub use in_memory::{catalog, check_in_memory};
pub use run::check_each;
pub use same::{assert_same, fail};
pub use vault::{CANARY, MemoryVault};

/// Events of several types as one list: `events![ProductAdded { … }, OrderPlaced { … }]`.
#[macro_export]
macro_rules! events {
    ($($event:expr),* $(,)?) => { ::std::vec![$($crate::NewEvent::from($event)),*] };
}

/// The id, or another value, that `text` stands for; panics if it does not stand for one.
#[track_caller]
pub fn id<T: FromStr<Err: Display>>(text: &str) -> T {
    text.parse().unwrap_or_else(|why| panic!("{text:?}: {why}"))
}

/// The payload of an older version of `E` in the newest shape. Panics if an upcast fails, or if what the upcasts make is
/// not an `E`. If `E` still writes that version, it panics too if the downcast does not undo the upcasts.
#[track_caller]
#[must_use]
pub fn upcast<E: Event>(version: u32, data: Value) -> Value {
    let what = format!("{} of version {version}", E::NAME);
    if E::SCHEMA.written() == version {
        let checked = E::SCHEMA.check_downcast(&data, |field| data.get(field).is_some());
        checked.unwrap_or_else(|error| fail(&what, error));
    }
    let data = E::UPCASTS.apply(E::NAME, version, data).unwrap_or_else(|error| fail(&what, error));
    // A log of streams leaves out of a payload what the stream's name says.
    let (schema, mut whole) = (E::SCHEMA, data.clone());
    let said: Vec<_> = schema.of_stream().filter(|key| data.get(key).is_none()).collect();
    said.iter().for_each(|key| whole[key] = "1".into());
    if let Err(error) = serde_path_to_error::deserialize::<_, E>(&whole)
        // Not every id can be 1.
        && !said.contains(&&*error.path().to_string())
    {
        let newest = E::UPCASTS.version();
        fail(format!("{what} is upcast to {data}, which is not one of version {newest}"), error);
    }
    data
}
