fn main() -> std::process::ExitCode {
    ringfence::run::<accounts::register_account::RegisterAccount>()
}
