//! Starts the slice as a Lambda.

fn main() -> std::process::ExitCode {
    ringfence_lambda::aggregate::run::<register_customer::RegisterCustomer>()
}
