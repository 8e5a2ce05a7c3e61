//! Starts the slice as a Lambda.

fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<close_account::CloseAccount>()
}
