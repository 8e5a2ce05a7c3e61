fn main() -> std::process::ExitCode {
    ringfence_local::run(
        |_| Box::pin(async { Ok(()) }),
        ringfence_console::console::<starter_stack::Shop>(&[]),
    )
}
