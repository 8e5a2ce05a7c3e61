//! Only this module reads the clock and makes ids.

use std::net::Ipv4Addr;

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

/// A loopback address that nobody can guess, if the system has more than one.
#[allow(clippy::disallowed_methods, reason = "this module makes what is random")]
pub(crate) fn loopback() -> Ipv4Addr {
    let [a, b, c, ..] = *Uuid::new_v4().as_bytes();
    Ipv4Addr::new(127, a, b, c)
}
