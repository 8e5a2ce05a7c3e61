fn main() -> std::process::ExitCode {
    ringfence::run::<projects::renew_claim::RenewClaim>()
}
