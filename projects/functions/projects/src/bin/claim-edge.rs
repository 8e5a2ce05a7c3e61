fn main() -> std::process::ExitCode {
    ringfence::run::<projects::claim_edge::ClaimEdge>()
}
