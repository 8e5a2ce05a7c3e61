fn main() -> std::process::ExitCode {
    ringfence_local::run(tools::walk, ringfence_cli::console::<stack::Shop, tools::project::Own>)
}
