//! Starts `ringfence`.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    ringfence_cli::run().await
}
