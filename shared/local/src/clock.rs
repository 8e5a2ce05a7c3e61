//! The one place that reads the clock and makes ids.

use chrono::{DateTime, Utc};
use uuid::Uuid;

#[allow(clippy::disallowed_methods, reason = "this module is the clock")]
pub(crate) fn now() -> DateTime<Utc> {
    Utc::now()
}

#[allow(clippy::disallowed_methods, reason = "this module makes the ids")]
pub(crate) fn id() -> String {
    Uuid::new_v4().to_string()
}
