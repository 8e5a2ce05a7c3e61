fn main() -> std::process::ExitCode {
    ringfence::run::<ringfence_services::personal_data::ForgetSubject>()
}
