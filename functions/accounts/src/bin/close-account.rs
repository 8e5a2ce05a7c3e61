fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<accounts::close_account::CloseAccount>()
}
