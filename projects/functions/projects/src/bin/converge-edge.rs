fn main() -> std::process::ExitCode {
    ringfence::run::<projects::converge_edge::ConvergeEdge>()
}
