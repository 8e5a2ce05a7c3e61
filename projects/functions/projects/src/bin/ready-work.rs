fn main() -> std::process::ExitCode {
    ringfence_function::run::<projects::ready_work::ReadyWork>(())
}
