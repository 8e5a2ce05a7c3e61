fn main() -> std::process::ExitCode {
    ringfence::reactor::run::<ringfence_services::personal_data::DestroyKeys>()
}
