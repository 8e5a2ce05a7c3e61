fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<signups::lapse_sign_up::LapseSignUp>()
}
