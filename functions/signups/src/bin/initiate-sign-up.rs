fn main() -> std::process::ExitCode {
    ringfence::run::<signups::initiate_sign_up::InitiateSignUp>()
}
