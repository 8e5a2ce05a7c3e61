fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<customers::rename_customer::RenameCustomer>()
}
