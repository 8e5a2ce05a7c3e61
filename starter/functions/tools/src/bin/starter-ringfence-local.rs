fn main() -> std::process::ExitCode {
    ringfence_local::run(
        ringfence_services::program::function::<starter_stack::Shop>,
        |_| Box::pin(async { Ok(()) }),
        ringfence_console::console::<starter_stack::Shop>(&[]),
    )
}
