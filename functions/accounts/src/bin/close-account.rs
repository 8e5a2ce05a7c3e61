fn main() -> std::process::ExitCode {
    ringfence::run::<accounts::close_account::CloseAccount>()
}
