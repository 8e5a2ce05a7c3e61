fn main() -> std::process::ExitCode {
    ringfence::run::<projects::complete_iteration::CompleteIteration>()
}
