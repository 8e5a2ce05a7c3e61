fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<projects::reopen_edge::ReopenEdge>()
}
