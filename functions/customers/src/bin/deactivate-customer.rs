fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<customers::deactivate_customer::DeactivateCustomer>()
}
