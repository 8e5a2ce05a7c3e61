//! query-views: rows of the views over HTTP, and by direct invoke.
//!
//! `GET /<view>/<id>` is one row, `GET /<view>` a page of them. With the `partition` and `position`
//! of an event, as a command's answer names them, the answer shows that event or says how far
//! behind the view is.

mod answer;
mod ask;

pub use answer::{Answered, answer};
pub use ask::{Ask, Asked, WAIT_DEFAULT_MS, WAIT_MAX_MS};
