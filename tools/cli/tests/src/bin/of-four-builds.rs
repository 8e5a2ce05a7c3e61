fn main() -> std::process::ExitCode {
    ringfence_programs::shelf::run()
}
