fn main() -> std::process::ExitCode {
    ringfence_cli::run_with::<stack::Shop, tools::project::Own>()
}
