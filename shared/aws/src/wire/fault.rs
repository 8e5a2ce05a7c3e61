//! Faults of requests.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::Random;

/// A fault of a request.
#[derive(Clone, Debug)]
pub enum Fault {
    /// This status and body are the answer; nothing is sent.
    Answer(u16, Value),
    /// It takes effect, and this status and body are the answer.
    AnswerAfter(u16, Value),
    /// It is lost on the way there: nothing is sent, the caller sees a time-out.
    LostBefore,
    /// It takes effect, and the answer is lost: the caller sees a time-out.
    LostAfter,
    /// The caller sees a time-out, and it takes effect only this long afterwards.
    Stray(Duration),
    /// It is sent only after this long.
    Delay(Duration),
    /// It takes effect at once, and the answer arrives only after this long.
    Late(Duration),
    /// It waits at the barrier until as many requests as the barrier counts have arrived, and is sent then. Requests
    /// that wait for each other's answers never meet.
    Meet(Arc<Barrier>),
    /// Its body is edited on the way there.
    Request(Edit),
    /// The answer is edited on the way back, unless it is an error.
    Reply(Edit),
}

/// A change to the body of a request or of an answer.
#[derive(Clone)]
pub struct Edit(Arc<dyn Fn(&mut Value) + Send + Sync>);

impl Edit {
    /// The change that `edit` makes.
    pub fn new(edit: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        Self(Arc::new(edit))
    }

    pub(super) fn apply(&self, body: &mut Value) {
        (self.0)(body);
    }
}

impl fmt::Debug for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Edit")
    }
}

impl Fault {
    /// The error `code` with status 400 (500 for `InternalServerError`).
    #[must_use]
    pub fn error(code: &str) -> Self {
        let status = if code == "InternalServerError" { 500 } else { 400 };
        Self::Answer(status, json!({ "__type": code, "message": "injected" }))
    }

    /// A cancelled transaction with these reasons, one for each action.
    #[must_use]
    pub fn cancelled(codes: &[&str]) -> Self {
        let reasons: Vec<_> = codes.iter().map(|code| json!({ "Code": code })).collect();
        Self::Answer(
            400,
            json!({
                "__type": "TransactionCanceledException",
                "message": "injected",
                "CancellationReasons": reasons,
            }),
        )
    }

    /// A page of at most `items` items, whatever the request asks for.
    #[must_use]
    pub fn page(items: u64) -> Self {
        Self::Request(Edit::new(move |request| request["Limit"] = items.into()))
    }

    /// The ten minutes are over in which the store remembers the request's token.
    #[must_use]
    pub fn without_token() -> Self {
        Self::Request(Edit::new(|request| {
            if let Some(request) = request.as_object_mut() {
                request.remove("ClientRequestToken");
            }
        }))
    }

    /// A replica or an index that lacks some of the newest items. The seed chooses which.
    #[must_use]
    pub fn stale(seed: u64) -> Self {
        Self::Reply(Edit::new(move |answer| {
            let mut random = Random::new(&[seed]);
            let percent = random.below(101);
            let mut hide = |items: &mut Value| {
                if let Some(items) = items.as_array_mut() {
                    items.retain(|_| !random.chance(percent));
                }
            };
            match answer.get_mut("Responses").and_then(Value::as_object_mut) {
                Some(tables) => tables.values_mut().for_each(hide),
                None => hide(&mut answer["Items"]),
            }
        }))
    }

    /// A batch that leaves some of its keys unprocessed. The seed chooses which.
    #[must_use]
    pub fn unprocessed(seed: u64) -> Self {
        Self::Reply(Edit::new(move |answer| {
            let mut random = Random::new(&[seed]);
            let Some(tables) = answer["Responses"].as_object_mut() else { return };
            let mut left = serde_json::Map::new();
            for (table, items) in tables.iter_mut() {
                let Some(items) = items.as_array_mut() else { continue };
                let keys: Vec<_> = items
                    .extract_if(.., |_| random.chance(50))
                    .map(|item| json!({ "id": item["id"], "position": item["position"] }))
                    .collect();
                if !keys.is_empty() {
                    left.insert(table.clone(), json!({ "Keys": keys }));
                }
            }
            answer["UnprocessedKeys"] = left.into();
        }))
    }
}
