fn main() -> std::process::ExitCode {
    ringfence_topic::run(projects_stack::stack().catalog)
}
