fn main() -> std::process::ExitCode {
    ringfence::run::<customers::deactivate_customer::DeactivateCustomer>()
}
