fn main() -> std::process::ExitCode {
    ringfence::run::<projects::expire_claim::ExpireClaim>()
}
