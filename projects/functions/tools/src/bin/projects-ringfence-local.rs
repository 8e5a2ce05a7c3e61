fn main() -> std::process::ExitCode {
    projects_tools::ringfence_local()
}
