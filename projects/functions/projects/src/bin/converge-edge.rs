fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<projects::converge_edge::ConvergeEdge>()
}
