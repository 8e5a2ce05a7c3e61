//! Batches of a subscription of CloudWatch Logs: packed lines of one log stream.

use std::io::Read;

use anyhow::{Context, Result, ensure};
use aws_lambda_events::cloudwatch_logs::LogData;
use aws_smithy_types::base64;
use flate2::read::GzDecoder;
use serde_json::Value;

/// The most bytes of a batch that is unpacked. A payload of Lambda has 6 MB.
const UNPACKED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Lines of one log stream.
pub(crate) struct Batch(LogData);

impl Batch {
    /// The batch of a payload. `LogsEvent` would unpack any number of bytes.
    pub(crate) fn of(payload: &Value) -> Result<Self> {
        let packed = payload["awslogs"]["data"].as_str().context("awslogs.data is not a string")?;
        let packed = base64::decode(packed).context("awslogs.data is not base64")?;
        let mut text = Vec::new();
        let unpacked = GzDecoder::new(&*packed).take(UNPACKED_BYTES_MAX).read_to_end(&mut text);
        let bytes = unpacked.context("awslogs.data can't be unpacked")? as u64;
        ensure!(bytes < UNPACKED_BYTES_MAX, "the lines have {UNPACKED_BYTES_MAX} bytes or more");
        serde_json::from_slice(&text).context("awslogs.data is not a batch of lines").map(Self)
    }

    /// The lines, unless the function of this name has written them. Lines of forward-spans itself would come back for
    /// ever.
    pub(crate) fn lines_of_others(&self, function: &str) -> impl Iterator<Item = &str> {
        // The log stream is `2026/11/26/<function>[<version>]<id>`, because all functions share the log group.
        let is_own = self.0.log_stream.contains(&format!("/{function}["));
        // A message of another type only shows that the subscription works, and has no lines.
        let lines = self.0.log_events.iter().filter(|_| self.0.message_type == "DATA_MESSAGE");
        lines.filter(move |_| !is_own).map(|line| &*line.message)
    }
}
