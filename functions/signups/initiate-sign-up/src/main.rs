//! Starts the slice as a Lambda.

fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<initiate_sign_up::InitiateSignUp>()
}
