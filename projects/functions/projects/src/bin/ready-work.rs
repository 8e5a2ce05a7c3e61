fn main() -> std::process::ExitCode {
    projects::ready_work::run()
}
