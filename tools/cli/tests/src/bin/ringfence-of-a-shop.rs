fn main() -> std::process::ExitCode {
    ringfence_cli::run::<ringfence_programs::shop::Shop, ringfence_console::ConsoleCommand>()
}
