fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<accounts::change_username::ChangeUsername>()
}
