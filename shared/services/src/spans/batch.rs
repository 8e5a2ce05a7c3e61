//! What a subscription of CloudWatch Logs brings: lines of one log stream, packed.

use std::io::Read;

use anyhow::{Context, Result, ensure};
use aws_smithy_types::base64;
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value;

/// The most bytes of a batch that is unpacked. A payload of Lambda has 6 MB.
const UNPACKED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Lines of one log stream.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Batch {
    message_type: String,
    /// `2026/11/26/<function>[<version>]<id>`, because all functions share the log group.
    log_stream: String,
    log_events: Vec<LogLine>,
}

#[derive(Deserialize)]
struct LogLine {
    message: String,
}

impl Batch {
    /// The batch of a payload.
    pub(crate) fn of(payload: &Value) -> Result<Self> {
        let packed = payload["awslogs"]["data"].as_str().context("awslogs.data is not a text")?;
        let packed = base64::decode(packed).context("awslogs.data is not base64")?;
        let mut text = Vec::new();
        let unpacked = GzDecoder::new(&*packed).take(UNPACKED_BYTES_MAX).read_to_end(&mut text);
        let bytes = unpacked.context("awslogs.data can't be unpacked")? as u64;
        ensure!(bytes < UNPACKED_BYTES_MAX, "the lines have {UNPACKED_BYTES_MAX} bytes or more");
        serde_json::from_slice(&text).context("awslogs.data is not a batch of lines")
    }

    /// The lines, unless the function of this name has written them. What forward-spans writes would come back for
    /// ever.
    pub(crate) fn lines_of_others(&self, function: &str) -> impl Iterator<Item = &str> {
        let is_own = self.log_stream.contains(&format!("/{function}["));
        // Another type says that the subscription works, and has no lines.
        let lines = self.log_events.iter().filter(|_| self.message_type == "DATA_MESSAGE");
        lines.filter(move |_| !is_own).map(|line| &*line.message)
    }
}
