fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<projects::release_edge::ReleaseEdge>()
}
