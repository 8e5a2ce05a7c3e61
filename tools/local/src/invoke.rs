//! Invocations: the interface between triggers and the code that runs functions.

use std::time::Duration;

use serde_json::{Value, json};

/// The most bytes of a synchronous invocation's payload, as for Lambda: 6 MB.
pub const PAYLOAD_BYTES_MAX: usize = 6 * 1024 * 1024;

/// An invocation without an answer.
#[derive(Debug, thiserror::Error)]
pub enum InvokeError {
    /// There is no function of that name.
    #[error("there is no function {function}")]
    Unknown {
        /// The name asked for.
        function: String,
    },
    /// The payload is longer than Lambda takes.
    #[error("the payload has {bytes} bytes, more than {PAYLOAD_BYTES_MAX}")]
    TooLarge {
        /// The payload's length in bytes.
        bytes: usize,
    },
    /// The function ran and failed.
    #[error("function {function} failed: {error}")]
    Function {
        /// Its name.
        function: String,
        /// The error document that Lambda's runtime made (`errorType`, `errorMessage`).
        error: Value,
    },
    /// The function's time is over without an answer.
    #[error("function {function} gave no answer within {timeout:?}")]
    TimedOut {
        /// Its name.
        function: String,
        /// Its timeout.
        timeout: Duration,
    },
}

impl InvokeError {
    /// Whether the function got the payload and failed. Otherwise the payload never reached it.
    #[must_use]
    pub fn is_function_failure(&self) -> bool {
        matches!(self, Self::Function { .. } | Self::TimedOut { .. })
    }

    /// The error as Lambda writes it into the record of a failed invocation.
    pub(crate) fn document(&self) -> Value {
        match self {
            Self::Function { error, .. } => error.clone(),
            _ => json!({ "errorMessage": self.to_string() }),
        }
    }
}

/// Runs functions.
pub trait Invoke: Send + Sync + 'static {
    /// Runs a function with a payload and returns its answer, both JSON.
    ///
    /// # Errors
    /// There is no answer.
    fn invoke(
        &self,
        function: &str,
        payload: &Value,
    ) -> impl Future<Output = Result<Value, InvokeError>> + Send;
}
