fn main() -> std::process::ExitCode {
    ringfence_cli::run::<starter_stack::Shop, ringfence_console::ConsoleCommand>()
}
