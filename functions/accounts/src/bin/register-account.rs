fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<accounts::register_account::RegisterAccount>()
}
