fn main() -> std::process::ExitCode {
    ringfence_cli::run::<stack::Shop, ringfence_console::ConsoleCommand>()
}
