fn main() -> std::process::ExitCode {
    ringfence_local::run(async |_| Ok(()), ringfence_cli::console::<stack::Shop, std::convert::Infallible>)
}
