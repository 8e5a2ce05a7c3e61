fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<signups::confirm_sign_up::ConfirmSignUp>()
}
