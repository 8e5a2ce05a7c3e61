fn main() -> std::process::ExitCode {
    ringfence::run::<customers::rename_customer::RenameCustomer>()
}
