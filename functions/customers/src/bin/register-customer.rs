fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<customers::register_customer::RegisterCustomer>()
}
