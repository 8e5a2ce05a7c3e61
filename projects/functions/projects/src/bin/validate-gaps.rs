fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<projects::validate_gaps::ValidateGaps>()
}
