fn main() -> std::process::ExitCode {
    ringfence_local::run(|_| Box::pin(async { Ok(()) }), ringfence_cli::console::<stack::Shop, std::convert::Infallible>)
}
