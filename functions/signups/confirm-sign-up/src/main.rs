//! Starts the slice as a Lambda.

fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<confirm_sign_up::ConfirmSignUp>()
}
