fn main() -> std::process::ExitCode {
    ringfence_local::run(tools::walk)
}
