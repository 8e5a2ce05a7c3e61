fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<projects::claim_edge::ClaimEdge>()
}
