fn main() -> std::process::ExitCode {
    ringfence::run::<signups::lapse_sign_up::LapseSignUp>()
}
