fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<projects::complete_iteration::CompleteIteration>()
}
