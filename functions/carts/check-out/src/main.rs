//! Starts the slice as a Lambda.

fn main() -> std::process::ExitCode {
    ringfence_lambda::document::run::<check_out::CheckOut>()
}
