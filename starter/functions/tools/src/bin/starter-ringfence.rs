fn main() -> std::process::ExitCode {
    ringfence_cli::run::<starter_stack::Contexts, ringfence_console::ConsoleCommand>()
}
