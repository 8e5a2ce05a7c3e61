fn main() -> std::process::ExitCode {
    ringfence::run::<signups::confirm_sign_up::ConfirmSignUp>()
}
