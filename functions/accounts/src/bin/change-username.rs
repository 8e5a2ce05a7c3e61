fn main() -> std::process::ExitCode {
    ringfence::run::<accounts::change_username::ChangeUsername>()
}
