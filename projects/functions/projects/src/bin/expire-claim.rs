fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<projects::expire_claim::ExpireClaim>()
}
