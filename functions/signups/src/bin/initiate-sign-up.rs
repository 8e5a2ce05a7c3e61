fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<signups::initiate_sign_up::InitiateSignUp>()
}
