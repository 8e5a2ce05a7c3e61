fn main() -> std::process::ExitCode {
    ringfence::run::<projects::reopen_edge::ReopenEdge>()
}
