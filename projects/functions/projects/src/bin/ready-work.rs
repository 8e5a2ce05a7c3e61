fn main() -> std::process::ExitCode {
    ringfence::function::run::<projects::ready_work::ReadyWork>(())
}
