fn main() -> std::process::ExitCode {
    ringfence::function::run::<ringfence_services::topic::NotifyReaders>(())
}
