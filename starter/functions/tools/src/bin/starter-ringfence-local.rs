fn main() -> std::process::ExitCode {
    ringfence_local::run(
        ringfence_services::program::function::<starter_stack::Contexts>,
        |_| Box::pin(async { Ok(()) }),
        ringfence_console::console::<starter_stack::Contexts>(&[]),
    )
}
