//! Who has sent a payload. No other module looks at a payload to find that out.
//!
//! | sender | recognized by |
//! |---|---|
//! | API Gateway HTTP API, format 2.0 | `requestContext.http` |
//! | EventBridge, for the EventTopic | `detail-type` |
//! | a direct caller | anything else |
//!
//! A function on a stream or a queue reads its batch with [`records`](crate::records). One with a schedule looks at no
//! payload.

use serde_json::Value;

/// Who has sent a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// API Gateway.
    Http,
    /// The EventTopic.
    Bus,
    /// A direct caller.
    Direct,
}

impl Sender {
    /// The sender of this payload.
    #[must_use]
    pub fn of(payload: &Value) -> Self {
        Self::by(|pointer| payload.pointer(pointer).is_some())
    }

    /// The sender of a payload that has something at the JSON pointers that `has` accepts.
    pub(crate) fn by(has: impl Fn(&str) -> bool) -> Self {
        if has("/requestContext/http") {
            Self::Http
        } else if has("/detail-type") {
            Self::Bus
        } else {
            Self::Direct
        }
    }
}
