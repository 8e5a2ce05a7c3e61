fn main() -> std::process::ExitCode {
    ringfence::run::<projects::validate_gaps::ValidateGaps>()
}
