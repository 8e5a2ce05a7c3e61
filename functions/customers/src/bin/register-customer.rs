fn main() -> std::process::ExitCode {
    ringfence::run::<customers::register_customer::RegisterCustomer>()
}
