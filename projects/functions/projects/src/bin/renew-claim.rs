fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<projects::renew_claim::RenewClaim>()
}
