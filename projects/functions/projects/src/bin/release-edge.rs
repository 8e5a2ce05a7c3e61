fn main() -> std::process::ExitCode {
    ringfence::run::<projects::release_edge::ReleaseEdge>()
}
