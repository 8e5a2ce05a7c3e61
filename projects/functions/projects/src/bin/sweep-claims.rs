fn main() -> std::process::ExitCode {
    projects::sweep_claims::run()
}
