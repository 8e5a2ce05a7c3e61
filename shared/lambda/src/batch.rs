//! Batches of records that Lambda delivers from a stream or a queue.

use std::time::Duration;

use lambda_runtime::Diagnostic;
use serde_json::{Value, json};

use crate::problem::Problem;

/// A command needs at least this many milliseconds. With less time none begins, and it is delivered again.
const COMMAND_MS_LEAST: u64 = 2_000;

/// A record that has waited longer in its stream has the alarm StreamsBehind, in milliseconds: an hour.
const STREAM_LATE_MS: u64 = 60 * 60_000;

/// For how many milliseconds the first record of a stream's batch has waited; `None` if it does not say so.
#[must_use]
pub fn waited_ms(payload: &Value, now_ms: u64) -> Option<u64> {
    let at = payload["Records"][0]["dynamodb"]["ApproximateCreationDateTime"].as_f64()?;
    let at = Duration::try_from_secs_f64(at).ok()?;
    u64::try_from(Duration::from_millis(now_ms).saturating_sub(at).as_millis()).ok()
}

/// The same, if that is too long.
pub(crate) fn stream_lag_ms(payload: &Value, now_ms: u64) -> Option<u64> {
    waited_ms(payload, now_ms).filter(|lag| *lag > STREAM_LATE_MS)
}

/// Whether a command may begin now if its answer is due at `until_ms`. Both are in milliseconds since 1970.
#[must_use]
pub fn has_time(now_ms: u64, until_ms: u64) -> bool {
    now_ms.saturating_add(COMMAND_MS_LEAST) <= until_ms
}

/// The records of a batch, or an error if the payload is not a batch.
pub fn records(payload: &mut Value) -> Result<Vec<Value>, Diagnostic> {
    match payload.get_mut("Records").map(Value::take) {
        Some(Value::Array(records)) => Ok(records),
        _ => {
            let why = "has no list of Records, so it is not a batch";
            Err(Problem::malformed("payload", why).diagnostic())
        }
    }
}

/// The position of a record in its stream. A record without a number has an empty one, which makes Lambda deliver the
/// whole batch again.
pub fn sequence_number(record: &Value) -> String {
    record["dynamodb"]["SequenceNumber"].as_str().unwrap_or_default().to_owned()
}

/// The answer that makes Lambda deliver records again: for a stream, those from one sequence number on; for a queue,
/// the messages with these ids.
pub fn delivered(failed: impl IntoIterator<Item = String>) -> Value {
    let failure = |identifier| json!({ "itemIdentifier": identifier });
    json!({ "batchItemFailures": failed.into_iter().map(failure).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_that_is_no_batch_is_refused() {
        assert_eq!(records(&mut json!({ "Records": [1] })).expect("a batch"), [json!(1)]);
        for mut payload in [json!({}), json!({ "Records": 1 }), json!([]), json!("x"), json!(null)]
        {
            let refused = records(&mut payload).expect_err("no batch");
            assert_eq!(refused.error_type, "malformed");
            let message = "payload: has no list of Records, so it is not a batch";
            assert_eq!(refused.error_message, message);
        }
    }

    #[test]
    fn a_failed_record_is_reported_by_its_number_and_without_one_the_whole_batch_fails() {
        let record = json!({ "dynamodb": { "SequenceNumber": "7" } });
        assert_eq!(delivered(None), json!({ "batchItemFailures": [] }));
        let from_7 = json!({ "batchItemFailures": [{ "itemIdentifier": "7" }] });
        assert_eq!(delivered(Some(sequence_number(&record))), from_7);
        assert_eq!(sequence_number(&json!({})), "");
    }
}
